"""Many clients in one process that cost the machine little: what is measured is the server, on the cores it shares.

Each client has a TLS connection of its own and sends one request at a time, written before the clock starts; of the
answer it reads the head and the length. A client library spends as much on a request as the server does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from muster.client.config import ClientConfig
from muster.client.credentials import tls_context

_END = b"\r\n\r\n"


def post(config: ClientConfig, path: str, body: bytes) -> bytes:
    """A request as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(config.server).netloc}\r\nUser-Agent: bench/1\r\n"
        f"Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Client(asyncio.Protocol):
    """Sends the next request when the last one is answered; any answer but 201 ends it."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._whole = 0  # bytes of the answer that is arriving; 0 until its head is there
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if not self._whole:
            end = received.find(_END)
            if end < 0:
                return
            head = bytes(received[:end]).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._whole = end + len(_END) + int(length)
            if b" 201 " not in head.partition(b"\r\n")[0]:
                self._fail(RuntimeError(bytes(received).decode(errors="replace")))
                return
        if len(received) >= self._whole:
            received.clear()
            self._whole = 0
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionResetError("the server closed the connection"))

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            if self._transport is not None:
                self._transport.abort()


async def send(config: ClientConfig, requests: list[bytes], clients: int) -> None:
    """All requests, by so many clients; returns when the last one is answered."""
    context = tls_context(config, config.cert_data, config.key_data)
    where = urlsplit(config.server)
    loop = asyncio.get_running_loop()
    queue = iter(requests)

    async def one() -> None:
        _, client = await loop.create_connection(lambda: _Client(queue), where.hostname, where.port, ssl=context)
        await client.done

    await asyncio.gather(*(one() for _ in range(clients)))
