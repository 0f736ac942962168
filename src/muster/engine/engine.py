"""The engine: one brain, its informers and its writes, as one thing that runs and stops.

A single task owns the brain. It takes in what the informers and the writes reported, asks the brain for
its next turn, hands the decisions over and goes to sleep until something happens or something is due.
Until the first lists are complete, and while someone else leads, events are taken in and nothing is decided.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from muster.api.errors import ApiError
from muster.api.gates import GANG_SCHEDULING
from muster.api.resources import PODS
from muster.api.types import Pod
from muster.client.protocol import Client
from muster.engine.decision_log import DecisionLog
from muster.engine.dispatch import Dispatcher
from muster.engine.facts import Facts
from muster.engine.informer import Informer
from muster.engine.lanes import BIND, Lanes
from muster.engine.leader import Election, Elector, LeadershipLost, rival_of_default_scheduler
from muster.engine.lease_thread import ElectorThread
from muster.engine.logs import V, keys
from muster.engine.membership import membership
from muster.engine.metrics import BrainView, Metrics
from muster.engine.pace import Backoff, Pace
from muster.engine.recorder import Recorder
from muster.engine.served import Served, discover
from muster.engine.settings import Settings
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import Decision, RecordEvent
from muster.scheduler.interface.events import CacheSynced, Event
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.runtime.config import Config

log = logging.getLogger(__name__)

DEFAULT_SCHEDULER = "default-scheduler"
RIVAL_PERIOD = 10.0


class Rivalry(Exception):
    """Another scheduler serves the name that we were asked to serve."""


class Thinker(Protocol):
    """What the engine asks of a brain."""

    def handle(self, event: Event, now: float) -> None: ...

    def next(self, now: float) -> list[Decision]: ...

    def wake_at(self, now: float) -> float | None: ...


Upkeep = Callable[[Client, Served], Awaitable[None]]
"""What else a leader does, for as long as it leads; its writes are fenced."""


class Engine:
    """Runs a brain against an API server until it is stopped.

    With `connect_leases` the lease is renewed in a thread of its own, through a client made there.
    """

    def __init__(
        self,
        client: Client,
        config: Config,
        settings: Settings | None = None,
        *,
        brain: Thinker | None = None,
        pace: Pace | None = None,
        metrics: Metrics | None = None,
        config_source: dict[str, object] | None = None,
        connect_leases: Callable[[], Client] | None = None,
        upkeep: Upkeep | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.config = config
        self.brain: Thinker = brain or Scheduler(
            config,
            seed=self.settings.seed,
            gang_scheduling=self.settings.gates.enabled(GANG_SCHEDULING),
        )
        self.metrics = metrics or Metrics()
        self.ready = asyncio.Event()
        self.served: Served | None = None
        self.informers: dict[str, Informer] = {}
        self.elector: Elector | ElectorThread | None = None
        self.stopping = False
        self._source = config_source or {}
        self._client = client
        self._connect_leases = connect_leases
        self._upkeep = upkeep
        self._keeping_up: asyncio.Task[None] | None = None
        self._given_pace = pace
        self._inbox: deque[Event] = deque()
        self._bell = asyncio.Event()
        self._stop = asyncio.Event()
        self._crash: BaseException | None = None
        self._log: DecisionLog | None = None

    # --- from outside ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until `stop` is called. Raises `LeadershipLost` when the lease is lost, `Rivalry`, or `TooOld`."""
        self.pace = self._given_pace or Pace.real()
        stopped = asyncio.create_task(self._stop.wait())
        work = asyncio.create_task(self._work())
        try:
            await asyncio.wait({stopped, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            self.stopping = True
            stopped.cancel()
            work.cancel()
            await asyncio.gather(stopped, work, return_exceptions=True)
            self.ready.clear()

    def stop(self) -> None:
        """Finish the binds under way, give the lease back, and end."""
        self.stopping = True
        self._stop.set()

    def trouble(self) -> list[str]:
        """What keeps the engine from working properly at the moment, one line each."""
        found = [f"{name}: {informer.trouble}" for name, informer in self.informers.items() if informer.trouble]
        if self.served is None:
            found.append("the API server has not been reached yet")
        waiting = [name for name, informer in self.informers.items() if not informer.synced.is_set()]
        if waiting:
            found.append(f"not listed yet: {', '.join(waiting)}")
        return found

    async def settled(self) -> None:
        """Wait until nothing is left to take in, to decide or to write; for tests and simulations."""
        while True:
            await asyncio.sleep(0)
            if self._inbox or not self.ready.is_set():
                await asyncio.sleep(0.001)
            elif self._lanes.pending():
                await self._lanes.settled()
            elif (due := self.brain.wake_at(self.pace.now())) is None or due > self.pace.now():
                return

    # --- parts -------------------------------------------------------------------------------------

    async def _work(self) -> None:
        self.served = await self._discover()
        await self._refuse_rivalry()
        self._assemble(self.served)
        try:
            async with asyncio.TaskGroup() as tasks:
                for informer in self.informers.values():
                    tasks.create_task(informer.run())
                if self.elector is not None:
                    tasks.create_task(self.elector.run(self._cut_off))
                if DEFAULT_SCHEDULER in self.config.profiles:
                    tasks.create_task(self._watch_rival())
                if self._upkeep is not None:
                    self._keeping_up = tasks.create_task(self._keep_up(self._upkeep))
                tasks.create_task(self._think())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            await self._wind_down()

    async def _discover(self) -> Served:
        backoff = Backoff(self.pace, first=0.5, most=15.0)
        while True:
            try:
                served = await discover(self._client, self.settings.gates)
                break
            except ApiError as error:
                if error.code in (401, 403):
                    log.error("Not allowed to ask what is served", extra=keys(err=error.message))
                else:
                    log.warning("The API server cannot answer yet", extra=keys(err=error.message))
                await backoff.wait(error)
            except (ConnectionError, TimeoutError) as error:
                log.warning("The API server cannot be reached, trying again", extra=keys(err=str(error)))
                await backoff.wait()
        log.info("Connected", extra=keys(groupAPI=served.says(), profiles=",".join(self.config.profiles)))
        for note in served.notes:
            log.info("Note", extra=keys(note=note))
        return served

    def _assemble(self, served: Served) -> None:
        settings = self.settings
        self.elector = self._elector(settings.election) if settings.election is not None else None
        fenced = self._fenced = self._client.fenced(self.elector.guard) if self.elector else self._client
        self._lanes = Lanes(settings.limits, self._crashed, self.metrics.wrote)
        self._facts = Facts(self._look)
        self._recorder = Recorder(
            fenced,
            self._lanes,
            self.pace,
            api_version=served.api_version,
            reporter=self._reporter,
            instance=settings.instance,
            enabled=served.events,
        )
        self._dispatcher = Dispatcher(fenced, served, self._lanes, self._facts, self._recorder, self.pace, self._report)
        for kind, resource in served.resources.items():
            self.informers[kind] = Informer(self._client, resource, self._report, self.pace)
        members = membership(served.groups, self._label_changed)
        self.informers["Pod"].adjust = members
        self.informers["Pod"].forget = lambda uid: (members.forget(uid), self._facts.forget(uid))[0]
        self.metrics.profile_of, self.metrics.is_root = self._reporter, self._is_root
        self.metrics.registry.register(BrainView(self.brain, self._lanes.pending))
        if settings.decision_log is not None:
            self._log = DecisionLog.open(settings.decision_log, self._source, settings)

    def _elector(self, election: Election) -> Elector | ElectorThread:
        if self._connect_leases is None:
            return Elector(self._client, election, self.pace)
        return ElectorThread(self._connect_leases, election, self.pace)

    def _look(self, kind: str, namespace: str, name: str) -> object:
        informer = self.informers.get(kind)
        return informer.known.get((namespace, name)) if informer is not None else None

    def _reporter(self, about: ObjectRef) -> str:
        pod = self.informers["Pod"].known.get((about.namespace, about.name)) if about.kind == PODS.kind else None
        named = pod.spec.scheduler_name if pod is not None else ""
        return named if named in self.config.profiles else next(iter(self.config.profiles))

    def _is_root(self, group: ObjectRef) -> bool:
        known = self._look(group.kind, group.namespace, group.name)
        return getattr(getattr(known, "spec", None), "parent_composite_pod_group_name", None) is None

    def _label_changed(self, pod: Pod, note: str) -> None:
        meta = pod.metadata
        about = ObjectRef(PODS.kind, meta.namespace, meta.name, meta.uid)
        self._recorder.record(RecordEvent(about, "Warning", "PodGroupLabelChanged", "Scheduling", note))

    def _report(self, event: Event) -> None:
        self._inbox.append(event)
        self._bell.set()

    def _crashed(self, error: BaseException) -> None:
        self._crash = error
        self._bell.set()

    def _cut_off(self) -> None:
        """The lease is not surely ours any more: stop every write now."""
        self._lanes.abort()
        if self._keeping_up is not None:
            self._keeping_up.cancel()

    async def _keep_up(self, upkeep: Upkeep) -> None:
        assert self.served is not None
        if self.elector is not None:
            await self.elector.leading.wait()
        await upkeep(self._fenced, self.served)

    # --- the loop ----------------------------------------------------------------------------------

    async def _think(self) -> None:
        for informer in self.informers.values():
            await self._taking_in(informer.synced)
        if self.settings.tune_gc:
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000, 20, 100)
        if self.elector is not None:
            await self._taking_in(self.elector.leading)
            self.metrics.leading.labels(self.elector.election.name).set(1)
        self._take_in()
        self._handle(CacheSynced(), self.pace.now())
        log.info("Scheduling", extra=keys(nodes=len(self.informers["Node"].known)))
        self.ready.set()
        while True:
            self._take_in()
            await self._turns()
            await self._sleep()

    async def _taking_in(self, until: asyncio.Event) -> None:
        """Keep the brain up to date while it is not its turn."""
        waiting = asyncio.create_task(until.wait())
        try:
            while not until.is_set():
                bell = asyncio.create_task(self._bell.wait())
                await asyncio.wait({waiting, bell}, return_when=asyncio.FIRST_COMPLETED)
                bell.cancel()
                self._take_in()
        finally:
            waiting.cancel()

    def _take_in(self) -> None:
        self._bell.clear()
        if self._crash is not None:
            raise RuntimeError("a write failed in a way that nobody foresaw") from self._crash
        now = self.pace.now()
        taken = len(self._inbox)
        for _ in range(min(len(self._inbox), self.settings.most_events)):
            event = self._inbox.popleft()
            self._handle(event, now)
        if taken and self._dispatcher.claims.busy:
            self._dispatcher.claims.review(now)
        if self._inbox:
            self._bell.set()

    def _handle(self, event: Event, now: float) -> None:
        if self._log is not None:
            self._log.event(event, now)
        self.metrics.handled(event, now)
        self.brain.handle(event, now)

    async def _turns(self) -> None:
        """Turn after turn until the brain has nothing more to say; between two, everyone else gets a chance."""
        while True:
            now = self.pace.now()
            began = time.perf_counter()
            decisions = self.brain.next(now)
            if self._log is not None:
                self._log.turn(decisions, now)
            if isinstance(self.brain, Scheduler):
                took = time.perf_counter() - began
                self.metrics.considered(self.brain.take_preemptions(), took)
                self.metrics.judged(self.brain.take_domains(), took)
            if not decisions:
                return
            self.metrics.decided(decisions, now, time.perf_counter() - began)
            log.log(V(4), "Decided", extra=keys(decisions=len(decisions)))
            self._dispatcher.carry_out(decisions)
            await asyncio.sleep(0)
            self._take_in()

    async def _sleep(self) -> None:
        """Until something happens or something is due."""
        claims = self._dispatcher.claims
        due = [time for time in (self.brain.wake_at(self.pace.now()), claims.next_due()) if time is not None]
        if due:
            delay = min(due) - self.pace.now()
            if delay <= 0:
                await asyncio.sleep(0)
            else:
                try:
                    # Not wait_for: in Python 3.11 it can lose a cancellation that comes together with the bell.
                    async with asyncio.timeout(delay):
                        await self._bell.wait()
                except TimeoutError:
                    claims.review(self.pace.now())
        else:
            await self._bell.wait()

    # --- the end -----------------------------------------------------------------------------------

    async def _wind_down(self) -> None:
        try:
            self._lanes.close()
            async with asyncio.timeout(self.settings.patience):
                await self._lanes.drain((BIND,))
        except TimeoutError:
            log.warning("Binds were still under way", extra=keys(count=self._lanes.running(BIND)))
        await self._lanes.cancel()
        if self._log is not None:
            self._log.close()
        if self.elector is not None:
            self.metrics.leading.labels(self.elector.election.name).set(0)
            await self.elector.release()

    # --- rivals ------------------------------------------------------------------------------------

    async def _refuse_rivalry(self) -> None:
        if DEFAULT_SCHEDULER not in self.config.profiles or self._shares_lease():
            return
        holder = await rival_of_default_scheduler(self._client, self.pace)
        if holder:
            raise Rivalry(
                f"{holder} renews the lease kube-system/kube-scheduler, so a scheduler serves {DEFAULT_SCHEDULER} "
                "already: stop it first, or serve another name (--scheduler-name)"
            )

    async def _watch_rival(self) -> None:
        while not self._shares_lease():
            await self.pace.sleep(RIVAL_PERIOD)
            try:
                await self._refuse_rivalry()
            except (ApiError, ConnectionError, TimeoutError) as error:
                log.log(V(2), "Cannot look for other schedulers", extra=keys(err=str(error)))

    def _shares_lease(self) -> bool:
        """Elections on kube-scheduler's own lease exclude it anyway."""
        election = self.settings.election
        return election is not None and (election.namespace, election.name) == ("kube-system", "kube-scheduler")


__all__ = ["Engine", "LeadershipLost", "Rivalry", "Settings"]
