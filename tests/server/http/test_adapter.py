"""The HTTP adapter: paths, bodies, limits, compression, streams. Spoken to with raw sockets and aiohttp."""

import asyncio
import gzip
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import msgspec
import pytest
from aiohttp import web

from muster.api.errors import unauthorized
from muster.server.auth.authentication import CallerCredentials
from muster.server.http import HttpServer, Limits, _Server
from muster.server.request import Request, Response, WatchStream

Answer = Response | WatchStream


class Site:
    """A server whose answer a test chooses, and a session to ask it with."""

    def __init__(self) -> None:
        self.answer: Callable[[Request], Awaitable[Answer]] = self._echo
        self.seen: list[Request] = []
        self.arrived = asyncio.Queue[Request]()
        self.server: HttpServer | None = None
        self.session = aiohttp.ClientSession(auto_decompress=False)

    async def _echo(self, request: Request) -> Answer:
        return Response(200, msgspec.json.encode({"path": request.path, "size": len(request.body)}))

    def admit(self, request: Request, presented: CallerCredentials) -> None:
        if "unknown" in presented.authorization:
            raise unauthorized()

    async def handle(self, request: Request) -> Answer:
        self.seen.append(request)
        self.arrived.put_nowait(request)
        return await self.answer(request)

    async def start(self, limits: Limits | None = None) -> None:
        self.server = HttpServer(self.admit, self.handle, limits)
        await self.server.start()

    @property
    def port(self) -> int:
        assert self.server is not None
        return self.server.port

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def raw(self, data: bytes, seconds: float = 5.0) -> bytes:
        """Send bytes as they are, read until the server closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        try:
            async with asyncio.timeout(seconds):
                return await reader.read()
        finally:
            writer.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    yield made
    await made.session.close()
    if made.server is not None:
        await made.server.stop(0.1)


async def status_of(response: aiohttp.ClientResponse) -> dict[str, object]:
    body = msgspec.json.decode(await response.read())
    assert body["kind"] == "Status"
    assert response.headers["Content-Type"] == "application/json"
    return body


# Paths and headers


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/version/", "/version", {}),
        ("/", "/", {}),
        ("/api/v1/namespaces/a%20b/pods", "/api/v1/namespaces/a b/pods", {}),
        ("/x?a=1&a=2&b=&c=x%3Dy", "/x", {"a": ("1", "2"), "b": ("",), "c": ("x=y",)}),
        ("/x?labelSelector=a%20in%20%28b%2Cc%29", "/x", {"labelSelector": ("a in (b,c)",)}),
    ],
)
async def test_paths_and_queries_are_read_as_they_are_meant(
    site: Site, target: str, path: str, query: dict[str, tuple[str, ...]]
) -> None:
    await site.start()
    await site.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert (site.seen[0].path, site.seen[0].query) == (path, query)


async def test_header_names_have_no_case(site: Site) -> None:
    await site.start()
    async with site.session.get(site.url("/"), headers={"aCCept": "x"}):
        assert site.seen[0].headers.get("accept") == "x"


async def test_answers_say_that_they_are_private_and_what_they_are(site: Site) -> None:
    await site.start()
    async with site.session.get(site.url("/")) as response:
        assert response.headers["Cache-Control"] == "no-cache, private"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "aiohttp" not in response.headers["Server"]


async def test_warnings_travel_as_headers_on_one_line_each(site: Site) -> None:
    async def answer(_: Request) -> Answer:
        return Response(200, b"{}", warnings=['unknown field "a"', "two\nlines ✓"])

    site.answer = answer
    await site.start()
    async with site.session.get(site.url("/")) as response:
        assert response.headers.getall("Warning") == ['299 - "unknown field \\"a\\""', '299 - "two lines ?"']


async def test_a_head_request_has_no_body(site: Site) -> None:
    await site.start()
    async with site.session.head(site.url("/x")) as response:
        assert (response.status, await response.read()) == (200, b"")
    async with site.session.get(site.url("/x")) as response:
        assert response.status == 200


async def test_connections_are_kept(site: Site) -> None:
    await site.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    for _ in range(3):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        await reader.readuntil(b"}")
    writer.close()


async def test_something_that_is_not_http_gets_a_status_and_is_cut_off(site: Site) -> None:
    await site.start()
    answer = await site.raw(b"HELLO THERE\r\n\r\n")
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert b'"kind":"Status"' in answer


async def test_a_head_that_is_too_large_is_refused(site: Site) -> None:
    await site.start()
    answer = await site.raw(b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n")
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert site.seen == []


# Bodies


async def test_a_body_at_the_limit_passes_and_one_above_is_refused(site: Site) -> None:
    await site.start(Limits(body_bytes=1000))
    async with site.session.post(site.url("/"), data=b"x" * 1000) as response:
        assert (await response.json())["size"] == 1000
    async with site.session.post(site.url("/"), data=b"x" * 1001) as response:
        assert response.status == 413
        assert (await status_of(response))["reason"] == "RequestEntityTooLarge"


async def test_a_body_of_unknown_length_is_counted_as_it_comes(site: Site) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    await site.start(Limits(body_bytes=1000))
    async with site.session.post(site.url("/"), data=pieces()) as response:
        assert response.status == 413
    assert site.seen == []


async def test_a_small_body_that_unpacks_to_a_large_one_is_refused(site: Site) -> None:
    await site.start(Limits(body_bytes=1000))
    packed = gzip.compress(b"x" * 1_000_000)
    async with site.session.post(site.url("/"), data=packed[:900], headers={"Content-Encoding": "gzip"}) as response:
        assert response.status in (400, 413)
    assert site.seen == []


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on(site: Site) -> None:
    await site.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"abc")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_body_that_comes_too_slowly_is_cut_off(site: Site) -> None:
    await site.start(Limits(body_seconds=0.1))
    answer = await site.raw(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 408")
    assert site.seen == []


async def test_a_request_head_that_never_ends_is_cut_off(site: Site) -> None:
    await site.start(Limits(idle_seconds=0.2))
    assert await site.raw(b"GET / HTTP/1.1\r\nHost: x\r\n") == b""


async def test_nobody_unknown_is_listened_to_or_takes_a_place(site: Site) -> None:
    await site.start(Limits(writes=1))
    head = b"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: unknown\r\nContent-Length: 1000000\r\n\r\n"
    slow = [asyncio.create_task(site.raw(head + b"abc")) for _ in range(3)]
    async with site.session.post(site.url("/"), data=b"x") as response:
        assert response.status == 200
    for answer in await asyncio.gather(*slow):
        assert answer.startswith(b"HTTP/1.1 401")
        assert b"WWW-Authenticate: Bearer" in answer


# Too much at once, too long


@pytest.mark.parametrize(("method", "limits"), [("GET", Limits(reads=2)), ("POST", Limits(writes=2))])
async def test_more_requests_than_the_limit_are_told_to_come_back(site: Site, method: str, limits: Limits) -> None:
    release = asyncio.Event()

    async def answer(_: Request) -> Answer:
        await release.wait()
        return Response(200, b"{}")

    site.answer = answer
    await site.start(limits)
    waiting = [asyncio.create_task(site.session.request(method, site.url("/"))) for _ in range(2)]
    for _ in waiting:
        await site.arrived.get()
    async with site.session.request(method, site.url("/")) as response:
        assert response.status == 429
        assert response.headers["Retry-After"] == "1"
        assert (await status_of(response))["reason"] == "TooManyRequests"
    release.set()
    assert [(await one).status for one in waiting] == [200, 200]
    async with site.session.request(method, site.url("/")) as response:
        assert response.status == 200


async def test_watches_count_towards_no_limit(site: Site) -> None:
    async def answer(request: Request) -> Answer:
        async def forever() -> AsyncIterator[bytes]:
            yield b"{}\n"
            await asyncio.sleep(60)

        return WatchStream(forever()) if request.flag("watch") else Response(200, b"{}")

    site.answer = answer
    await site.start(Limits(reads=1))
    watches = [await site.session.get(site.url("/pods?watch=true")) for _ in range(5)]
    async with site.session.get(site.url("/pods")) as response:
        assert response.status == 200
    for watch in watches:
        watch.close()


async def test_an_answer_that_takes_too_long_is_a_timeout(site: Site) -> None:
    async def answer(_: Request) -> Answer:
        await asyncio.sleep(30)
        return Response(200)

    site.answer = answer
    await site.start(Limits(answer_seconds=0.1))
    async with site.session.get(site.url("/")) as response:
        assert response.status == 504
        assert (await status_of(response))["reason"] == "Timeout"


async def test_a_bug_behind_the_adapter_is_a_status_without_its_details(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(_: Request) -> Answer:
        raise RuntimeError("the secret is sesame")

    site.answer = answer
    await site.start()
    async with site.session.get(site.url("/")) as response:
        assert response.status == 500
        assert "sesame" not in str(await status_of(response))


# Compression


@pytest.mark.parametrize(
    ("size", "asked", "packed"), [(200_000, "gzip", True), (200_000, "identity", False), (1000, "gzip", False)]
)
async def test_only_large_answers_are_compressed_and_only_when_asked(
    site: Site, size: int, asked: str, packed: bool
) -> None:
    async def answer(_: Request) -> Answer:
        return Response(200, b"x" * size)

    site.answer = answer
    await site.start()
    async with site.session.get(site.url("/"), headers={"Accept-Encoding": asked}) as response:
        body = await response.read()
        assert (response.headers.get("Content-Encoding") == "gzip") is packed
        assert len(gzip.decompress(body) if packed else body) == size


# Streams


async def test_frames_arrive_as_they_are_made(site: Site) -> None:
    more = asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        yield b"one\n"
        await more.wait()
        yield b"two\n"

    async def answer(_: Request) -> Answer:
        return WatchStream(frames())

    site.answer = answer
    await site.start()
    async with site.session.get(site.url("/pods?watch=1")) as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        assert await response.content.readline() == b"one\n"
        more.set()
        assert await response.content.read() == b"two\n"


async def test_a_watch_ends_when_its_client_leaves(site: Site) -> None:
    ended = asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        try:
            yield b"one\n"
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def answer(_: Request) -> Answer:
        return WatchStream(frames())

    site.answer = answer
    await site.start()
    response = await site.session.get(site.url("/pods?watch=1"))
    await response.content.readline()
    response.close()
    async with asyncio.timeout(2):
        await ended.wait()


async def test_a_watcher_that_does_not_read_is_dropped_and_holds_little(site: Site) -> None:
    sent, ended = 0, asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        nonlocal sent
        try:
            while True:
                sent += 1
                yield b"x" * 100_000
        finally:
            ended.set()

    async def answer(_: Request) -> Answer:
        return WatchStream(frames())

    site.answer = answer
    await site.start(Limits(client_seconds=0.3))
    _, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=1)
    writer.write(b"GET /pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(5):
        await ended.wait()
    assert sent < 500
    writer.close()


async def test_a_client_that_does_not_take_a_large_answer_is_dropped(site: Site) -> None:
    async def answer(_: Request) -> Answer:
        return Response(200, b"x" * 50_000_000)

    site.answer = answer
    await site.start(Limits(client_seconds=0.2))
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=1)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.6)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(50_000_000)
    writer.close()


async def test_stopping_ends_open_connections(site: Site) -> None:
    async def answer(_: Request) -> Answer:
        await asyncio.sleep(60)
        return Response(200)

    site.answer = answer
    await site.start()
    asked = asyncio.create_task(site.session.get(site.url("/")))
    await site.arrived.get()
    assert site.server is not None
    await site.server.stop(0.1)
    with pytest.raises(aiohttp.ClientError):
        await asked


async def test_idle_connections_make_room_for_new_ones(site: Site):
    await site.start(Limits(connections=5))
    open_ones = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(20)]
    await asyncio.sleep(0.05)

    answer = await site.raw(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200"), answer
    closed = [reader for reader, _ in open_ones if reader.at_eof() or reader.exception() is not None]
    assert len(closed) >= 14, "the oldest idle ones were closed"
    assert open_ones[0][0] in closed
    assert open_ones[-1][0] not in closed
    for _, writer in open_ones:
        writer.close()


@pytest.mark.parametrize(
    ("header", "code"),
    [(b"Authorization: Bearer \xff\xfe", 401), (b"Impersonate-User: \xff", 400), (b"Impersonate-Group: \xc3", 400)],
)
async def test_a_header_of_credentials_that_is_not_utf_8_is_refused(site: Site, header: bytes, code: int):
    await site.start()

    answer = await site.raw(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + header + b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 %d" % code), answer
    assert b'"kind":"Status"' in answer


async def test_streams_that_lose_their_clients_at_once_end_a_few_at_a_time() -> None:
    async def refuse(http: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError

    server = _Server(refuse, most_open=10)
    streams = [asyncio.create_task(asyncio.Event().wait()) for _ in range(200)]
    await asyncio.sleep(0)
    for stream in streams:
        server.end_soon(stream)
    ended: list[int] = []
    while not all(stream.done() for stream in streams):
        await asyncio.sleep(0)
        ended.append(sum(stream.done() for stream in streams))
    steps = [after - before for before, after in itertools.pairwise([0, *ended])]
    assert max(steps) <= 25
    assert all(stream.cancelled() for stream in streams)
