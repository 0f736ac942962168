"""The task that owns the scheduler: events in, scheduling cycles, decisions out, sleep until something happens.

Until the first lists are complete, and while another process leads, events are taken in and nothing is decided. Before
binds are sent, what the watches have shown since is taken in and the binds are looked at a second time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from muster.api.resources import PODS
from muster.client.clock import Clock
from muster.engine.assembly import EngineParts
from muster.engine.binding_lease import BindingLease
from muster.engine.inbox import Inbox
from muster.engine.metrics import Metrics
from muster.engine.settings import GC_THRESHOLDS, Settings
from muster.logs import V, keys
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import AllocateClaim, Bind, Decision, PromiseVolume, SelectVolumeNode
from muster.scheduler.interface.events import CacheSynced, Event, ObjectUpdated
from muster.scheduler.simulation.decision_log import SchedulerProtocol

log = logging.getLogger(__name__)


READS = 4  # turns of the event loop that bring what has arrived from the sockets into the inbox


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Decisions with binds that are not sent yet."""

    decisions: list[Decision]
    since: float
    gang: bool  # whether a bind is that of a group's member


class SchedulingLoop:
    """Runs one scheduler with the parts of one engine."""

    def __init__(
        self,
        scheduler: SchedulerProtocol,
        parts: EngineParts,
        inbox: Inbox,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
        new_scheduler: Callable[[], Scheduler] | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._parts = parts
        self._gates = parts.dispatcher.gates
        self._inbox = inbox
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        self._new_scheduler = new_scheduler  # for the next segment of the decision log
        self._holds_lease = False  # since binds were decided, until they are on their way or nothing is left to decide
        self._acquiring: asyncio.Task[None] | None = None
        self._held_back: list[HeldBack] = []  # decisions with binds that are not dispatched yet

    async def run(self, ready: asyncio.Event) -> None:
        """Schedule until cancelled; `ready` is set when scheduling begins."""
        parts = self._parts
        for source in parts.sources.values():
            await self._take_events_until(source.synced)
        self._tune_gc()
        if parts.elector is not None:
            await self._take_events_until(parts.elector.leading)
            self._metrics.leading.labels(parts.elector.election.name).set(1)
        self._take_events()
        self._handle(CacheSynced(), self._clock.now())
        if parts.decision_log is not None:
            parts.decision_log.snapshot_ends()
        log.info("Scheduling", extra=keys(nodes=len(parts.sources["Node"].known)))
        ready.set()
        try:
            while True:
                self._take_events()
                await self._run_cycles()
                await self._sleep()
        finally:
            if self._acquiring is not None:
                self._acquiring.cancel()

    def _tune_gc(self) -> None:
        """What the scheduler knows now stays: look for garbage elsewhere, and seldom."""
        if self._settings.tune_gc:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)

    async def _take_events_until(self, until: asyncio.Event) -> None:
        """Keep the scheduler up to date while it must not decide."""
        waiting = asyncio.create_task(until.wait())
        try:
            while not until.is_set():
                wakeup = asyncio.create_task(self._inbox.wakeup.wait())
                await asyncio.wait({waiting, wakeup}, return_when=asyncio.FIRST_COMPLETED)
                wakeup.cancel()
                self._take_events()
                if self._log_is_full():
                    await self._begin_segment(synced=False)
        finally:
            waiting.cancel()

    def _take_events(self) -> None:
        now = self._clock.now()
        events = self._inbox.take(self._settings.most_events)
        for event in events:
            self._handle(event, now)
        if events and self._gates.busy:
            self._gates.review(now)

    def _handle(self, event: Event, now: float) -> None:
        if self._parts.decision_log is not None:
            self._parts.decision_log.event(event, now)
        self._metrics.handled(event, now)
        if self._parts.foreign_pods is not None:
            self._parts.foreign_pods.handled(event, now)
        self._scheduler.handle(event, now)

    async def _run_cycles(self) -> None:
        """One scheduling cycle after the other until there is nothing to decide; between two, other tasks run."""
        while True:
            self._send_held_back()
            if self._log_is_full() and not await self._begin_segment(synced=True):
                self._parts.queue.start()
                return
            now = self._clock.now()
            began = time.perf_counter()
            decisions = self._scheduler.next(now)
            self._measure(decisions, now, began)
            if not decisions:
                self._parts.queue.start()
                if not self._held_back:
                    self._leave_lease()
                return
            log.log(V(4), "Decided", extra=keys(decisions=len(decisions)))
            self._parts.queue.hold()
            self._hand_over(decisions)
            self._parts.queue.start()
            for _ in range(READS if self._held_back else 1):
                await asyncio.sleep(0)
            self._take_events()

    # --- the decision log --------------------------------------------------------------------------

    def _log_is_full(self) -> bool:
        return self._parts.decision_log is not None and self._parts.decision_log.is_full

    async def _begin_segment(self, *, synced: bool) -> bool:
        """Begin a segment of the decision log with a snapshot, and go on with a scheduler made from that alone.

        So the segment replays byte for byte without the ones before it. That waits for a moment without binds and
        evictions under way. False: nothing must be decided now, so that the binds under way end and it comes.
        """
        decision_log, scheduler = self._parts.decision_log, self._scheduler
        if decision_log is None or self._new_scheduler is None or not isinstance(scheduler, Scheduler):
            return True
        while len(self._inbox):
            self._take_events()
        if self._held_back or self._gates.busy or not scheduler.may_restart():
            return not (decision_log.is_overfull and scheduler.state.assumed.in_flight() and not self._held_back)
        fresh, now = self._new_scheduler(), self._clock.now()
        decision_log.next_segment()
        snapshot: list[Event] = [*self._snapshot(scheduler), *([CacheSynced()] if synced else [])]
        for number, event in enumerate(snapshot):
            decision_log.event(event, now)
            fresh.handle(event, now)
            if number % 500 == 499:
                await asyncio.sleep(0)
        decision_log.snapshot_ends()
        scheduler.take_over(fresh)
        self._tune_gc()
        return True

    def _snapshot(self, scheduler: Scheduler) -> list[Event]:
        """Every object as it is known now; events that come meanwhile stay in the inbox."""
        return [
            ObjectUpdated(kind, scheduler.snapshot(obj) if kind == PODS.kind else obj)
            for kind, source in self._parts.sources.items()
            for obj in source.known.values()
        ]

    # --- binds -------------------------------------------------------------------------------------

    @property
    def deciding(self) -> bool:
        """Whether binds were decided that are not on their way yet."""
        return bool(self._held_back)

    def _hand_over(self, decisions: list[Decision]) -> None:
        """Dispatch decisions; those with binds once the lease is held and what has arrived meanwhile is taken in."""
        if not isinstance(self._scheduler, Scheduler) or not any(isinstance(each, Bind) for each in decisions):
            self._parts.dispatcher.dispatch(decisions)
            return
        self._held_back.append(self._hold_back(decisions))
        lease = self._parts.binding_lease
        if lease is None or self._holds_lease or self._acquiring is not None:
            return
        if lease.try_acquire():
            self._holds_lease = True
        else:
            self._acquiring = asyncio.create_task(self._acquire(lease))

    def _hold_back(self, decisions: list[Decision]) -> HeldBack:
        in_group = self._parts.dispatcher.in_group
        gang = any(isinstance(decision, Bind) and in_group(decision.pod) for decision in decisions)
        return HeldBack(decisions, self._clock.now(), gang)

    def _due_at(self, held: HeldBack) -> float:
        """When held back binds are sent: a gang's once other schedulers have done what they had begun."""
        foreign = self._parts.foreign_pods
        return foreign.settled_at(held.since) if foreign is not None and held.gang else held.since

    async def _acquire(self, lease: BindingLease) -> None:
        try:
            await lease.acquire()
        finally:
            self._inbox.wakeup.set()

    def _send_held_back(self) -> None:
        """Look at the binds that wait a second time, and dispatch those that are still possible."""
        if self._acquiring is not None and self._acquiring.done():
            self._acquiring.result()
            self._acquiring, self._holds_lease = None, True
        if not self._held_back or self._acquiring is not None:
            return
        assert isinstance(self._scheduler, Scheduler)
        now, before, self._held_back = self._clock.now(), self._held_back, []
        sent = False
        for held in before:
            if now < self._due_at(held):
                self._held_back.append(held)
                continue
            decisions = held.decisions
            binds = [decision for decision in decisions if isinstance(decision, Bind)]
            lost = self._scheduler.lost_races(binds)
            for event in lost:
                self._inbox.report(event)
            self._parts.dispatcher.dispatch(
                without_lost({event.uid for event in lost}, decisions) if lost else decisions
            )
            sent = sent or len(lost) < len(binds)
        if sent and not self._held_back:
            self._leave_lease()

    def _leave_lease(self) -> None:
        lease = self._parts.binding_lease
        if lease is not None and self._holds_lease:
            self._holds_lease = False
            lease.leave()

    def _measure(self, decisions: list[Decision], now: float, began: float) -> None:
        if self._parts.decision_log is not None:
            self._parts.decision_log.cycle(decisions, now)
        if isinstance(self._scheduler, Scheduler):
            took = time.perf_counter() - began
            self._metrics.preemptions_considered(self._scheduler.take_preemptions(), took)
            self._metrics.domains_evaluated(self._scheduler.take_domains(), took)
            self._metrics.proofs_checked(self._scheduler.take_proofs())
            self._metrics.wakeups_missed(self._scheduler.take_missed())
            self._metrics.reservations_changed(self._scheduler.take_reservations())
            self._metrics.held_seats_changed(self._scheduler.take_held_seats())
        if decisions:
            self._metrics.decided(decisions, now, time.perf_counter() - began)

    async def _sleep(self) -> None:
        """Until something happens or something is due."""
        wakeup = self._inbox.wakeup
        held = [self._due_at(each) for each in self._held_back] if self._acquiring is None else []
        times = (self._scheduler.wake_at(self._clock.now()), self._gates.next_due(), *held)
        due = [when for when in times if when is not None]
        if not due:
            await wakeup.wait()
            return
        delay = min(due) - self._clock.now()
        if delay <= 0:
            await asyncio.sleep(0)
            return
        try:
            # Not wait_for: in Python 3.11 it can lose a cancellation that comes together with the wakeup.
            async with asyncio.timeout(delay):
                await wakeup.wait()
        except TimeoutError:
            self._gates.review(self._clock.now())


def without_lost(uids: set[str], decisions: list[Decision]) -> list[Decision]:
    """The decisions without the binds of some pods, and without what was decided for them: their volumes and claims."""
    kept: list[Decision] = []
    for decision in decisions:
        if isinstance(decision, Bind) and decision.pod.uid in uids:
            while kept and isinstance(kept[-1], SelectVolumeNode | PromiseVolume):
                kept.pop()
        else:
            kept.append(decision)
    if not any(isinstance(each, Bind) for each in kept):
        return [each for each in kept if not isinstance(each, AllocateClaim)]
    # A claim that a pod still needs keeps its allocation, whichever pod it came with.
    needed = {each.claim for each in kept if isinstance(each, AllocateClaim) and each.consumer.uid not in uids}
    return [each for each in kept if not isinstance(each, AllocateClaim) or each.claim in needed]
