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
        self.world = SchedulerState(config, Evaluator(Cluster(seed=seed)), queue)
        self._intake = EventHandlers(self.world, gang_scheduling)

    def handle(self, event: Event, now: float) -> None:
        """Take one fact."""
        self._intake.handle(event, now)

    def next(self, now: float) -> list[Decision]:
        """Take one turn. An empty list means: nothing to do until an event comes or `wake_at` is reached."""
        world = self.world
        if not world.synced:
            return []
        decisions = list(self._due(now))
        for _ in range(MOST_SILENT_ATTEMPTS):
            if decisions:
                break
            root = world.queue.pop()
            if root is None:
                break
            decisions = self._turn(root, now)
        else:
            return decisions
        if not decisions and world.orphans and world.queue.peek() is None:
            decisions = self._forgive_orphans()
        return decisions

    def wake_at(self, now: float) -> float | None:
        """When the next turn is due even if no event comes."""
        world = self.world
        if not world.synced:
            return None
        if world.outbox or world.queue.peek() is not None:
            return now
        bind_limit = world.config.bind_timeout
        due = [since + bind_limit for since in world.broken_since.values()]
        due += [time for time in (world.queue.next_due(), world.notices.next_due()) if time is not None]
        return min(due, default=None)

    # --- what has become due -----------------------------------------------------------------------

    def _due(self, now: float) -> Iterator[Decision]:
        world = self.world
        outbox, world.outbox = world.outbox, []
        yield from outbox
        world.queue.tick(now)
        yield from self._judge_suspects(now)
        yield from self._review_groups(now)
        self._wake(now)
        yield from self._speak(now)
        yield from preempt.proceed(world, now)
        yield from self._tear_down(now)

    def _wake(self, now: float) -> None:
        world = self.world
        if world.cures:
            cures, world.cures = sorted(world.cures), set()
            world.queue.cured(cures, now)
        if world.dirty:
            world.queue.room_appeared(world.capacity, now)
            preempt.wake_waiting(world)
            world.dirty = set()

    def _judge_suspects(self, now: float) -> Iterator[Decision]:
        """Trees whose objects changed may have become invalid, or been mended."""
        world = self.world
        for key in sorted(world.suspects):
            top = world.top(key)
            if top is None:
                world.faults.pop(key, None)
                continue
            fault = find_fault(top, world.forest)
            if fault is not None and fault.reason == INVALID:
                world.faults[top.key] = fault
                yield from tell_groups(world, top.subtree(), lambda group, found=fault: found)
                self._intake.review(top, now)
            elif world.faults.pop(top.key, None) is not None:
                self._intake.review(top, now)
        world.suspects.clear()

    def _review_groups(self, now: float) -> Iterator[Decision]:
        """Groups whose bound members changed say whether their minimum is met."""
        world = self.world
        seen: dict[EntityKey, Group] = {}
        for key in sorted(world.reviewed):
            group = world.forest.groups.get(key)
            while group is not None and group.key not in seen:
                seen[group.key] = group
                group = group.parent if not group.cyclic else None
        world.reviewed.clear()
        for group in sorted(seen.values(), key=lambda g: (not g.is_leaf, g.key)):
            yield from world.conditions.review(group, lambda found: preempt.still_leaving(world, found))
        for top in {g.root().key: g.root() for g in seen.values()}.values():
            self._note_broken(top, now)

    def _note_broken(self, top: Group, now: float) -> None:
        """A tree that never ran as a whole and is bound in part has a deadline."""
        world = self.world
        partly = not top.scheduled_once and not top.quorum_bound and any(leaf.confirmed > 0 for leaf in top.leaves())
        if partly and top.key in world.queue.roots:
            world.broken_since.setdefault(top.key, now)
        else:
            world.broken_since.pop(top.key, None)

    def _speak(self, now: float) -> Iterator[Decision]:
        """Trees that wait say for what."""
        world = self.world
        for key in world.notices.due(now):
            top = world.forest.groups.get(key)
            root = world.queue.roots.get(key)
            if top is None or root is None or key in world.faults:
                continue
            for notice in waiting.notices(top):
                root.verdict, root.message = notice.reason, notice.message
                said = world.conditions.initially_scheduled(notice.group, "False", notice.reason, notice.message)
                if said is not None:
                    yield said
                    yield RecordEvent(notice.group.ref, "Normal", notice.reason, "Scheduling", notice.message)
            yield from self._speak_for_orphaned_pods(top)

    def _speak_for_orphaned_pods(self, top: Group) -> Iterator[Decision]:
        """Pods whose group does not exist have no other object to be told on."""
        world = self.world
        for leaf in [leaf for leaf in top.leaves() if not leaf.seen]:
            text = f"pod group {leaf.key.name} does not exist"
            for member in sorted(leaf.pending.values(), key=lambda m: m.order):
                world.conditions.learn(member.uid, member.pod.status.conditions)
                said = world.conditions.say(member.ref, POD_SCHEDULED, "False", waiting.FOR_POD_GROUP, text)
                if said is not None:
                    yield said

    def _tear_down(self, now: float) -> Iterator[Decision]:
        """A tree that never ran and could not be completed in time gives its seats back, where its pods come again."""
        world = self.world
        for key, since in list(world.broken_since.items()):
            if now - since < world.config.bind_timeout:
                continue
            del world.broken_since[key]
            top = world.top(key)
            if top is None:
                continue
            bound = [m for leaf in top.leaves() for m in leaf.running.values() if m.state == RUNNING]
            bound = sorted((m for m in bound if m.traits[0] in world.config.profiles), key=lambda m: m.order)
            given_back = [m for m in bound if any(owner.controller for owner in m.pod.metadata.owner_references or ())]
            yield from (Evict(member.ref, top.ref, given_back=True) for member in given_back)
            kept = sorted(m.ref.name for m in bound if m not in given_back)
            note = (
                f"the minimum was not bound within {world.config.bind_timeout:g} s: {len(given_back)} pods are deleted"
            )
            note += f", {len(kept)} without a controller are kept ({', '.join(kept)})" if kept else ""
            yield RecordEvent(top.ref, "Warning", "BindTimeout", "Binding", note[:MOST_NOTE])

    def _forgive_orphans(self) -> list[Decision]:
        """Marks that no root needs any more are taken back once everyone had a turn."""
        world = self.world
        wanted = {uid for under_way in world.preempting.values() for uid in under_way.victims}
        orphans, world.orphans = world.orphans - wanted, set()
        return preempt.unmark(world, orphans)

    # --- one root ----------------------------------------------------------------------------------

    def _turn(self, root: QueuedEntity, now: float) -> list[Decision]:
        world = self.world
        if root.member is not None and not world.holds:
            batch = self._batch(root)
            if len(batch) > 1:
                return self._place_batch(batch, now)
        return attempt(world, root, now)

    def _batch(self, first: QueuedEntity) -> list[QueuedEntity]:
        """The single pods of one shape that come next in line anyway."""
        world = self.world
        assert first.member is not None
        shape = world.shape_of(first.member)
        batch = [first]
        while len(batch) < MOST_IN_ONE_PASS:
            root = world.queue.peek()
            if root is None or root.member is None or world.shape_of(root.member) is not shape:
                break
            world.queue.pop()
            batch.append(root)
        return batch

    def _place_batch(self, batch: list[QueuedEntity], now: float) -> list[Decision]:
        """Many roots, one pass: the same seats as one by one, checked together."""
        world = self.world
        shape = world.shape_of(_pod_of(batch[0]))
        with world.evaluator.trial() as trial:
            slots = trial.place_many(shape, len(batch))
        seats = [
            Assignment(root.uid, world.cluster.names[slot], slot) for root, slot in zip(batch, slots, strict=False)
        ]
        wishes = tuple(Wish(root.uid, root.key.namespace, root.key.name, shape, root.priority) for root in batch)
        demand = PodGroupRequest(batch[0].key, minimum=len(seats), bound=0, members=wishes)
        if validate(Placed(tuple(seats), frozenset({demand.key})), demand, world.cluster) is not None:
            seats = []  # one by one, each with its own check and its own words
        decisions = list(take_seats(world, list(zip(batch, seats, strict=False))))
        for root in batch[len(seats) :]:
            decisions += attempt(world, root, now)
        return decisions

    # --- for those who look ------------------------------------------------------------------------

    def take_rounds(self) -> list[PreemptionAttempt]:
        """The considerations of preemption since someone last asked."""
        rounds = list(self.world.rounds)
        self.world.rounds.clear()
        return rounds

    def take_judged(self) -> list[Judged]:
        """The domains judged since someone last asked."""
        judged = list(self.world.judged)
        self.world.judged.clear()
        return judged

    def roots(self) -> Iterable[QueuedEntity]:
        """The queue in order, for listings and explanations."""
        return self.world.queue.in_order()

    def pending(self) -> int:
        """How many pods wait."""
        return sum(1 for member in self.world.forest.members.values() if member.state == PENDING)


def _pod_of(root: QueuedEntity) -> Member:
    assert root.member is not None
    return root.member
