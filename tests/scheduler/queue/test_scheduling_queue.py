"""The queue: order, backoff, those that wait and how they come back."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import EntityState, QueuedEntity, RequeueHints
from muster.scheduler.queue.scheduling_queue import FALLBACK_SECONDS, SchedulingQueue


def a_root(name: str, priority: int = 0, created: str = "", **fields: Any) -> QueuedEntity:
    return QueuedEntity(EntityKey("PodGroup", "ns", name), priority=priority, created=created, uid=name, **fields)


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


def test_the_fallback_looks_at_every_class_once_and_starts_again_while_any_waits():
    queue = SchedulingQueue()
    first, second = (parked(queue, a_root(name), key=name, now=5.0) for name in ("a", "b"))
    queue.start_fallback(5.0 + FALLBACK_SECONDS - 0.001)
    assert (queue.next_due(), queue.has_unchecked) == (5.0 + FALLBACK_SECONDS, False)

    queue.start_fallback(5.0 + FALLBACK_SECONDS)

    assert [queue.next_unchecked(), queue.next_unchecked()] == [queue.waiting.get("a"), queue.waiting.get("b")]
    assert (queue.next_unchecked(), queue.next_due()) == (None, 5.0 + 2 * FALLBACK_SECONDS)
    queue.remove(first.key)
    queue.remove(second.key)
    queue.start_fallback(5.0 + 2 * FALLBACK_SECONDS)
    assert queue.next_due() is None


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


def parked(queue: SchedulingQueue, root: QueuedEntity, key: object = "same", now: float = 0.0) -> QueuedEntity:
    queue.add(root, now)
    fail(queue, root, RequeueHints(key), now)
    return root


def test_a_woken_entity_that_fails_sends_the_others_of_its_class_back_without_an_attempt():
    queue = SchedulingQueue()
    first, second, other = (parked(queue, a_root(name), key) for name, key in (("a", 1), ("b", 1), ("c", 2)))
    for root in (first, second, other):
        queue.wake(root, 1.0)
    assert queue.pop() is first
    queue.add_unschedulable(first, RequeueHints(1), 1.0)

    assert (second.state, other.state) == (EntityState.UNSCHEDULABLE, EntityState.ACTIVE)
    assert (second.attempts, second.failures) == (0, 1)
    assert (queue.pop(), queue.pop()) == (other, None)
    queue.check()


def test_a_woken_entity_is_known_as_such_until_its_cycle():
    queue = SchedulingQueue()
    root = parked(queue, a_root("a"))
    assert not queue.has_woken
    queue.wake(root, 1.0, by_timer=True)
    assert (queue.has_woken, root.woken, root.by_timer) == (True, True, True)
    queue.pop()
    assert (queue.has_woken, root.woken) == (False, True)
    queue.set_incomplete(root)
    assert (root.woken, root.by_timer) == (False, False)


def test_an_entity_whose_victims_leave_waits_for_room_as_well():
    queue = queue_of(a_root("a"))
    root = queue.pop()
    assert root is not None
    queue.set_preempting(root)
    queue.await_room(root, RequeueHints("x"), 0.0)
    queue.check()
    assert root in queue.waiting

    queue.wake(root, 1.0)

    assert (root.state, root in queue.waiting) == (EntityState.ACTIVE, False)


def test_a_wake_skips_the_backoff_but_a_flurry_of_failures_serves_it():
    queue = SchedulingQueue()
    root = parked(queue, a_root("a"))
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


def test_a_dropped_root_is_forgotten_everywhere():
    queue = SchedulingQueue()
    root = parked(queue, a_root("a"))
    queue.remove(root.key)
    assert (len(queue.waiting), queue.pop()) == (0, None)
    queue.start_fallback(10_000.0)
    assert (queue.next_due(), queue.has_unchecked) == (None, False)


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
    queue.back_off(entity, 10.0)
    queue.set_incomplete(entity)
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


@pytest.mark.parametrize(
    ("state", "message"), [(EntityState.BACKOFF, "has no timer"), (EntityState.UNSCHEDULABLE, "is UNSCHEDULABLE")]
)
def test_the_check_notices_an_entity_that_nothing_brings_back(state: EntityState, message: str):
    queue = SchedulingQueue()
    queue.add(QueuedEntity(EntityKey("PodGroup", "ns", "a"), state=state), 0.0)
    with pytest.raises(AssertionError, match=message):
        queue.check()
