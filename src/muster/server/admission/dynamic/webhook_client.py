"""Calls webhooks: over TLS, by URL or by the service that they run behind, within a time limit.

The call carries nothing but the review: no credentials, no cookies, no proxy of the environment, and redirects are not
followed. A service is found as `muster.server.service_endpoints` says.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import aiohttp
import msgspec

from muster.server.resources.kind import Obj, Reader
from muster.server.service_endpoints import NoEndpointError, ServiceEndpoints, server_name

LONGEST_SECONDS = 30
_MOST_BYTES = 3 * 1024 * 1024
_CONTENT = {"Content-Type": "application/json", "Accept": "application/json"}
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class WebhookError(Exception):
    """A call that brought no answer."""


class Target(NamedTuple):
    """Where a call goes: what is connected to, and the name that the certificate must have."""

    shown: str  # the URL in messages
    url: str
    host: str  # the Host header
    server_name: str


class WebhookClient:
    """Posts JSON and reads JSON."""

    def __init__(self, endpoints: Mapping[str, str] | None = None) -> None:
        self._endpoints = ServiceEndpoints(endpoints)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, client_config: Obj, body: Obj, seconds: float, reader: Reader) -> Obj:
        """The answer of a webhook. Raises WebhookError."""
        target = self.target(client_config, reader, seconds)
        context = _tls(client_config.get("caBundle") or "")
        limit = aiohttp.ClientTimeout(total=min(seconds, LONGEST_SECONDS))
        try:
            async with self._open().post(
                target.url,
                data=_encode(body),
                headers={**_CONTENT, "Host": target.host},
                ssl=context,
                server_hostname=target.server_name,
                allow_redirects=False,
                timeout=limit,
            ) as answer:
                return await _read(answer)
        except TimeoutError:
            raise WebhookError(f'Post "{target.shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError) as error:
            raise WebhookError(f'Post "{target.shown}": {_words(error)}') from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, connector=aiohttp.TCPConnector(limit=100)
            )
        return self._session

    def target(self, client_config: Obj, reader: Reader, seconds: float) -> Target:
        """Where a client configuration leads. Raises WebhookError where the service is not to be found."""
        suffix = f"?timeout={seconds:g}s"
        if url := client_config.get("url"):
            host = url.split("/", 3)[2]
            return Target(url + suffix, url + suffix, host, _name(host))
        service: Obj = client_config.get("service") or {}
        namespace, name = service.get("namespace", ""), service.get("name", "")
        port, path = service.get("port") or 443, (service.get("path") or "/").lstrip("/")
        host = server_name(namespace, name)
        shown = f"https://{host}:{port}/{path}{suffix}"
        try:
            address = self._endpoints.address(reader, namespace, name, port)
        except NoEndpointError as error:
            raise WebhookError(f'Post "{shown}": {error}') from None
        return Target(shown, f"https://{address}/{path}{suffix}", f"{host}:{port}", host)


def _words(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {error.host}:{error.port}: connect: {error.strerror or error.os_error}"
    return str(error) or type(error).__name__


def _name(host: str) -> str:
    """The host of host:port, without brackets around an IPv6 address."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).strip("[]")


@lru_cache(maxsize=256)
def _tls(bundle: str) -> ssl.SSLContext:
    """The context that trusts a bundle, or the system's roots where there is none."""
    if not bundle:
        return ssl.create_default_context()
    try:
        text = base64.b64decode(bundle).decode()
        return ssl.create_default_context(cadata=text)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise WebhookError(f"unable to load root certificates: {error}") from None


async def _read(answer: aiohttp.ClientResponse) -> Obj:
    body = await answer.content.read(_MOST_BYTES + 1)
    while len(body) <= _MOST_BYTES and (more := await answer.content.read(_MOST_BYTES + 1 - len(body))):
        body += more
    if len(body) > _MOST_BYTES:
        raise WebhookError(f"the answer is larger than {_MOST_BYTES} bytes")
    if not 200 <= answer.status < 300:
        detail = body[:256].decode(errors="replace").strip()
        raise WebhookError(
            detail or f"an error on the server has prevented the request from succeeding ({answer.status})"
        )
    try:
        decoded: Any = _decode(body)
    except msgspec.DecodeError as error:
        raise WebhookError(f"the answer is not JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise WebhookError("the answer is not an object")
    return decoded
