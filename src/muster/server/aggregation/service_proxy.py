"""Passes requests on to other API servers: over TLS, as the front proxy, with the caller's name in headers.

A redirect is not followed and not handed on, connecting takes at most `CONNECT_SECONDS`, an answer that is no watch
`ANSWER_SECONDS`, and what the other server sends is passed on as it comes: no more than a part of it is in memory.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from muster.api.errors import ApiError, bad_request, no_such_path
from muster.certificates import Pair
from muster.server.aggregation.identity import request_headers, response_headers
from muster.server.aggregation.remote_services import RemoteService
from muster.server.request import Request, Response, WatchStream
from muster.server.resources.kind import Reader
from muster.server.service_endpoints import NoEndpointError, ServiceEndpoints, server_name

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
_AT_ONCE = 1024 * 1024  # bytes; an answer that is larger is passed on in parts
_PATH_SAFE = "/:@!$&'()*+,;=~-._"


class ServiceProxy:
    """Calls other API servers."""

    def __init__(self, endpoints: ServiceEndpoints, reader: Reader, pair: Callable[[], Pair]) -> None:
        self._endpoints = endpoints
        self._reader = reader
        self._context = lru_cache(maxsize=64)(lambda bundle, insecure: _tls(bundle, insecure, pair()))
        self._session: aiohttp.ClientSession | None = None

    async def forward(self, request: Request, service: RemoteService) -> Response | WatchStream:
        """The other server's answer; 503 where it gives none."""
        if any(part in (".", "..") for part in request.path.split("/")):
            raise no_such_path()
        if "upgrade" in request.headers.get("Connection", "").lower():
            raise bad_request("connections that are upgraded are not passed on to other API servers")
        try:
            answer = await self.send(request, service)
        except NoEndpointError as error:
            raise unavailable(str(error)) from None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise unavailable(f"error trying to reach service: {_words(error)}") from None
        return await _passed_on(answer, request)

    async def send(
        self, request: Request, service: RemoteService, seconds: float = ANSWER_SECONDS
    ) -> aiohttp.ClientResponse:
        """The head of the other server's answer. Raises NoEndpointError, TimeoutError, ClientError or OSError."""
        host = server_name(service.namespace, service.service)
        address = self._endpoints.address(self._reader, service.namespace, service.service, service.port)
        total = None if _is_watch(request) else seconds
        async with asyncio.timeout(seconds):
            return await self._open().request(
                request.method,
                _url(address, request),
                data=request.body or None,
                headers=request_headers(request.headers, request.user),
                ssl=self._context(service.ca_bundle, service.insecure),
                server_hostname=host,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_SECONDS),
                skip_auto_headers=("User-Agent", "Content-Type", "Accept-Encoding"),
            )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                connector=aiohttp.TCPConnector(limit=0),  # the server's own limits are about connections and requests
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)


async def _passed_on(answer: aiohttp.ClientResponse, request: Request) -> Response | WatchStream:
    if 300 <= answer.status < 400 and "Location" in answer.headers:
        # The caller would follow it with the credentials that are for this server.
        answer.close()
        raise ApiError(502, "BadGateway", "the backend attempted to redirect this request, which is not permitted")
    headers = response_headers(answer.headers)
    content_type = answer.headers.get("Content-Type", "application/octet-stream")
    if _is_watch(request):
        return WatchStream(_parts(answer, b""), content_type, headers, answer.status)
    try:
        start = await _start(answer)
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        answer.close()
        raise unavailable(f"error trying to reach service: {_words(error)}") from None
    if answer.content.at_eof():
        answer.release()
        return Response(answer.status, start, content_type, headers)
    return WatchStream(_parts(answer, start), content_type, headers, answer.status)


async def _start(answer: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size <= _AT_ONCE and (part := await answer.content.readany()):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


async def _parts(answer: aiohttp.ClientResponse, start: bytes) -> AsyncIterator[bytes]:
    """The rest of an answer as it comes. A connection that breaks breaks the caller's, so that nothing looks whole."""
    try:
        if start:
            yield start
        async for part in answer.content.iter_any():
            yield part
    except aiohttp.ClientError as error:
        raise ConnectionResetError(_words(error)) from None
    finally:
        answer.close()


def _is_watch(request: Request) -> bool:
    long = request.flag("watch") or request.flag("follow")
    return request.method == "GET" and (long or (request.target is not None and request.target.watch))


def _url(address: str, request: Request) -> URL:
    pairs = [(name, value) for name, values in request.query.items() for value in values]
    query = f"?{urlencode(pairs)}" if pairs else ""
    return URL(f"https://{address}{quote(request.path, safe=_PATH_SAFE)}{query}", encoded=True)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {error.certificate_error}"
    return str(error) or type(error).__name__


def _tls(bundle: str, insecure: bool, pair: Pair) -> ssl.SSLContext:
    """The context for one server: what it must prove, and the certificate by which it knows us."""
    try:
        text = base64.b64decode(bundle).decode() if bundle else None
        context = ssl.create_default_context(cadata=text)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise ValueError(f"unable to load root certificates: {error}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with tempfile.TemporaryDirectory(prefix="muster-") as directory:
        file = Path(directory) / "front-proxy-client.pem"
        file.touch(mode=0o600)
        file.write_bytes(pair.cert + pair.key)
        context.load_cert_chain(file)
    return context
