"""HTTP that is not quite HTTP: every answer is a Status below 500, soon, and the next request is served as ever."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator

import msgspec
import pytest

from load import client_tls
from muster.plane.plane import Plane
from muster.testing import api_server

MEBIBYTE = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
BOMB = gzip.compress(b" " * 50_000_000, 9)
SIZED = b"Content-Length: 2\r\n"
POSTS: dict[str, tuple[bytes, bytes]] = {
    "a compressed bomb": (b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(BOMB), BOMB),
    "gzip that is none": (b"Content-Encoding: gzip\r\nContent-Length: 3\r\n", b"abc"),
    "an encoding nobody knows": (b"Content-Encoding: zz\r\nContent-Length: 3\r\n", b"abc"),
    "more than 3 MiB announced": (b"Content-Length: 3145729\r\n", b""),
    "more than 3 MiB in chunks": (b"Transfer-Encoding: chunked\r\n", MEBIBYTE * 4 + b"0\r\n\r\n"),
    "a length and chunks": (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
    "a chunk of no size": (b"Transfer-Encoding: chunked\r\n", b"zz\r\n"),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello!"),
    "a negative length": (b"Content-Length: -5\r\n", b"hello!"),
    "a header of 100 kB": (SIZED + b"X: " + b"a" * 100_000 + b"\r\n", b"{}"),
    "two thousand headers": (SIZED + b"".join(b"X%d: a\r\n" % index for index in range(2000)), b"{}"),
    "an expectation nobody knows": (SIZED + b"Expect: x\r\n", b"{}"),
    "an upgrade": (SIZED + b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"{}"),
    "a zero byte in a header": (SIZED + b"X: a\x00b\r\n", b"{}"),
}
LINES = [
    b"GET /api/v1/nodes?" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://elsewhere/api HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x00\x01\x02\r\n\r\n",
    b"GET /%ff%00%2f HTTP/1.1\r\nHost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /api/v1/nodes HTTP/9.9\r\n\r\n",
    b"OPTIONS /api/v1/nodes HTTP/1.1\r\nHost: a\r\n\r\n",
]


class Line:
    """A bare TLS connection of an administrator."""

    def __init__(self, plane: Plane) -> None:
        authority = plane.api.credentials.authority
        pair = authority.for_client("admin", ["system:masters"])
        self._tls: ssl.SSLContext = client_tls(authority.pem, pair.cert + pair.key)
        self._port = int(plane.url.rpartition(":")[2])

    async def send(self, data: bytes) -> tuple[int, bytes]:
        """Send bytes and read the answer: its status and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        try:
            writer.write(data)
            async with asyncio.timeout(5):
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length")
                )
                return int(head.split()[1]), await reader.readexactly(length)
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    async with api_server(https=True) as plane:
        yield Line(plane)


async def check(line: Line, data: bytes) -> None:
    status, body = await line.send(data)
    assert 400 <= status < 500, body
    assert msgspec.json.decode(body)["kind"] == "Status"
    assert (await line.send(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")) == (200, b"ok")


@pytest.mark.parametrize("name", POSTS)
async def test_a_body_that_is_announced_wrongly(line: Line, name: str) -> None:
    head, body = POSTS[name]
    start = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"

    await check(line, start + head + b"\r\n" + body)


@pytest.mark.parametrize("data", LINES, ids=range(len(LINES)))
async def test_a_request_line_that_makes_no_sense(line: Line, data: bytes) -> None:
    await check(line, data)
