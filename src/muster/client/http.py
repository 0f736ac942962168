"""The client over HTTPS: aiohttp carries the bytes, msgspec decodes them straight into what the caller wants.

An answer that is not a success becomes `ApiError`; no answer, or half of one, becomes `ConnectionError`, and then
it is unknown whether a write took place. Only refusals with `Retry-After` are retried here; every other retry is the
caller's, because only the caller knows what a second write would do.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.config import ClientConfig
from muster.client.credentials import Credentials, impersonation_headers
from muster.client.protocol import Obj, WatchEvent
from muster.client.ratelimit import RateLimit
from muster.client.stream import frames
from muster.client.verbs import JSON, Verbs

_RETRIES = 5
_WATCH_SECONDS = (300, 600)  # like other clients: long enough to be cheap, random so that reconnects spread


class HTTPClient(Verbs):
    """Implements `muster.client.protocol.Client` against any Kubernetes API server."""

    def __init__(self, config: ClientConfig) -> None:
        super().__init__()
        self.config = config
        self._credentials = Credentials(config)
        self._limit = RateLimit(config.qps, config.burst)
        self._connections = _Connections(config)
        self._impersonation = impersonation_headers(config)
        host = urlsplit(config.server).hostname or ""
        self._proxy = config.proxy_url or _proxy_from_environment(config.server, host)
        # On the same machine compressing costs more than carrying.
        self._gzip = config.compress and host not in ("localhost", "127.0.0.1", "::1")

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int | None = None,
        into: type[Any] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        seconds = random.randint(*_WATCH_SECONDS) if timeout_seconds is None else timeout_seconds
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(seconds),
        }
        # A server that forgets to end the watch is cut off a little later.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.config.timeout, sock_read=seconds + 30.0)
        path = resource.path(namespace)
        async with self._open("GET", path, query, timeout=timeout, gzip=False) as response:
            if response.status != 200:
                raise _error(response.status, await response.read(), response.headers)
            async for event in frames(response.content, into):
                yield event

    async def close(self) -> None:
        await self._connections.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        for attempt in range(_RETRIES + 1):
            async with self._open(method, path, query, body, content_type, accept) as response:
                answer = await response.read()
                if response.status < 300:
                    return answer
                error = _error(response.status, answer, response.headers)
                wait = _retry_after(response)
            if attempt == _RETRIES or wait is None:
                raise error
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        *,
        timeout: aiohttp.ClientTimeout | None = None,
        gzip: bool = True,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        await self._limit.wait()
        url = URL(self.config.server + path + _query(query), encoded=True)
        asked = {"Accept": accept, "Accept-Encoding": "gzip" if gzip and self._gzip else "identity"}
        if body is not None:
            asked["Content-Type"] = content_type
        try:
            response = await self._respond(method, url, body, asked, timeout)
            try:
                yield response
            finally:
                response.release() if response.content.at_eof() else response.close()
        except aiohttp.ClientConnectorCertificateError as error:
            reason = getattr(error.certificate_error, "verify_message", error.certificate_error)
            raise ConnectionError(f"{self.config.server}: certificate not trusted: {reason}") from error
        except aiohttp.ClientConnectorError as error:
            reason = error.os_error.strerror or str(error.os_error)
            raise ConnectionError(f"{method} {self.config.server}{path}: {reason}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ConnectionError(f"{method} {self.config.server}{path}: {reason}") from error

    async def _respond(
        self,
        method: str,
        url: URL,
        body: bytes | None,
        asked: dict[str, str],
        timeout: aiohttp.ClientTimeout | None,
    ) -> aiohttp.ClientResponse:
        """The response, after one more try with fresh credentials if the first ones were refused."""
        session = self._connections.session()
        again = True
        while True:
            identity, context = await self._credentials.current()
            headers: Any = {**identity, **asked}
            if self._impersonation:
                headers = [*headers.items(), *self._impersonation]
            _GUARD.set(self._guard if method != "GET" else None)
            response = await session.request(
                method,
                url,
                data=body,
                headers=headers,
                ssl=context if context is not None else True,
                server_hostname=self.config.tls_server_name or None,
                proxy=self._proxy or None,
                timeout=timeout or session.timeout,
                allow_redirects=False,
            )
            if response.status != 401 or not again or not self._credentials.refused():
                return response
            again = False
            response.release()


_GUARD: ContextVar[Callable[[], None] | None] = ContextVar("guard", default=None)


class _Request(aiohttp.ClientRequest):
    """A request that asks its guard when its connection stands and its bytes are about to leave, at every try."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        guard = _GUARD.get()
        if guard is not None:
            guard()
        return await super().send(conn)


class _Connections:
    """One session, opened when first needed and shared by a client and those fenced from it."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            config = self._config
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=config.connections, keepalive_timeout=75.0, socket_factory=_socket, happy_eyeballs_delay=None
                ),
                timeout=aiohttp.ClientTimeout(total=config.timeout, sock_connect=min(config.timeout, 30.0)),
                auto_decompress=True,
                skip_auto_headers=("User-Agent", "Content-Type"),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                read_bufsize=2**18,
                request_class=_Request,
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()


def _socket(address: Any) -> socket.socket:
    """A socket that notices a peer that vanished: a watch may be silent for minutes."""
    family, kind, proto = address[:3]
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    sock.setblocking(False)
    return sock


def _proxy_from_environment(server: str, host: str) -> str:
    if not host or proxy_bypass(host):
        return ""
    return getproxies().get(server.partition(":")[0], "")


def _query(query: Mapping[str, str] | None) -> str:
    if not query:
        return ""
    given = urlencode({key: value for key, value in query.items() if value})
    return f"?{given}" if given else ""


def _error(code: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    try:
        status = msgspec.json.decode(body, type=Obj)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = {}
    if status.get("kind") == "Status":
        return ApiError.from_status(code, status)
    text = body[:200].decode(errors="replace").strip() or f"the server answered {code}"
    return ApiError(code, "Unknown", text, retry_after=_seconds(headers.get("Retry-After")))


def _seconds(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _retry_after(response: aiohttp.ClientResponse) -> int | None:
    if response.status != 429 and response.status < 500:
        return None
    return _seconds(response.headers.get("Retry-After"))
