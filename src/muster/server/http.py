"""The HTTP adapter of the server: bytes in, `Request` out; `Response` or `WatchStream` in, bytes out. Nothing else.

Limits are here, because they are about connections: body and header sizes, requests in flight, time to read a body,
to answer, and to take an answer. Watches and followed logs may run long and count towards no limit. What is logged is
method, path and status; never a header, a query or a body.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qsl, unquote

from aiohttp import web
from multidict import CIMultiDict

from muster.api.errors import ApiError, bad_request, timeout, too_large, too_many_requests, unauthorized
from muster.certificates import Pair
from muster.server.auth.authentication import CallerCredentials
from muster.server.error_status import error_response
from muster.server.free_memory import release_soon
from muster.server.request import Request, Response, WatchStream

log = logging.getLogger(__name__)

Admit = Callable[[Request, CallerCredentials], None]  # sets the user, or raises; sees a request without its body
Handle = Callable[[Request], Awaitable[Response | WatchStream]]
_READS = frozenset(("GET", "HEAD", "OPTIONS"))
_COMPRESS_ABOVE = 128 * 1024
_END_AT_ONCE = 25  # streams
_MANY_ENDED, _SETTLED_SECONDS = 200, 5.0  # streams that held memory for what they sent, and when that is freed


class Limits(NamedTuple):
    """What one server takes on at a time."""

    body_bytes: int = 3 * 1024 * 1024
    reads: int = 400
    writes: int = 200
    answer_seconds: float = 60.0
    body_seconds: float = 30.0
    client_seconds: float = 30.0  # for a client to take what was sent
    idle_seconds: float = 120.0  # for the next request, and for its head to arrive
    head_bytes: int = 16 * 1024  # of one header; 128 headers at most
    connections: int = 10_000  # open at a time; beyond that idle ones are closed


class HttpServer:
    """Serves one handler on one port. A caller who is not admitted costs no body and no place in the queue."""

    def __init__(self, admit: Admit, handle: Handle, limits: Limits | None = None) -> None:
        self._admit = admit
        self._handle = handle
        self._limits = limits or Limits()
        self._reading = 0
        self._writing = 0
        self._listener: asyncio.Server | None = None
        self._server: _Server | None = None
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Listen; port 0 takes a spare one, which `port` then names."""
        limits = self._limits
        self._server = _Server(
            self._answer,
            access_log=None,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.head_bytes,
            max_field_size=limits.head_bytes,
            lingering_time=1.0,
            logger=log,
            most_open=limits.connections,
        )
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._server, host, port, ssl=tls, backlog=1024, ssl_handshake_timeout=10.0 if tls else None
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self, grace: float = 2.0) -> None:
        """Take no more connections, let answers finish for a moment, then close."""
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(grace)
            await self._server.abort_open()
        self._listener = self._server = None

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        connection = cast(_Connection, http.protocol)
        connection.busy = True
        try:
            return await self._limited(http)
        except ApiError as error:
            log.debug("%s refused: %d", http.method, error.code)
            response = refusal(error)
            if error.code in (408, 413):
                response.force_close()
            return response
        finally:
            connection.busy = False

    async def _limited(self, http: web.BaseRequest) -> web.StreamResponse:
        """One request, counted against the limit of its kind unless it may run long."""
        path, _, query = http.raw_path.partition("?")
        if not path.startswith("/"):
            raise bad_request("the request target must be a path")
        request = Request(http.method, _clean(path), _arguments(query) if query else {}, http.headers)
        self._admit(request, _credentials(http))
        if http.method in _READS:
            if _runs_long(request):
                return await self._serve(http, request)
            if self._reading >= self._limits.reads:
                raise _busy()
            self._reading += 1
            try:
                return await self._serve_in_time(http, request)
            finally:
                self._reading -= 1
        if self._writing >= self._limits.writes:
            raise _busy()
        self._writing += 1
        try:
            request.body = await self._body(http)
            return await self._serve_in_time(http, request)
        finally:
            self._writing -= 1

    async def _body(self, http: web.BaseRequest) -> bytes:
        most = self._limits.body_bytes
        if (http.content_length or 0) > most:
            raise _too_large(most)
        if not http.body_exists:
            return b""
        if http.content.is_eof() and http.content.total_bytes <= most:
            # Small bodies have arrived whole by now; that is nearly every request.
            return http.content.read_nowait()
        if http.headers.get("Expect", "").lower() == "100-continue" and http.transport is not None:
            http.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for chunk in http.content.iter_any():
                    size += len(chunk)
                    if size > most:
                        raise _too_large(most)
                    chunks.append(chunk)
        except TimeoutError:
            raise ApiError(408, "Timeout", "the request body did not arrive in time") from None
        except (web.RequestPayloadError, ConnectionError):
            raise bad_request("the request body could not be read") from None
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _serve_in_time(self, http: web.BaseRequest, request: Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return await self._serve(http, request)
        except TimeoutError:
            raise timeout("request did not complete within the allotted timeout") from None

    async def _serve(self, http: web.BaseRequest, request: Request) -> web.StreamResponse:
        answer = await self._handle(request)
        if isinstance(answer, WatchStream):
            return await self._stream(http, answer)
        log.debug("%s %s %d", request.method, request.path, answer.status)
        body = answer.body
        headers = _headers(answer.content_type, answer.headers)
        for warning in answer.warnings:
            headers.add("Warning", f"299 - {_quoted(warning)}")
        encoded = "Content-Encoding" in headers  # by another API server
        if len(body) > _COMPRESS_ABOVE and not encoded and "gzip" in http.headers.get("Accept-Encoding", ""):
            # In a thread: compressing a big list would block the event loop for too long.
            body = await asyncio.to_thread(_gzip, body)
            headers["Content-Encoding"] = "gzip"
            headers["Vary"] = "Accept-Encoding"
        response = web.Response(body=body, status=answer.status, headers=headers)
        if len(body) > _COMPRESS_ABOVE:
            await self._send_whole(http, response)
        return response

    async def _send_whole(self, http: web.BaseRequest, response: web.Response) -> None:
        """Send a large answer within the time that a client has to take it."""
        try:
            async with asyncio.timeout(self._limits.client_seconds):
                await response.prepare(http)
                await response.write_eof()
        except TimeoutError:
            _drop(http)
            raise ConnectionResetError("the client did not take the answer") from None

    async def _stream(self, http: web.BaseRequest, stream: WatchStream) -> web.StreamResponse:
        response = web.StreamResponse(status=stream.status, headers=_headers(stream.content_type, stream.headers))
        response.enable_chunked_encoding()
        connection = cast(_Connection, http.protocol)
        connection.streaming = asyncio.current_task()
        try:
            await response.prepare(http)
            async with aclosing(cast(Any, stream.frames)) as frames:
                async for frame in frames:
                    async with asyncio.timeout(self._limits.client_seconds):
                        await response.write(frame)
            await response.write_eof()
        except (TimeoutError, ConnectionError):
            _drop(http)
        finally:
            connection.streaming = None
        return response


class _Connection(web.RequestHandler):
    """A connection that ends its watch when the client goes away, and answers every error with a Status."""

    streaming: asyncio.Task[Any] | None = None
    busy = False  # with a request

    def connection_lost(self, exc: BaseException | None) -> None:
        server = cast("_Server | None", self._manager)
        super().connection_lost(exc)
        if self.streaming is not None and server is not None:
            server.end_soon(self.streaming)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= 500:
            log.error("%s %s failed", request.method, request.path, exc_info=exc)
        if status == 400:
            error = bad_request("the request is not well-formed HTTP, or its head is too large")
        else:
            error = ApiError(status, "InternalError", "Internal error occurred: see the server's log")
        response = refusal(error)
        response.force_close()
        return response


class _Server(web.Server):
    """Makes our connections, and knows which are open."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], most_open: int, **options: Any
    ) -> None:
        super().__init__(handler, **options)
        self._most_open = most_open
        self._open: dict[web.RequestHandler, asyncio.Transport] = {}  # in the order in which they came
        self._ending: deque[asyncio.Task[Any]] = deque()  # streams whose clients are gone
        self._ended = 0  # of them, since memory was last given back

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self._open) >= self._most_open:
            self._close_idle()
        self._open[handler] = transport

    def _close_idle(self) -> None:
        """Make room for a new connection: close the oldest idle one of the peer that has the most idle ones."""
        idle: dict[str, list[asyncio.Transport]] = {}
        for handler, transport in self._open.items():
            if not cast(_Connection, handler).busy and not transport.is_closing():
                idle.setdefault(str((transport.get_extra_info("peername") or ("",))[0]), []).append(transport)
        if not idle:
            log.warning("%d connections are open and all of them are busy", len(self._open))
            return
        peer = max(idle, key=lambda each: len(idle[each]))
        log.warning(
            "%d connections are open; closing an idle one of %d from %s", len(self._open), len(idle[peer]), peer
        )
        idle[peer][0].abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._open.pop(handler, None)

    def end_soon(self, stream: asyncio.Task[Any]) -> None:
        """End a stream; of thousands that lost their clients at once, a few in each turn of the loop."""
        self._ending.append(stream)
        if len(self._ending) == 1:
            self._loop.call_soon(self._end_some)

    def _end_some(self) -> None:
        for _ in range(min(len(self._ending), _END_AT_ONCE)):
            self._ending.popleft().cancel()
            self._ended += 1
        if self._ending:
            self._loop.call_soon(self._end_some)
        elif self._ended >= _MANY_ENDED:
            self._ended = 0
            self._loop.call_later(_SETTLED_SECONDS, release_soon)

    async def abort_open(self) -> None:
        """Abort the connections that are still open, without a TLS shutdown handshake."""
        for transport in self._open.values():
            transport.abort()
        # The sockets close in the next turns of the loop; the loop may be closed right after us.
        for _ in range(3):
            await asyncio.sleep(0)


def refusal(error: ApiError) -> web.Response:
    """The answer to a request that never reached the core."""
    answer = error_response(error)
    return web.Response(body=answer.body, status=answer.status, headers=_headers(answer.content_type, answer.headers))


def server_tls(pair: Pair, client_ca: bytes) -> ssl.SSLContext:
    """TLS for the server: our certificate, and client certificates of our CA where a client has one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=client_ca.decode())
    with tempfile.TemporaryDirectory(prefix="muster-") as directory:
        file = Path(directory) / "server.pem"
        file.touch(mode=0o600)
        file.write_bytes(pair.cert + pair.key)
        context.load_cert_chain(file)
    return context


def _credentials(http: web.BaseRequest) -> CallerCredentials:
    headers = http.headers
    transport = http.transport
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    impersonate = ()
    if [name for name in headers if name[:1] in "iI" and name[:12].lower() == "impersonate-"]:
        found = ((name.lower(), value) for name, value in headers.items())
        impersonate = tuple(pair for pair in found if pair[0].startswith("impersonate-"))
    if not all(_is_text(value) for _, value in impersonate):
        raise bad_request("the value of an Impersonate- header is not UTF-8")
    authorization = headers.get("Authorization", "")
    if not _is_text(authorization):
        raise unauthorized()
    subject = certificate["subject"] if certificate else ()
    return CallerCredentials(subject, authorization, impersonate)


def _is_text(value: str) -> bool:
    """Whether a header was UTF-8: bytes that are not arrive as lone surrogates, which nothing can be compared with."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _clean(path: str) -> str:
    if "%" in path:
        path = unquote(path)
    return path.rstrip("/") or "/" if path.endswith("/") else path


def _arguments(query: str) -> dict[str, tuple[str, ...]]:
    arguments: dict[str, tuple[str, ...]] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        arguments[key] = (*arguments[key], value) if key in arguments else (value,)
    return arguments


def _runs_long(request: Request) -> bool:
    target = request.target
    return request.flag("watch") or request.flag("follow") or (target is not None and target.watch)


def _headers(content_type: str, more: dict[str, str]) -> CIMultiDict[str]:
    return CIMultiDict(
        {
            "Content-Type": content_type,
            "Cache-Control": "no-cache, private",
            "X-Content-Type-Options": "nosniff",
            "Server": "muster",
            **more,
        }
    )


def _quoted(warning: str) -> str:
    # A header is one line of Latin-1; a backslash and a quote are escaped inside the quoted string.
    flat = " ".join(warning.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{flat}"'.encode("latin-1", "replace").decode("latin-1")


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(body) + compressor.flush()


def _busy() -> ApiError:
    return too_many_requests("too many requests, please try again later", 1)


def _too_large(most: int) -> ApiError:
    return too_large(f"Request entity too large: limit is {most}")


def _drop(http: web.BaseRequest) -> None:
    if http.transport is not None:
        http.transport.abort()
