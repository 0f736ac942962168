"""A scripted API server: it answers what a test tells it to, and remembers what it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from muster.certificates import Authority
from muster.client.config import ClientConfig
from muster.server.auth.authentication import CallerCredentials
from muster.server.http import HttpServer, server_tls
from muster.server.request import Request, Response, WatchStream

Answer = Response | WatchStream


class ScriptedServer:
    """Answers requests in order from `script`; the last answer is repeated."""

    def __init__(self) -> None:
        self.script: list[Answer | Callable[[Request], Awaitable[Answer]]] = [Response(200, b"{}")]
        self.requests: list[Request] = []
        self.presented: list[CallerCredentials] = []
        self.port = 0

    def admit(self, request: Request, presented: CallerCredentials) -> None:
        self.presented.append(presented)

    async def handle(self, request: Request) -> Answer:
        self.requests.append(request)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return await answer(request) if callable(answer) else answer

    @property
    def last(self) -> Request:
        return self.requests[-1]

    @property
    def config(self) -> ClientConfig:
        return ClientConfig(f"http://127.0.0.1:{self.port}", timeout=5.0)


def an_answer(value: object, status: int = 200, **headers: str) -> Response:
    return Response(status, msgspec.json.encode(value), headers={k.replace("_", "-"): v for k, v in headers.items()})


def a_watch(*frames: bytes) -> WatchStream:
    async def stream() -> AsyncIterator[bytes]:
        for frame in frames:
            yield frame

    return WatchStream(stream())


@asynccontextmanager
async def tls_server(scripted: ScriptedServer, authority: Authority, *names: str) -> AsyncIterator[int]:
    """The scripted server behind TLS, with the names in its certificate."""
    server = HttpServer(scripted.admit, scripted.handle)
    pair = authority.for_server(names or ("127.0.0.1",))
    await server.start(tls=server_tls(pair, authority.pem))
    try:
        yield server.port
    finally:
        await server.stop(0.1)
