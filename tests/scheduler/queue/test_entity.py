"""A queued entity: the table of its states, its place in the order, its hints and its binds in flight."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import TRANSITIONS, EntityState, QueuedEntity, RequeueHints
from muster.scheduler.queue.scheduling_queue import SchedulingQueue
from tests.build.objects import a_pod

S = EntityState
KEY = EntityKey("Pod", "ns", "pod")
FORBIDDEN = {
    (S.INCOMPLETE, S.UNSCHEDULABLE),
    (S.INCOMPLETE, S.PREEMPTING),
    (S.BACKOFF, S.UNSCHEDULABLE),
    (S.BACKOFF, S.PREEMPTING),
    (S.UNSCHEDULABLE, S.UNSCHEDULABLE),
    (S.UNSCHEDULABLE, S.PREEMPTING),
    (S.BINDING, S.UNSCHEDULABLE),
    (S.BINDING, S.PREEMPTING),
    (S.PREEMPTING, S.BACKOFF),
}
PAIRS = [(start, end) for start in S for end in S]
MOVES: dict[EntityState, Callable[[SchedulingQueue, QueuedEntity], None]] = {
    S.INCOMPLETE: lambda queue, entity: queue.set_incomplete(entity),
    S.ACTIVE: lambda queue, entity: queue.activate(entity),
    S.BACKOFF: lambda queue, entity: queue.back_off(entity, 0.0),
    S.UNSCHEDULABLE: lambda queue, entity: queue.add_unschedulable(entity, RequeueHints("hints"), 0.0),
    S.BINDING: lambda queue, entity: queue.set_binding(entity),
    S.PREEMPTING: lambda queue, entity: queue.set_preempting(entity),
}


def a_member(*, in_flight: bool = True) -> Member:
    member = Member(a_pod())
    member.in_flight = in_flight
    return member


def queued_in(state: EntityState) -> tuple[SchedulingQueue, QueuedEntity]:
    """A queue with one entity that has a bind in flight, so that every move is a question of the table alone."""
    queue = SchedulingQueue()
    entity = queue.add(QueuedEntity(KEY, member=a_member(), uid="pod-pod"), 0.0)
    if state is not S.INCOMPLETE:
        queue.activate(entity)
        MOVES[state](queue, entity)
    assert entity.state is state
    return queue, entity


# --- the table -------------------------------------------------------------------------------------


def test_the_table_forbids_just_these_moves():
    assert {(start, end) for start, end in PAIRS if end not in TRANSITIONS[start]} == FORBIDDEN


@pytest.mark.parametrize(("start", "end"), [pair for pair in PAIRS if pair not in FORBIDDEN])
def test_a_move_of_the_table_is_made(start: EntityState, end: EntityState):
    queue, entity = queued_in(start)

    MOVES[end](queue, entity)

    assert entity.state is end


@pytest.mark.parametrize(("start", "end"), [pair for pair in PAIRS if pair in FORBIDDEN])
def test_a_move_that_is_not_in_the_table_is_an_error_and_changes_nothing(start: EntityState, end: EntityState):
    queue, entity = queued_in(start)
    ticket = entity.ticket

    with pytest.raises(AssertionError, match=f"cannot go from {start.name} to {end.name}"):
        MOVES[end](queue, entity)

    assert (entity.state, entity.ticket, entity.failures) == (start, ticket, int(start is S.UNSCHEDULABLE))


def test_an_entity_without_binds_in_flight_cannot_be_binding():
    queue = SchedulingQueue()
    entity = queue.add(QueuedEntity(KEY, member=a_member(in_flight=False)), 0.0)
    queue.activate(entity)

    with pytest.raises(AssertionError, match="no binds in flight"):
        queue.set_binding(entity)

    assert entity.state is S.ACTIVE


@pytest.mark.parametrize("state", list(S))
def test_an_entity_leaves_from_every_state_and_nothing_brings_it_back(state: EntityState):
    queue, entity = queued_in(state)

    assert queue.remove(KEY) is entity

    assert (queue.entities, queue.peek(), queue.next_due()) == ({}, None, None)


@pytest.mark.parametrize("state", list(S))
def test_only_an_active_entity_is_in_line_and_only_waiting_ones_have_a_timer(state: EntityState):
    queue, entity = queued_in(state)

    assert queue.peek() is (entity if state is S.ACTIVE else None)
    assert (queue.next_due() is not None) == (state in (S.BACKOFF, S.UNSCHEDULABLE))


def test_a_new_entity_is_incomplete():
    assert QueuedEntity(KEY).state is S.INCOMPLETE


# --- order, binds, outcome -------------------------------------------------------------------------


def test_the_order_is_bound_in_part_then_priority_then_age_then_uid():
    first = QueuedEntity(KEY, partly_bound=True, priority=-5, created="9", uid="z")
    second = QueuedEntity(KEY, priority=7, created="9", uid="z")
    third = QueuedEntity(KEY, priority=1, created="1", uid="z")
    fourth = QueuedEntity(KEY, priority=1, created="2", uid="a")
    fifth = QueuedEntity(KEY, priority=1, created="2", uid="b")

    keys = [entity.sort_key for entity in (first, second, third, fourth, fifth)]

    assert keys == sorted(keys)
    assert len(set(keys)) == 5


@pytest.mark.parametrize("in_flight", [False, True])
def test_a_pod_has_one_bind_in_flight_or_none(in_flight: bool):
    assert QueuedEntity(KEY, member=a_member(in_flight=in_flight)).binds_in_flight == int(in_flight)


def test_a_tree_has_the_binds_in_flight_of_its_top_group():
    group = Group(EntityKey("PodGroup", "ns", "g"))
    entity = QueuedEntity(group.key, group=group)
    assert entity.binds_in_flight == 0

    group.in_flight = 3

    assert entity.binds_in_flight == 3


def test_an_outcome_is_its_reason_and_its_message():
    entity = QueuedEntity(KEY)

    entity.set_outcome("Unschedulable", "0 of 3")

    assert (entity.reason, entity.message) == ("Unschedulable", "0 of 3")
