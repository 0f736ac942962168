"""The queue: order, backoff, and who wakes when room appears."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import CapacityHint, EntityState, QueuedEntity, RequeueHints
from muster.scheduler.queue.scheduling_queue import FALLBACK_SECONDS, SchedulingQueue


def a_root(name: str, priority: int = 0, created: str = "", **fields: Any) -> QueuedEntity:
    return QueuedEntity(EntityKey("PodGroup", "ns", name), priority=priority, created=created, uid=name, **fields)


def a_shape(number: int = 1) -> Any:
    return SimpleNamespace(id=number)


def queue_of(*roots: QueuedEntity) -> SchedulingQueue:
    queue = SchedulingQueue()
    for root in roots:
        queue.activate(queue.add(root, 0.0))
    return queue


def taken(queue: SchedulingQueue) -> list[str]:
    names = []
    while (root := queue.pop()) is not None:
        names.append(root.key.name)
    return names


def test_order_is_broken_first_then_priority_then_age_then_uid():
    half = a_root("half", partly_bound=True)
    roots = [a_root("young", created="2"), a_root("old", created="1"), a_root("vip", 9), half]
    assert taken(queue_of(*roots, a_root("older-twin", created="1"))) == ["half", "vip", "old", "older-twin", "young"]


def test_the_order_does_not_depend_on_arrival():
    roots = [a_root(f"r{i}", priority=i % 3, created=str(i % 2)) for i in range(12)]
    assert taken(queue_of(*roots)) == taken(queue_of(*reversed([a_root(r.uid, r.priority, r.created) for r in roots])))


def test_a_parked_root_comes_back_by_its_timer_at_the_latest():
    queue = queue_of(a_root("a"))
    root = queue.pop()
    assert root is not None
    fail(queue, root, RequeueHints(), 5.0)
    assert queue.next_due() == 5.0 + FALLBACK_SECONDS
    queue.flush_timers(5.0 + FALLBACK_SECONDS)
    assert root.state == EntityState.ACTIVE


def test_backoff_doubles_up_to_its_cap():
    queue = queue_of(a_root("a"))
    root = queue.entities[EntityKey("PodGroup", "ns", "a")]
    waits = []
    for now in range(0, 600, 100):
        fail(queue, root, RequeueHints(), float(now))
        waits.append(root.backoff_until - now)
    assert waits == [1, 2, 4, 8, 10, 10]


def fail(queue: SchedulingQueue, root: QueuedEntity, hints: RequeueHints, now: float) -> None:
    """An attempt that ends without a placement."""
    queue.activate(root)
    queue.add_unschedulable(root, hints, now)


def parked(
    queue: SchedulingQueue, root: QueuedEntity, seats: int, shape: Any, now: float = 0.0, **want: Any
) -> QueuedEntity:
    queue.add(root, now)
    fail(queue, root, RequeueHints((CapacityHint(shape, seats, **want),)), now)
    return root


def test_only_as_many_roots_wake_as_the_room_could_serve_best_first():
    queue, shape = SchedulingQueue(), a_shape()
    roots = [parked(queue, a_root(f"r{i}", priority=i), 2, shape) for i in range(5)]
    queue.requeue_for_capacity(lambda want: (5, 5), 1.0)
    states = [root.state for root in roots]
    assert states == [EntityState.UNSCHEDULABLE] * 2 + [EntityState.ACTIVE] * 3


def test_a_root_that_needs_more_than_any_domain_has_stays_parked():
    queue, shape = SchedulingQueue(), a_shape()
    large = parked(queue, a_root("large", 9), 8, shape, topology="rack")
    small = parked(queue, a_root("small"), 3, shape, topology="rack")
    queue.requeue_for_capacity(lambda want: (4, 20), 1.0)
    assert (large.state, small.state) == (EntityState.UNSCHEDULABLE, EntityState.ACTIVE)


def test_shapes_are_looked_at_once_however_many_roots_wait():
    queue, shape = SchedulingQueue(), a_shape()
    for i in range(100):
        parked(queue, a_root(f"r{i}"), 4, shape)
    asked: list[CapacityHint] = []

    def capacity(want: CapacityHint) -> tuple[int, int]:
        asked.append(want)
        return 0, 0

    queue.requeue_for_capacity(capacity, 1.0)
    assert len(asked) == 1


def test_a_woken_root_that_fails_passes_its_turn_on():
    queue, shape = SchedulingQueue(), a_shape()
    first, second = (parked(queue, a_root(name, priority), 2, shape) for name, priority in (("a", 2), ("b", 1)))
    queue.requeue_for_capacity(lambda want: (2, 2), 1.0)
    assert (first.state, second.state) == (EntityState.ACTIVE, EntityState.UNSCHEDULABLE)
    queue.pop()
    fail(queue, first, first.hints, 1.0)
    queue.requeue_next(first, lambda want: (2, 2), 1.0)
    assert (first.state, second.state) == (EntityState.UNSCHEDULABLE, EntityState.ACTIVE)


def test_a_wake_skips_the_backoff_but_a_flurry_of_failures_serves_it():
    queue, shape = SchedulingQueue(), a_shape()
    root = parked(queue, a_root("a"), 1, shape, now=0.0)
    for now in (0.1, 0.2):
        queue.requeue(root, now)
        assert root.state == EntityState.ACTIVE
        queue.pop()
        fail(queue, root, root.hints, now)
    queue.requeue(root, 0.3)
    assert root.state == EntityState.BACKOFF
    assert queue.next_due() == root.backoff_until
    queue.flush_timers(root.backoff_until)
    assert root.state == EntityState.ACTIVE


def test_a_cure_wakes_only_the_roots_it_could_help():
    queue = SchedulingQueue()
    spread, other = a_root("spread"), a_root("other")
    for root, culprit in ((spread, "PodTopologySpread"), (other, "NodeAffinity")):
        queue.add(root, 0.0)
        fail(queue, root, RequeueHints(rejected_by=frozenset({culprit})), 0.0)
    queue.requeue_for_events(["PodTopologySpread"], 1.0)
    assert (spread.state, other.state) == (EntityState.ACTIVE, EntityState.UNSCHEDULABLE)


def test_a_dropped_root_is_forgotten_everywhere():
    queue, shape = SchedulingQueue(), a_shape()
    root = parked(queue, a_root("a"), 1, shape)
    queue.remove(root.key)
    queue.requeue_for_capacity(lambda want: (9, 9), 1.0)
    queue.flush_timers(10_000.0)
    assert queue.pop() is None
    assert queue.next_due() is None


@pytest.mark.parametrize("weak", [True, False])
def test_waking_ten_thousand_roots_costs_no_more_than_sorting_them(weak: bool):
    queue, shape = SchedulingQueue(), a_shape()
    for i in range(10_000):
        parked(queue, a_root(f"r{i:05d}"), 1, shape, weak=weak)
    queue.requeue_for_capacity(lambda want: (3, 3), 1.0)
    assert sum(root.state == EntityState.ACTIVE for root in queue.entities.values()) == 3


def test_an_entity_that_backs_off_is_in_line_at_the_time_that_was_said():
    queue = SchedulingQueue()
    entity = queue.add(a_root("a"), 0.0)
    queue.activate(entity)
    queue.back_off(entity, 13.0)
    assert (entity.state, queue.pop(), queue.next_due()) == (EntityState.BACKOFF, None, 13.0)
    queue.flush_timers(12.9)
    assert queue.pop() is None
    queue.flush_timers(13.0)
    assert queue.pop() is entity


def test_a_success_forgets_the_failures_before_it():
    queue = queue_of(a_root("a"))
    entity = queue.entities[EntityKey("PodGroup", "ns", "a")]
    for now in (0.0, 0.1, 0.2):
        fail(queue, entity, RequeueHints(), now)
    queue.reset_backoff(entity)
    queue.requeue(entity, 0.3)
    assert (entity.state, entity.failures) == (EntityState.ACTIVE, 0)


def test_an_entity_that_is_taken_stays_active_and_is_not_taken_twice():
    queue = queue_of(a_root("a"))
    entity = queue.peek()
    assert queue.pop() is entity
    assert entity is not None
    assert (entity.state, entity.attempts, queue.pop()) == (EntityState.ACTIVE, 1, None)


def test_an_entity_that_is_activated_again_is_taken_once():
    queue = queue_of(a_root("a"))
    queue.activate(queue.entities[EntityKey("PodGroup", "ns", "a")])
    assert taken(queue) == ["a"]


def test_a_timer_of_an_entity_that_moved_on_is_void():
    queue = queue_of(a_root("a"))
    entity = queue.entities[EntityKey("PodGroup", "ns", "a")]
    fail(queue, entity, RequeueHints(), 0.0)
    queue.set_incomplete(entity)
    assert queue.next_due() is None
    queue.flush_timers(1000.0)
    assert entity.state is EntityState.INCOMPLETE


def test_all_entities_are_listed_in_order_whatever_their_state():
    queue = queue_of(a_root("low"), a_root("high", 5))
    fail(queue, queue.entities[EntityKey("PodGroup", "ns", "high")], RequeueHints(), 0.0)
    assert [entity.key.name for entity in queue.in_order()] == ["high", "low"]


def test_the_check_notices_a_binding_entity_without_binds_in_flight():
    queue = queue_of(a_root("a"))
    queue.check()
    queue.entities[EntityKey("PodGroup", "ns", "a")].state = EntityState.BINDING
    with pytest.raises(AssertionError, match="is BINDING"):
        queue.check()


@pytest.mark.parametrize("state", [EntityState.BACKOFF, EntityState.UNSCHEDULABLE])
def test_the_check_notices_an_entity_that_waits_without_a_timer(state: EntityState):
    queue = SchedulingQueue()
    queue.add(QueuedEntity(EntityKey("PodGroup", "ns", "a"), state=state), 0.0)
    with pytest.raises(AssertionError, match="has no timer"):
        queue.check()
