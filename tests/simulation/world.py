"""One simulated day: the processes, the deeds done to them, and what is wrong with what happened."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.client.protocol import WatchEvent
from muster.nodes import Inventory
from muster.server.request import Response
from muster.server.store import sqlite, table
from tests.simulation import deeds, liveness
from tests.simulation.deeds import Deed
from tests.simulation.disk import SimDisk
from tests.simulation.history import Entry, History
from tests.simulation.invariants import CANARY, Invariants
from tests.simulation.loop import Deadlock, SimLoop
from tests.simulation.network import Channel, Exchange, Network, SimClient
from tests.simulation.processes import (
    Component,
    ControllersProcess,
    EngineProcess,
    ForeignScheduler,
    KubeletsProcess,
    ServerProcess,
)

MOST_CALLBACKS = 3_000_000
MOST_COMPLAINTS = 8
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Outcome:
    """What became of a day."""

    seed: int
    deeds: list[Deed]
    complaints: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    digest: str = ""
    seconds: float = 0.0  # virtual
    revisions: int = 0


class World:
    """Everything of one day. Hears what goes over the wire, and passes it on to those who check."""

    def __init__(self, seed: int, day: Sequence[Deed] | None = None) -> None:
        rng = Random(f"{seed} setup")
        self.seed = seed
        self.kind = "calm" if rng.random() < 0.15 else "stormy"
        self.replays = seed % 8 == 0
        self.day = list(deeds.a_day(seed, self.kind) if day is None else day)
        self.outcome = Outcome(seed, self.day)
        self.counts = self.outcome.counts
        self.loop = SimLoop(Random(f"{seed} loop"))
        self.disk = SimDisk(self.loop, Random(f"{seed} disk"), self.counts)
        self.history = History(self.disk, lambda: self.loop.now, self.complain)
        self.network = Network(self.loop, Random(f"{seed} network"), self, self.counts)
        self.invariants = Invariants(self, self.history, self.complain)
        self.history.listeners.append(self._tell)
        self.users = SimClient(self.network, "users")
        self.troubled_until = 0.0
        self.touched: dict[str, float] = {}
        self._paused: dict[str, list[tuple[float, float]]] = {}
        self.node_count = rng.randrange(2, 5)
        self.second = rng.random() < 0.2
        self.components: dict[str, Any] = {}
        self._build(rng)

    def _build(self, rng: Random) -> None:
        inventory = Inventory(count=self.node_count, cpu="4", memory="32Gi", nodes_per_rack=2)
        made: list[Component] = [
            ServerProcess(self),
            EngineProcess(self, "a", "muster", elects=True, shares=self.second),
            EngineProcess(self, "b", "muster", elects=True, shares=self.second),
            ControllersProcess(self),
            KubeletsProcess(self, inventory),
            ForeignScheduler(self),
        ]
        if self.second:
            made.append(EngineProcess(self, "c", "second", elects=False, shares=True))
        self.components = {each.name: each for each in made}
        self.electing = ("a", "b")
        self.scheduler_names = frozenset(each.name for each in made if isinstance(each, EngineProcess))
        self.clients = [name for name in self.components if name != "server"]
        if rng.random() < 0.3:
            for each in made:
                each.rate = 1.0 + rng.uniform(-0.002, 0.002)
            self.counts["clock drift"] += 1

    # --- for those who act and check ---------------------------------------------------------------

    def complain(self, text: str) -> None:
        if len(self.outcome.complaints) < MOST_COMPLAINTS:
            self.outcome.complaints.append(f"{self.loop.now:.3f} {text}")
            self.said(f"WRONG: {text}")

    def said(self, text: str) -> None:
        self.outcome.lines.append(f"{self.loop.now:9.3f}  {text}")

    def trouble_for(self, seconds: float) -> None:
        self.troubled_until = max(self.troubled_until, self.loop.now + seconds)

    def touch(self, group: str) -> None:
        self.touched[group] = self.loop.now

    def pause(self, name: str, seconds: float) -> None:
        process = self.components[name].process
        if process is not None and process.alive:
            self.counts[f"pause of {name}"] += 1
            self.said(f"{name} is paused for {seconds} s")
            self.trouble_for(seconds + 45.0)
            process.paused_until = self.loop.now + seconds
            self._paused.setdefault(name, []).append((self.loop.now, self.loop.now + seconds))

    def was_paused(self, name: str, since: float) -> bool:
        return any(end >= since for _, end in self._paused.get(name, ()))

    def team_of(self, name: str) -> frozenset[str]:
        """Whose binds a scheduler must know: on a calm day those of everybody who shares the binding lease."""
        if self.kind == "calm":
            return self.scheduler_names
        return frozenset(self.electing) if name in self.electing else frozenset((name,))

    def scheduler_of(self, name: str) -> str:
        """Which scheduler the pods of a group of this name ask for: always the same one."""
        return "second" if self.second and zlib.crc32(name.encode()) % 3 == 0 else "muster"

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def ended(self, component: Component, error: BaseException | None) -> None:
        """A process has ended by itself."""
        expected = ("LeadershipLost", "ConnectionError", "ApiError", "TimeoutError")
        names = {type(each).__name__ for each in _leaves(error)}
        if error is not None and component.name != "server" and not names <= set(expected):
            self.complain(f"{component.name} ended with {error!r}: {_leaves(error)}")

    # --- what goes over the wire -------------------------------------------------------------------

    def sent(self, exchange: Exchange) -> None:
        exchange.revision_before = self.history.revision
        self.invariants.sent(exchange)
        request = exchange.request
        if request.method != "GET" and "/leases/" not in request.path:
            self.said(f"{exchange.client.identity}: {request.method} {request.path} {_short(request.body)}")

    def answered(self, exchange: Exchange, response: Response) -> None:
        self.invariants.done(exchange)
        request = exchange.request
        if request.method != "GET" and response.status >= 300:
            self.said(f"{exchange.client.identity}: {response.status} to {request.method} {request.path}")
        injected = b"stumbled" in response.body or b"on the way" in response.body
        if response.status == 500 and not injected and not self._store_failed():
            self.complain(f"the server answered 500 to {request.method} {request.path}: {response.body[:200]!r}")
        self.history.answered(exchange, response.status, response.body)

    def _store_failed(self) -> bool:
        store = self.components["server"].store
        return store is not None and bool(store.failure)

    def unanswered(self, exchange: Exchange) -> None:
        self.invariants.done(exchange)

    def watch_opened(self, channel: Channel) -> None:
        request = channel.exchange.request
        self.said(f"{channel.exchange.client.identity}: watch {request.path} from {request.arg('resourceVersion')}")
        self.history.watch_opened(channel)

    def watched(self, channel: Channel, event: WatchEvent) -> None:
        self.history.watched(channel, event.type, event.resource_version)

    def _tell(self, entry: Entry) -> None:
        if entry.key[0] in ("pods", "podgroups.scheduling.k8s.io", "nodes", "compositepodgroups.scheduling.k8s.io"):
            who = entry.origin.client.identity if entry.origin is not None else "?"
            self.said(f"   @{entry.revision} {entry.type} {entry.key[0]} {entry.key[2]} by {who} {_state(entry)}")

    # --- the day -----------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Live the whole day, and the night in which everything must come to rest."""
        handler = _Errors(self)
        root = logging.getLogger("muster")
        root.addHandler(handler)
        gc.collect()
        gc.disable()
        self.loop.world.context.run(asyncio.set_event_loop, self.loop)
        try:
            self.loop.run_until_complete(self.loop.world.spawn(self._live()))
        except Deadlock as error:
            self.complain(f"deadlock: {error}")
        except RuntimeError as error:
            self.complain(f"the day did not end: {error!r}")
        finally:
            self._finish()
            root.removeHandler(handler)
            gc.enable()
        return self.outcome

    def _finish(self) -> None:
        outcome = self.outcome
        for error in self.loop.errors[:3]:
            self.complain(f"unhandled: {error}")
        outcome.seconds, outcome.revisions = self.loop.now, self.history.revision
        lines = hashlib.sha256("\n".join(outcome.lines).encode())
        lines.update(self.history.digest.digest())
        outcome.digest = lines.hexdigest()[:16]
        asyncio.set_event_loop(None)
        self.loop.shut_down()

    async def _live(self) -> None:
        await self._begin()
        work = [asyncio.ensure_future(self._do(deed)) for deed in self.day]
        reviews = asyncio.ensure_future(self._review())
        await asyncio.sleep(max(0.0, deeds.LAST + 1.0 - self.loop.now))
        await self._heal(work)
        await liveness.check(self)
        reviews.cancel()

    async def _begin(self) -> None:
        self.components["server"].start()
        await liveness.until_served(self)
        await liveness.prepare(self)
        for component in self.components.values():
            component.start()

    async def _do(self, deed: Deed) -> None:
        await asyncio.sleep(max(0.0, deed.at - self.loop.now))
        self.said(f"-- {deed}")
        self.counts[f"deed: {deed.name}"] += 1
        await deeds.do(self, deed)

    async def _review(self) -> None:
        while True:
            await asyncio.sleep(5.0)
            self.invariants.review()

    async def _heal(self, work: list[asyncio.Future[None]]) -> None:
        """The faults end."""
        self.said("-- the faults end")
        for task in work:
            task.cancel()
        for result in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        self.network.troubles.clear()
        self.disk.full = self.disk.fails_to_sync = False
        self.disk.slow = 0.0
        for component in self.components.values():
            if component.process is not None:
                component.process.paused_until = 0.0
        await liveness.heal(self)


class _Errors(logging.Handler):
    """What the product logs: a traceback is a fault, and so is a secret."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage() + str(getattr(record, "keys", ""))
        self._world.said(f"log {record.levelname} {text[:160]}")
        if record.exc_info:
            self._world.complain(f"traceback in the log: {record.getMessage()}: {record.exc_info[1]!r}")
        if CANARY.decode() in text:
            self._world.complain(f"I13 a secret stands in the log: {text[:80]}")


def narrow_windows(rng: Random) -> None:
    """Keep so little history that compaction and 410 happen within a day; or as much as the product does."""
    narrow = rng.random() < 0.5
    table.KEEP_AT_LEAST, table._TRIM_EVERY = (8, 4) if narrow else (1_024, 256)
    table.WINDOW_SECONDS = 2.0 if narrow else 75.0
    sqlite.KEEP_SECONDS, sqlite._COMPACT_AFTER_ROWS = (15.0, 50) if narrow else (300.0, 1_000)
    sqlite._CHECKPOINT_EVERY = 1.0 if narrow else 5.0


def live(seed: int, day: Sequence[Deed] | None = None) -> Outcome:
    """One day from its seed."""
    narrow_windows(Random(f"{seed} windows"))
    return World(seed, day).run()


def _leaves(error: BaseException | None) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error] if error is not None else []


def _short(body: bytes) -> str:
    return body[:160].decode(errors="replace") if len(body) < 400 else ""


def _state(entry: Entry) -> str:
    obj = entry.object()
    if entry.key[0] != "pods":
        return ""
    spec, meta, status = obj["spec"], obj["metadata"], obj.get("status") or {}
    words = [spec.get("nodeName", ""), status.get("phase", ""), "going" if meta.get("deletionTimestamp") else ""]
    if status.get("nominatedNodeName"):
        words.append(f"nominated {status['nominatedNodeName']}")
    return " ".join(word for word in words if word)
