"""A live cluster: one set of watches, however many pages are open.

The watches begin with the first page. Events are collected and taken in at most ten times a second; the queue, whose
rows may all change at once, is made again only as often as its cost stays a few per cent of one core.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from muster.api.errors import ApiError
from muster.api.gates import FeatureGates
from muster.api.groups import GROUP
from muster.api.resources import LEASES
from muster.client.clock import Clock, MonotonicClock
from muster.client.protocol import Client, Obj
from muster.dashboard.board import GROUPS, Board
from muster.dashboard.history import History, seconds_of
from muster.dashboard.source import BoardHolder, SourceStatus, fill
from muster.dashboard.threads import in_thread
from muster.engine.api_discovery import CRDS, NONE, ServedApis, UnsupportedServer, discover
from muster.engine.changeable_fields import changeable_fields
from muster.engine.event_source import EventSource
from muster.engine.group_membership import membership
from muster.engine.ignored_fields import hide_gated_fields
from muster.engine.published_gates import PLACES, groups_made_for, published_gates
from muster.logs import keys
from muster.scheduler.interface.events import Event, ObjectUpdated

log = logging.getLogger(__name__)

SHORTEST = 0.1  # seconds between two refreshes
SHARE = 50  # a refresh of the queue is followed by so many times its own duration without one
PATIENCE = 3.0  # how long a kind that cannot be listed holds up the first picture
RETRY_SECONDS = 5.0
LEASE_SECONDS = 15.0
_LEADERS = (("kube-system", "kube-scheduler"), *PLACES)


class GatesChanged(Exception):
    """The scheduler has other gates than before: what it is shown must be read anew."""


class LiveCluster:
    """The source of pages about a cluster that is watched through a client."""

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        gates: FeatureGates | None = None,
        clock: Clock | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.client = client
        self.served: ServedApis | None = None
        self._name = name
        self._gates = gates  # None: those that its scheduler says it has
        self._clock = clock or MonotonicClock()
        self._wall_clock = wall_clock
        self._holder = BoardHolder(Board())
        self._events: list[Event] = []
        self._arrived = asyncio.Event()
        self._ready = asyncio.Event()
        self._moved = asyncio.Condition()
        self._sources: dict[str, EventSource] = {}
        self._last_seen: dict[str, float] = {}
        self._delay = 0.0  # between the creation of the latest new object and its arrival here
        self._trouble = ""
        self._leaders: list[Obj] = []
        self._task: asyncio.Task[None] | None = None

    # --- the source --------------------------------------------------------------------------------

    @property
    def status(self) -> SourceStatus:
        forbidden = tuple(kind for kind, each in self._sources.items() if "forbidden" in each.trouble.lower())
        trouble = [each.trouble for each in self._sources.values() if each.trouble]
        return SourceStatus(
            "live",
            self._name,
            self._ready.is_set(),
            tuple(dict.fromkeys([self._trouble, *trouble] if self._trouble else trouble)),
            forbidden,
        )

    @property
    def history(self) -> History:
        return self._holder.history

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._keep_running(), name="dashboard-watches")

    async def ready(self) -> None:
        self.start()
        await self._ready.wait()

    async def at(self, moment: str, viewer: str = "") -> BoardHolder:
        await self.ready()
        return self._holder

    async def changed(self, version: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._holder.board.version != version)

    async def details(self) -> dict[str, Any]:
        now = self._clock.now()
        watches = [
            {
                "kind": kind,
                "objects": len(each.known),
                "trouble": each.trouble,
                "quietSeconds": round(now - self._last_seen[kind], 1) if kind in self._last_seen else None,
            }
            for kind, each in sorted(self._sources.items())
        ]
        groups = self.served.describe_groups() if self.served is not None else ""
        return {
            "watches": watches,
            "delaySeconds": round(self._delay, 1),
            "leaders": self._leaders,
            "groups": groups,
            "gates": self._holder.board.gates,
        }

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    # --- watching ----------------------------------------------------------------------------------

    async def _keep_running(self) -> None:
        """Whatever goes wrong is said on the pages, and everything is read anew."""
        while True:
            try:
                await self._run()
            except* GatesChanged:
                log.info("The scheduler has other feature gates now")
            except* Exception as error:
                first = error.exceptions[0]
                log.exception("The dashboard cannot follow the cluster")
                self._trouble = f"the cluster cannot be followed: {type(first).__name__}: {first}"
            await self._clock.sleep(RETRY_SECONDS)
            self._holder.board.load([])
            self._events = []

    async def _run(self) -> None:
        gates = self._gates or await published_gates(self.client)
        self.served = await self._discover(gates)
        self._holder.board.gates = gates.switched()
        self._holder.board.groups_by_label = self.served.groups == CRDS
        self._holder.board.changeable = await changeable_fields(self.client, self.served.groups)
        self._sources = {}
        hide = hide_gated_fields(gates)
        derived_for = await groups_made_for(self.client)
        members = membership(self.served.groups, lambda pod, note: None, derived_for)
        for kind, resource in self.served.resources.items():
            adjust = members if kind == "Pod" else hide if kind in GROUPS else None
            forget = members.forget if kind == "Pod" else None
            report = self._reporter(kind)
            self._sources[kind] = EventSource(self.client, resource, report, self._clock, adjust=adjust, forget=forget)
        async with asyncio.TaskGroup() as tasks:
            for source in self._sources.values():
                tasks.create_task(source.run())
            tasks.create_task(self._follow())
            tasks.create_task(self._watch_leaders(gates))

    async def _discover(self, gates: FeatureGates) -> ServedApis:
        while True:
            try:
                found = await discover(self.client, gates)
                self._trouble = ""
                return found
            except (ApiError, ConnectionError, TimeoutError, UnsupportedServer) as error:
                self._trouble = f"the API server does not answer: {error}"
                log.warning("The API server cannot be asked", extra=keys(err=str(error)))
                await self._clock.sleep(RETRY_SECONDS)

    def _reporter(self, kind: str) -> Callable[[Event], None]:
        def report(event: Event) -> None:
            self._events.append(event)
            self._last_seen[kind] = self._clock.now()
            self._arrived.set()

        return report

    async def _follow(self) -> None:
        """Take in what the first lists bring, then whatever changes."""
        await self._first_lists()
        async with self._holder.lock:
            taken, self._events = self._events, []
            await in_thread(self._begin, taken)
        self._ready.set()
        await self._notify()
        queue_due = 0.0
        while True:
            await self._wait_for_work(queue_due)
            started = self._clock.now()
            async with self._holder.lock:
                changed = self._take_in()
                if self._holder.board.queue_is_stale and started >= queue_due:
                    before = time.perf_counter()
                    self._holder.board.refresh_queue()
                    queue_due = started + max(SHORTEST, SHARE * (time.perf_counter() - before))
                    changed = True
                if self.history.due(self._wall_clock()):
                    self.history.sample(self._holder.board, self._wall_clock())
            if changed:
                await self._notify()
            await self._clock.sleep(max(0.0, SHORTEST - (self._clock.now() - started)))

    async def _wait_for_work(self, queue_due: float) -> None:
        """Until events arrive, the queue may be made again, or a sample is due."""
        wait = 5.0
        if self._holder.board.queue_is_stale:
            wait = max(SHORTEST, queue_due - self._clock.now())
        try:
            async with asyncio.timeout(wait):
                await self._arrived.wait()
        except TimeoutError:
            pass
        self._arrived.clear()

    async def _first_lists(self) -> None:
        for source in self._sources.values():
            while not source.synced.is_set():
                try:
                    async with asyncio.timeout(PATIENCE):
                        await source.synced.wait()
                except TimeoutError:
                    if source.trouble and "forbidden" in source.trouble.lower():
                        break  # the page says what may not be read

    def _begin(self, events: list[Event]) -> None:
        board = self._holder.board
        for event in events:
            board.apply(event)
        fill(board)
        for event in events:
            self.history.observe(event, board)
        self.history.sample(board, self._wall_clock())

    def _take_in(self) -> bool:
        board, now = self._holder.board, self._clock.now()
        taken, self._events = self._events, []
        for event in taken:
            board.apply(event, now)
        changed = board.refresh()
        for event in taken:
            self.history.observe(event, board)
        self._measure_delay(taken)
        return changed

    def _measure_delay(self, events: list[Event]) -> None:
        """How late new pods arrive here, by their creation time (whole seconds)."""
        for event in reversed(events):
            if isinstance(event, ObjectUpdated) and event.kind == "Pod" and not event.object.spec.node_name:
                created = seconds_of(event.object.metadata.creation_timestamp or "")
                if created:
                    self._delay = max(0.0, self._wall_clock() - created - 1.0)
                return

    async def _notify(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    # --- the leader --------------------------------------------------------------------------------

    async def _watch_leaders(self, gates: FeatureGates) -> None:
        while True:
            self._leaders = [found for place in _LEADERS if (found := await self._leader(*place)) is not None]
            await self._clock.sleep(LEASE_SECONDS)
            if self._gates is None and await published_gates(self.client) != gates:
                raise GatesChanged

    async def _leader(self, namespace: str, name: str) -> Obj | None:
        try:
            lease = await self.client.get(LEASES, name, namespace)
        except (ApiError, ConnectionError, TimeoutError):
            return None
        spec: Obj = lease.get("spec") or {}
        holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
        if not holder:
            return None
        return {"lease": f"{namespace}/{name}", "holder": holder, "renewed": renewed}

    def group_api(self) -> str:
        """The API group that serves PodGroups here."""
        if self.served is None or self.served.groups == NONE or "PodGroup" not in self.served.resources:
            return GROUP
        return self.served.resources["PodGroup"].group
