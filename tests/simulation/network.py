"""The network between clients and the server: requests and watches that are late, cut, lost, repeated or refused.

`SimClient` speaks the wire of `HTTPClient` (retries after `Retry-After`, `ConnectionError` where no answer came, watch
frames cut anywhere) and has the same fence. What may go wrong is decided by the `Trouble`s that are in force.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.protocol import Obj, WatchEvent
from muster.client.stream import frames
from muster.client.verbs import JSON, Verbs
from muster.server.request import Request, Response
from tests.simulation.loop import Process, SimLoop

REQUEST: contextvars.ContextVar[Exchange] = contextvars.ContextVar("request")
TIMEOUT = 60.0  # of a request, as in `ClientConfig`
KEEPALIVE = 60.0  # seconds after which a silent peer is noticed
RETRIES = 5
WATCH_SECONDS = (300, 600)
LATEST = 4.0  # seconds that a request is on its way at most: less than what a lease outlives its holder's deadline
WINDOW = 65_536  # bytes that may be on their way before the server waits
KINDS = (
    "delay",
    "lost answer",
    "duplicate",
    "409",
    "429",
    "500",
    "500 after the write",
    "410",
    "cut watch",
    "stuck consumer",
    "partition",
)


@dataclass(slots=True)
class Trouble:
    """Something that is wrong with the network of one client, or of all, for a while."""

    kind: str
    client: str  # empty: everybody's
    chance: float
    seconds: float
    rng: Random
    until: float = 0.0  # when it ends


class Exchange:
    """One request and its answer."""

    def __init__(self, client: SimClient, request: Request, sent_at: float) -> None:
        self.client = client
        self.request = request
        self.sent_at = sent_at
        self.answer: asyncio.Future[Response | Channel] = asyncio.get_running_loop().create_future()
        self.abandoned = False  # the client does not wait any more
        self.task: asyncio.Task[None] | None = None  # of the server
        self.deliveries = 1
        self.lose_answer = False
        self.spoil_answer = False
        self.revision_before = 0  # what was visible when it was sent


class Observer(Protocol):
    """Who hears what went over the wire."""

    def sent(self, exchange: Exchange) -> None: ...
    def answered(self, exchange: Exchange, response: Response) -> None: ...
    def unanswered(self, exchange: Exchange) -> None: ...
    def watch_opened(self, channel: Channel) -> None: ...
    def watched(self, channel: Channel, event: WatchEvent) -> None: ...


class Channel:
    """The answer to a watch: bytes on their way from the server to the client."""

    def __init__(self, network: Network, exchange: Exchange) -> None:
        self.network = network
        self.exchange = exchange
        self.pieces: list[bytes | Exception | None] = []
        self.under_way = 0
        self.broken = False
        self.start = 0
        self._last_arrival = 0.0
        self._wakeup: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    # --- the server's end --------------------------------------------------------------------------

    async def pump(self, stream: AsyncIterator[bytes]) -> None:
        """Send the frames, as fast as the client takes them."""
        async for chunk in stream:
            if self.broken:
                return
            self._push(chunk)
            while self.under_way > WINDOW:
                self._room = asyncio.get_running_loop().create_future()
                await self._room
        self._push(None)

    def _push(self, chunk: bytes | None) -> None:
        network, name = self.network, self.exchange.client.name
        trouble = network.hit("cut watch", name)
        if trouble is not None and chunk is not None:
            cut = trouble.rng.randrange(len(chunk) + 1)
            self._arrive(chunk[:cut])  # a line may break off in the middle
            self.cut(ConnectionError("the watch was cut"))
            return
        if chunk is not None and len(chunk) > 1 and network.rng.random() < 0.2:
            cut = network.rng.randrange(1, len(chunk))
            self._arrive(chunk[:cut])
            chunk = chunk[cut:]
        self._arrive(chunk)

    def _arrive(self, piece: bytes | Exception | None) -> None:
        network, client = self.network, self.exchange.client
        # What is sent while the network is cut arrives when it is mended, unless the keepalive ends the connection.
        delay = network.delay(client.name) + network.cut_off_for(client.name)
        trouble = network.hit("stuck consumer", client.name)
        if trouble is not None:
            delay += trouble.rng.random() * trouble.seconds
        self._last_arrival = max(self._last_arrival, network.loop.now + delay)
        if isinstance(piece, bytes):
            self.under_way += len(piece)
        network.process.at(self._last_arrival, self._deliver, piece)

    def _deliver(self, piece: bytes | Exception | None) -> None:
        self.pieces.append(piece)
        self._wake()

    def cut(self, error: Exception) -> None:
        """The connection ends for both; the client is told after what has arrived."""
        if not self.broken:
            self.broken = True
            self.network.channels.pop(self, None)
            if self.exchange.task is not None:
                self.exchange.task.cancel()
            self.network.process.at(max(self._last_arrival, self.network.loop.now), self._deliver, error)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    # --- the client's end --------------------------------------------------------------------------

    async def iter_any(self) -> AsyncIterator[bytes]:
        try:
            while True:
                while not self.pieces:
                    self._wakeup = asyncio.get_running_loop().create_future()
                    await self._wakeup
                piece = self.pieces.pop(0)
                if piece is None:
                    return
                if isinstance(piece, Exception):
                    raise piece
                self.under_way -= len(piece)
                if self._room is not None and not self._room.done():
                    self._room.set_result(None)
                yield piece
        finally:
            self.network.hung_up(self)


class Network:
    """Carries requests to the one server. `serve` is set by whoever runs it."""

    def __init__(self, loop: SimLoop, rng: Random, observer: Observer, counts: Counter[str]) -> None:
        self.loop = loop
        self.rng = rng
        self.observer = observer
        self.counts = counts
        self.process = Process(loop, "network")
        self.troubles: list[Trouble] = []
        self.channels: dict[Channel, None] = {}
        self.server: Any = None  # a ServerProcess that accepts, or None while there is none
        self._open: dict[Exchange, None] = {}

    # --- what goes wrong ---------------------------------------------------------------------------

    def hit(self, kind: str, client: str) -> Trouble | None:
        """The trouble of this kind that strikes now, if one does."""
        for trouble in self.troubles:
            if trouble.kind == kind and trouble.client in ("", client) and trouble.rng.random() < trouble.chance:
                self.counts[kind] += 1
                return trouble
        return None

    def cut_off_for(self, client: str) -> float:
        """Seconds until the network of a client is mended."""
        ends = [each.until for each in self.troubles if each.kind == "partition" and each.client in ("", client)]
        return max(0.0, max(ends, default=0.0) - self.loop.now)

    def delay(self, client: str) -> float:
        trouble = self.hit("delay", client)
        extra = trouble.rng.random() * min(trouble.seconds, 4.0) if trouble is not None else 0.0
        return self.rng.uniform(0.0003, 0.002) + extra

    # --- requests ----------------------------------------------------------------------------------

    def send(self, exchange: Exchange) -> None:
        self._open[exchange] = None
        name, method = exchange.client.name, exchange.request.method
        self.observer.sent(exchange)
        away = self.cut_off_for(name)
        if away:
            self.counts["partition"] += 1
            if away > LATEST:
                self.process.later(min(away, TIMEOUT), self._fail, exchange, "connection reset")
                return
            self.process.later(away, self._arrive, exchange)
            return
        refusal = self._refusal(exchange)
        if refusal is not None:
            self.process.later(self.delay(name), self._resolve, exchange, refusal)
            return
        if method in ("GET", "PUT", "DELETE") and not exchange.request.flag("watch") and self.hit("duplicate", name):
            exchange.deliveries = 2
        if method != "GET":
            exchange.lose_answer = self.hit("lost answer", name) is not None
            exchange.spoil_answer = self.hit("500 after the write", name) is not None
        self.process.later(self.delay(name), self._arrive, exchange)

    def _refusal(self, exchange: Exchange) -> Response | None:
        name, request = exchange.client.name, exchange.request
        if trouble := self.hit("429", name):
            return _status(429, "TooManyRequests", "too many requests", trouble.rng.choice((1, 1, 2, 5)))
        if self.hit("500", name):
            return _status(500, "InternalError", "the server has stumbled")
        conflicting = request.method in ("PUT", "PATCH") or request.path.endswith("/binding")
        if conflicting and self.hit("409", name):
            return _status(409, "Conflict", "the object has been modified; please apply your changes to the latest")
        if request.flag("watch") and self.hit("410", name):
            return _status(410, "Expired", "too old resource version")
        return None

    def _arrive(self, exchange: Exchange) -> None:
        if exchange.abandoned:
            self._open.pop(exchange, None)
        elif self.server is None:
            self.process.later(0.001, self._fail, exchange, "connection refused")
        else:
            self.server.accept(exchange)

    def respond(self, exchange: Exchange, response: Response | Channel) -> None:
        """The server has answered."""
        exchange.deliveries -= 1
        if exchange.deliveries:
            self.process.later(self.delay(exchange.client.name), self._arrive, exchange)
            return
        away = self.cut_off_for(exchange.client.name)
        if exchange.lose_answer:
            self.process.later(away + self.delay(exchange.client.name), self._fail, exchange, "connection reset")
            return
        if exchange.spoil_answer and isinstance(response, Response):
            response = _status(500, "InternalError", "the answer was lost on the way")
        self.process.later(away + self.delay(exchange.client.name), self._resolve, exchange, response)

    def _resolve(self, exchange: Exchange, response: Response | Channel) -> None:
        self._open.pop(exchange, None)
        if exchange.answer.done() or exchange.abandoned:
            return
        if isinstance(response, Response):
            self.observer.answered(exchange, response)
        exchange.answer.set_result(response)

    def _fail(self, exchange: Exchange, why: str) -> None:
        self._open.pop(exchange, None)
        if not exchange.answer.done():
            exchange.answer.set_exception(ConnectionError(why))

    def gave_up(self, exchange: Exchange) -> None:
        """The client waits no longer."""
        exchange.abandoned = True
        self.observer.unanswered(exchange)
        self._open.pop(exchange, None)

    def hung_up(self, channel: Channel) -> None:
        """The client has closed a watch."""
        channel.broken = True
        self.channels.pop(channel, None)
        if channel.exchange.task is not None:
            channel.exchange.task.cancel()

    # --- ends --------------------------------------------------------------------------------------

    def server_is_gone(self) -> None:
        """Every connection to it ends."""
        self.server = None
        for exchange in list(self._open):
            self.process.later(self.rng.uniform(0.0005, 0.01), self._fail, exchange, "connection reset by peer")
        for channel in list(self.channels):
            channel.exchange.task = None
            channel.cut(ConnectionError("connection reset by peer"))

    def client_is_gone(self, name: str) -> None:
        for exchange in [each for each in self._open if each.client.name == name]:
            exchange.abandoned = True
            self._open.pop(exchange)
            self.observer.unanswered(exchange)
        for channel in [each for each in self.channels if each.exchange.client.name == name]:
            self.hung_up(channel)

    def cut_watches(self, client: str) -> int:
        """Cut every watch of a client, or of all."""
        found = [each for each in self.channels if client in ("", each.exchange.client.name)]
        for channel in found:
            channel.cut(ConnectionError("the watch was cut"))
        return len(found)

    def partition_begins(self, client: str) -> None:
        """Watches are silent from now on; who keeps them open notices after a while."""
        for channel in [each for each in self.channels if client in ("", each.exchange.client.name)]:
            self.process.later(KEEPALIVE, self._keep_alive, channel)

    def _keep_alive(self, channel: Channel) -> None:
        if self.cut_off_for(channel.exchange.client.name):
            channel.cut(ConnectionError("the peer does not answer"))


class SimClient(Verbs):
    """Implements `muster.client.protocol.Client` over the simulated network."""

    def __init__(self, network: Network, name: str, identity: str = "") -> None:
        super().__init__()
        self.name = name  # of the process
        self.identity = identity or name  # of this run of it
        self.network = network

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
        network = self.network
        seconds = network.rng.randint(*WATCH_SECONDS) if timeout_seconds is None else timeout_seconds
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(seconds),
        }
        answer = await self._exchange("GET", resource.path(namespace), query, None, JSON)
        if isinstance(answer, Response):
            raise _error(answer)
        network.observer.watch_opened(answer)
        try:
            async for event in frames(answer, into):
                network.observer.watched(answer, event)
                yield event
        finally:
            network.hung_up(answer)

    async def close(self) -> None:
        return None

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        for attempt in range(RETRIES + 1):
            answer = await self._exchange(method, path, query, body, content_type)
            assert isinstance(answer, Response)
            if answer.status < 300:
                return answer.body
            wait = answer.headers.get("Retry-After")
            if attempt == RETRIES or wait is None:
                raise _error(answer)
            await asyncio.sleep(int(wait))
        raise AssertionError("the last attempt returns or raises")

    async def _exchange(
        self, method: str, path: str, query: Mapping[str, str] | None, body: bytes | None, content_type: str
    ) -> Response | Channel:
        if self._guard is not None and method != "GET":
            self._guard()
        spread = {name: (value,) for name, value in (query or {}).items() if value}
        headers = {"content-type": content_type} if body else {}
        request = Request(method, path, spread, headers, body or b"")
        exchange = Exchange(self, request, self.network.loop.now)
        self.network.send(exchange)
        try:
            async with asyncio.timeout(TIMEOUT):
                return await exchange.answer
        except TimeoutError:
            self.network.gave_up(exchange)
            raise ConnectionError(f"{method} {path}: no answer in time") from None
        except (asyncio.CancelledError, ConnectionError):
            self.network.gave_up(exchange)
            raise


def _status(code: int, reason: str, message: str, retry_after: int | None = None) -> Response:
    status: Obj = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    status["message"] = message
    if retry_after is not None:
        status["details"] = {"retryAfterSeconds": retry_after}
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
    return Response(code, msgspec.json.encode(status), headers=headers)


def _error(answer: Response) -> ApiError:
    return ApiError.from_status(answer.status, msgspec.json.decode(answer.body))
