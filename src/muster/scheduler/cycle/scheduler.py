"""The scheduler: events in, decisions out.

`handle` takes in one event; `next` runs one scheduling cycle and returns what to do, in order. A cycle first does
what is due, then takes the next entity in line; consecutive single pods of one shape are placed in one pass, with the
same result as one by one. The same events, times, configuration and seed give the same decisions, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from muster.api import types
from muster.api.gates import DEFAULT, FeatureGates
from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle import event_handlers, held_seats, pre_bind, preempt, reserve
from muster.scheduler.cycle.binding import bind, choose_devices
from muster.scheduler.cycle.housekeeping import housekeeping, next_due
from muster.scheduler.cycle.schedule_one import run_search_slice, schedule_one
from muster.scheduler.cycle.view import SchedulerView
from muster.scheduler.cycle.wake_up import wake_waiting
from muster.scheduler.groups.group import PENDING, Member
from muster.scheduler.interface.decisions import Bind, Decision
from muster.scheduler.interface.events import BindFailed, Event
from muster.scheduler.placement.request import PendingPod, PodGroupRequest
from muster.scheduler.placement.verdict import Assignment, DomainsEvaluated, Placed
from muster.scheduler.preemption.result import PreemptionAttempt
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.runtime.config import Config
from muster.scheduler.state.scheduler_state import SchedulerState

MOST_IN_ONE_PASS = 512  # single pods of one shape
MOST_SILENT_ATTEMPTS = 64  # attempts without a decision in one cycle, so that events are taken in between


class Scheduler:
    """A deterministic scheduler for pods and trees of groups."""

    def __init__(self, config: Config, *, seed: int = 0, gates: FeatureGates = DEFAULT) -> None:
        self.state = SchedulerState(config, seed=seed, gates=gates)

    def handle(self, event: Event, now: float) -> None:
        """Take in one event."""
        event_handlers.handle(self.state, event, now)

    def next(self, now: float) -> list[Decision]:
        """Run one cycle. An empty list means: nothing to do until an event comes or `wake_at` is reached."""
        state = self.state
        if not state.synced:
            return []
        begun = state.planned_steps
        decisions = list(housekeeping(state, now))
        if state.reservations.learning:  # nobody is given room that may be kept for somebody else
            return decisions
        decisions = decisions or run_search_slice(state, now)
        for _ in range(MOST_SILENT_ATTEMPTS):
            if decisions or state.planned_steps - begun >= state.config.budget_steps or not wake_waiting(state, now):
                break
            entity = state.queue.pop()
            if entity is None:
                break
            decisions = self._schedule(entity, now)
        at_rest = not decisions and not state.searches and not state.signals.pending and state.queue.peek() is None
        if at_rest and state.preemptions.unclaimed:
            decisions = preempt.unmark(state, state.preemptions.release_unclaimed())
        return decisions

    def wake_at(self, now: float) -> float | None:
        """When the next cycle is due even if no event comes."""
        state = self.state
        if not state.synced:
            return None
        if state.conditions.has_posted or state.queue.peek() is not None or state.searches:
            return now
        if state.queue.has_unchecked or (state.signals.pending and len(state.queue.waiting)):
            return now
        return next_due(state)

    def is_idle(self, now: float) -> bool:
        """Whether nothing is left to do at this time: no entity in line, no search under way."""
        due = self.wake_at(now)
        return due is None or due > now

    def lost_races(self, binds: Sequence[Bind]) -> list[BindFailed]:
        """The answers to binds of one cycle that must not be sent, by what the events since then have shown."""
        return pre_bind.lost_races(self.state, binds)

    def bind_fault(self, bind: Bind) -> str:
        """Why a bind must not be sent any more; empty if it may."""
        return pre_bind.fault_of(self.state, bind)

    # --- beginning anew ----------------------------------------------------------------------------

    def may_restart(self) -> bool:
        """Whether a scheduler that is told the objects as they are now goes on as this one would.

        Everything but binds, evictions and searches under way can be read from the objects.
        """
        state = self.state
        return not (state.assumed.in_flight() or state.preemptions.entities() or state.searches)

    def take_over(self, other: Scheduler) -> None:
        """Go on with the state of another scheduler, which nobody uses any more."""
        self.state = other.state

    def snapshot(self, pod: types.Pod) -> types.Pod:
        """A pod as the scheduler knows it: it may have heard that the pod is bound before the watch has shown it."""
        member = self.state.forest.members.get(pod.metadata.uid)
        return member.pod if member is not None and member.node and not pod.spec.node_name else pod

    # --- one entity --------------------------------------------------------------------------------

    def _schedule(self, entity: QueuedEntity, now: float) -> list[Decision]:
        batch = [entity]
        if entity.member is not None and self.state.nominations.all_held:
            batch = self._batch(entity)
        by_timer = [one for one in batch if one.by_timer and one.hints.holder is None]
        decisions = self._place_batch(batch, now) if len(batch) > 1 else schedule_one(self.state, entity, now)
        missed = sum(one.state in (EntityState.BINDING, EntityState.PREEMPTING) for one in by_timer)
        self.state.measurements.add_missed(missed)
        return decisions

    def _batch(self, first: QueuedEntity) -> list[QueuedEntity]:
        """The single pods of one shape that come next in line anyway."""
        state = self.state
        shape = state.shape_of(_pod_of(first))
        kept = self._kept_from(first)
        batch = [first]
        while len(batch) < MOST_IN_ONE_PASS:
            entity = state.queue.peek()
            if entity is None or entity.member is None or state.shape_of(entity.member) is not shape:
                break
            if entity.woken != first.woken:  # what waits may have its turn in between
                break
            if self._kept_from(entity) != kept:
                break
            state.queue.pop()
            batch.append(entity)
        return batch

    def _kept_from(self, entity: QueuedEntity) -> tuple[int, float | None]:
        """What decides which held and reserved seats a pod must not take."""
        if not self.state.reservations:
            return (entity.priority if self.state.nominations else 0, None)
        return entity.priority, self.state.longest_run(entity)

    def _place_batch(self, batch: list[QueuedEntity], now: float) -> list[Decision]:
        """Many entities, one pass: the same nodes as one by one, checked together."""
        state = self.state
        shape = state.shape_of(_pod_of(batch[0]))
        kept = state.nominated_against(batch[0])
        with state.evaluator.trial() as trial:
            for (reserved, slot), count in Counter(kept).items():
                trial.place(reserved, slot, count)
            slots = trial.place_many(shape, len(batch))
        names = state.cluster.names
        assigned = [Assignment(entity.uid, names[slot], slot) for entity, slot in zip(batch, slots, strict=False)]
        pods = tuple(PendingPod(e.uid, e.key.namespace, e.key.name, shape, e.priority) for e in batch)
        request = PodGroupRequest(batch[0].key, minimum=len(assigned), bound=0, members=pods)
        if (
            validate(Placed(tuple(assigned), frozenset({request.key})), request, state.cluster, nominated=kept)
            is not None
        ):
            assigned = []  # one by one, each with its own check and its own message
        devices = choose_devices(state, assigned)
        if isinstance(devices, str):
            assigned, devices = [], None
        decisions = list(bind(state, list(zip(batch, assigned, strict=False)), devices))
        for entity in batch[len(assigned) :]:
            decisions += schedule_one(state, entity, now)
        return decisions

    # --- views and measurements --------------------------------------------------------------------

    def view(self) -> SchedulerView:
        """What may be read of the state."""
        return SchedulerView(self.state)

    def take_preemptions(self) -> list[PreemptionAttempt]:
        """The preemption attempts since they were last taken."""
        return self.state.measurements.take_preemptions()

    def take_domains(self) -> list[DomainsEvaluated]:
        """The domains evaluated since they were last taken."""
        return self.state.measurements.take_domains()

    def take_proofs(self) -> dict[str, int]:
        """What became of proofs of infeasibility since they were last taken."""
        return self.state.measurements.take_proofs()

    def take_missed(self) -> int:
        """How often the fallback timer found something to do for an entity, since this was last taken."""
        return self.state.measurements.take_missed()

    def adopt_reservations(self, now: float) -> None:
        """Take over the room that the conditions of groups say is kept; for answers about a cluster, without cycles."""
        reserve.adopt_said(self.state, now)

    def adopt_held_seats(self, now: float) -> None:
        """Hold the seats of members that do not exist yet; for answers about a cluster, without cycles."""
        held_seats.adopt(self.state, now)

    def take_reservations(self) -> dict[str, int]:
        """What became of reservations since they were last taken."""
        return self.state.measurements.take_reservations()

    def take_held_seats(self) -> dict[str, int]:
        """What became of seats for expected members since they were last taken."""
        return self.state.measurements.take_held()

    def pending(self) -> int:
        """How many pods wait."""
        return sum(1 for member in self.state.forest.members.values() if member.state == PENDING and not member.foreign)


def _pod_of(entity: QueuedEntity) -> Member:
    assert entity.member is not None
    return entity.member
