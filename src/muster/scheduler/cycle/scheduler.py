"""The brain: events in, decisions out.

`handle` takes one fact; `next` takes one turn and returns what to do, in order. A turn first says what has
become due (status, waits, victims), then takes the next root in line and tries it; consecutive single
pods of one shape are placed in one pass, with the same result as one by one. The same events, times,
config and seed give the same decisions, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle import preempt
from muster.scheduler.cycle.event_handlers import EventHandlers
from muster.scheduler.cycle.schedule_one import MOST_NOTE, attempt, take_seats, tell_groups
from muster.scheduler.groups.group import PENDING, RUNNING, Group, Member
from muster.scheduler.groups.validity import INVALID, find_fault
from muster.scheduler.interface.decisions import Decision, Evict, RecordEvent
from muster.scheduler.interface.events import Event
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import PendingPod as Wish
from muster.scheduler.placement.request import PodGroupRequest
from muster.scheduler.placement.verdict import Assignment, Judged, Placed
from muster.scheduler.preemption.result import PreemptionAttempt
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.queue.scheduling_queue import SchedulingQueue
from muster.scheduler.runtime.config import Config
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status import waiting
from muster.scheduler.status.conditions import POD_SCHEDULED

MOST_IN_ONE_PASS = 512  # single pods of one shape


MOST_SILENT_ATTEMPTS = 64  # attempts without a word in one turn, so that events get their chance


class Scheduler:
    """A deterministic scheduler for pods and trees of groups."""

    def __init__(self, config: Config, *, seed: int = 0, gang_scheduling: bool = True) -> None:
        queue = SchedulingQueue(config.pod_initial_backoff, config.pod_max_backoff)
        self.state = SchedulerState(config, Evaluator(Cluster(seed=seed)), queue)
        self._intake = EventHandlers(self.state, gang_scheduling)

    def handle(self, event: Event, now: float) -> None:
        """Take one fact."""
        self._intake.handle(event, now)

    def next(self, now: float) -> list[Decision]:
        """Take one turn. An empty list means: nothing to do until an event comes or `wake_at` is reached."""
        state = self.state
        if not state.synced:
            return []
        decisions = list(self._due(now))
        for _ in range(MOST_SILENT_ATTEMPTS):
            if decisions:
                break
            entity = state.queue.pop()
            if entity is None:
                break
            decisions = self._turn(entity, now)
        else:
            return decisions
        if not decisions and state.orphans and state.queue.peek() is None:
            decisions = self._forgive_orphans()
        return decisions

    def wake_at(self, now: float) -> float | None:
        """When the next turn is due even if no event comes."""
        state = self.state
        if not state.synced:
            return None
        if state.outbox or state.queue.peek() is not None:
            return now
        bind_limit = state.config.bind_timeout
        due = [since + bind_limit for since in state.broken_since.values()]
        due += [time for time in (state.queue.next_due(), state.notices.next_due()) if time is not None]
        return min(due, default=None)

    # --- what has become due -----------------------------------------------------------------------

    def _due(self, now: float) -> Iterator[Decision]:
        state = self.state
        outbox, state.outbox = state.outbox, []
        yield from outbox
        state.queue.flush_timers(now)
        yield from self._judge_suspects(now)
        yield from self._review_groups(now)
        self._wake(now)
        yield from self._speak(now)
        yield from preempt.proceed(state, now)
        yield from self._tear_down(now)

    def _wake(self, now: float) -> None:
        state = self.state
        if state.cures:
            cures, state.cures = sorted(state.cures), set()
            state.queue.requeue_for_events(cures, now)
        if state.dirty:
            state.queue.requeue_for_capacity(state.capacity, now)
            preempt.wake_waiting(state)
            state.dirty = set()

    def _judge_suspects(self, now: float) -> Iterator[Decision]:
        """Trees whose objects changed may have become invalid, or been mended."""
        state = self.state
        for key in sorted(state.suspects):
            top = state.top(key)
            if top is None:
                state.faults.pop(key, None)
                continue
            fault = find_fault(top, state.forest)
            if fault is not None and fault.reason == INVALID:
                state.faults[top.key] = fault
                yield from tell_groups(state, top.subtree(), lambda group, found=fault: found)
                self._intake.review(top, now)
            elif state.faults.pop(top.key, None) is not None:
                self._intake.review(top, now)
        state.suspects.clear()

    def _review_groups(self, now: float) -> Iterator[Decision]:
        """Groups whose bound members changed say whether their minimum is met."""
        state = self.state
        seen: dict[EntityKey, Group] = {}
        for key in sorted(state.reviewed):
            group = state.forest.groups.get(key)
            while group is not None and group.key not in seen:
                seen[group.key] = group
                group = group.parent if not group.cyclic else None
        state.reviewed.clear()
        for group in sorted(seen.values(), key=lambda g: (not g.is_leaf, g.key)):
            yield from state.conditions.review(group, lambda found: preempt.still_leaving(state, found))
        for top in {g.root().key: g.root() for g in seen.values()}.values():
            self._note_broken(top, now)

    def _note_broken(self, top: Group, now: float) -> None:
        """A tree that never ran as a whole and is bound in part has a deadline."""
        state = self.state
        partly = not top.scheduled_once and not top.quorum_bound and any(leaf.confirmed > 0 for leaf in top.leaves())
        if partly and top.key in state.queue.entities:
            state.broken_since.setdefault(top.key, now)
        else:
            state.broken_since.pop(top.key, None)

    def _speak(self, now: float) -> Iterator[Decision]:
        """Trees that wait say for what."""
        state = self.state
        for key in state.notices.due(now):
            top = state.forest.groups.get(key)
            entity = state.queue.entities.get(key)
            if top is None or entity is None or key in state.faults:
                continue
            for notice in waiting.wait_reasons(top):
                entity.verdict, entity.message = notice.reason, notice.message
                said = state.conditions.initially_scheduled(notice.group, "False", notice.reason, notice.message)
                if said is not None:
                    yield said
                    yield RecordEvent(notice.group.ref, "Normal", notice.reason, "Scheduling", notice.message)
            yield from self._speak_for_orphaned_pods(top)

    def _speak_for_orphaned_pods(self, top: Group) -> Iterator[Decision]:
        """Pods whose group does not exist have no other object to be told on."""
        state = self.state
        for leaf in [leaf for leaf in top.leaves() if not leaf.exists]:
            text = f"pod group {leaf.key.name} does not exist"
            for member in sorted(leaf.pending.values(), key=lambda m: m.order):
                state.conditions.observe(member.uid, member.pod.status.conditions)
                said = state.conditions.set(member.ref, POD_SCHEDULED, "False", waiting.FOR_POD_GROUP, text)
                if said is not None:
                    yield said

    def _tear_down(self, now: float) -> Iterator[Decision]:
        """A tree that never ran and could not be completed in time gives its seats back, where its pods come again."""
        state = self.state
        for key, since in list(state.broken_since.items()):
            if now - since < state.config.bind_timeout:
                continue
            del state.broken_since[key]
            top = state.top(key)
            if top is None:
                continue
            bound = [m for leaf in top.leaves() for m in leaf.running.values() if m.state == RUNNING]
            bound = sorted((m for m in bound if m.traits[0] in state.config.profiles), key=lambda m: m.order)
            given_back = [m for m in bound if any(owner.controller for owner in m.pod.metadata.owner_references or ())]
            yield from (Evict(member.ref, top.ref, given_back=True) for member in given_back)
            kept = sorted(m.ref.name for m in bound if m not in given_back)
            note = (
                f"the minimum was not bound within {state.config.bind_timeout:g} s: {len(given_back)} pods are deleted"
            )
            note += f", {len(kept)} without a controller are kept ({', '.join(kept)})" if kept else ""
            yield RecordEvent(top.ref, "Warning", "BindTimeout", "Binding", note[:MOST_NOTE])

    def _forgive_orphans(self) -> list[Decision]:
        """Marks that no root needs any more are taken back once everyone had a turn."""
        state = self.state
        wanted = {uid for under_way in state.preempting.values() for uid in under_way.victims}
        orphans, state.orphans = state.orphans - wanted, set()
        return preempt.unmark(state, orphans)

    # --- one root ----------------------------------------------------------------------------------

    def _turn(self, entity: QueuedEntity, now: float) -> list[Decision]:
        state = self.state
        if entity.member is not None and not state.holds:
            batch = self._batch(entity)
            if len(batch) > 1:
                return self._place_batch(batch, now)
        return attempt(state, entity, now)

    def _batch(self, first: QueuedEntity) -> list[QueuedEntity]:
        """The single pods of one shape that come next in line anyway."""
        state = self.state
        assert first.member is not None
        shape = state.shape_of(first.member)
        batch = [first]
        while len(batch) < MOST_IN_ONE_PASS:
            entity = state.queue.peek()
            if entity is None or entity.member is None or state.shape_of(entity.member) is not shape:
                break
            state.queue.pop()
            batch.append(entity)
        return batch

    def _place_batch(self, batch: list[QueuedEntity], now: float) -> list[Decision]:
        """Many roots, one pass: the same seats as one by one, checked together."""
        state = self.state
        shape = state.shape_of(_pod_of(batch[0]))
        with state.evaluator.trial() as trial:
            slots = trial.place_many(shape, len(batch))
        seats = [
            Assignment(entity.uid, state.cluster.names[slot], slot) for entity, slot in zip(batch, slots, strict=False)
        ]
        wishes = tuple(
            Wish(entity.uid, entity.key.namespace, entity.key.name, shape, entity.priority) for entity in batch
        )
        request = PodGroupRequest(batch[0].key, minimum=len(seats), bound=0, members=wishes)
        if validate(Placed(tuple(seats), frozenset({request.key})), request, state.cluster) is not None:
            seats = []  # one by one, each with its own check and its own words
        decisions = list(take_seats(state, list(zip(batch, seats, strict=False))))
        for entity in batch[len(seats) :]:
            decisions += attempt(state, entity, now)
        return decisions

    # --- for those who look ------------------------------------------------------------------------

    def take_rounds(self) -> list[PreemptionAttempt]:
        """The considerations of preemption since someone last asked."""
        rounds = list(self.state.rounds)
        self.state.rounds.clear()
        return rounds

    def take_judged(self) -> list[Judged]:
        """The domains judged since someone last asked."""
        judged = list(self.state.judged)
        self.state.judged.clear()
        return judged

    def entities(self) -> Iterable[QueuedEntity]:
        """The queue in order, for listings and explanations."""
        return self.state.queue.in_order()

    def pending(self) -> int:
        """How many pods wait."""
        return sum(1 for member in self.state.forest.members.values() if member.state == PENDING)


def _pod_of(entity: QueuedEntity) -> Member:
    assert entity.member is not None
    return entity.member
