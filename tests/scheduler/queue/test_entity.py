"""A queued entity: which moves between its states are allowed, its order, and its binds in flight."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import TRANSITIONS, CapacityHint, EntityState, QueuedEntity, RequeueHints
from muster.scheduler.queue.scheduling_queue import SchedulingQueue
from tests.build.objects import a_pod

S = EntityState
# Row: the state now. Column: the state after, in the order of the enum. Which events make which move is said in
# `queue.entity`; a move within a state puts the entity in line anew, or sets its timer anew.
ALLOWED = {
    #                 incomplete active backoff unschedulable binding preempting
    S.INCOMPLETE:     "yes       yes    no      no            yes     no",
    S.ACTIVE:         "yes       yes    yes     yes           yes     yes",
    S.BACKOFF:        "yes       yes    yes     no            yes     no",
    S.UNSCHEDULABLE:  "yes       yes    yes     no            yes     no",
    S.BINDING:        "yes       yes    yes     no            yes     no",
    S.PREEMPTING:     "yes       yes    no      yes           yes     yes",
}  # fmt: skip
CELLS = [
    (now, after, word == "yes") for now, row in ALLOWED.items() for after, word in zip(S, row.split(), strict=True)
]

MOVES: dict[EntityState, Callable[[SchedulingQueue, QueuedEntity], None]] = {
    S.INCOMPLETE: lambda queue, entity: queue.set_incomplete(entity),
    S.ACTIVE: lambda queue, entity: queue.activate(entity),
    S.BACKOFF: lambda queue, entity: queue.back_off(entity, 0.0),
    S.UNSCHEDULABLE: lambda queue, entity: queue.add_unschedulable(entity, RequeueHints(), 0.0),
    S.BINDING: lambda queue, entity: queue.set_binding(entity),
    S.PREEMPTING: lambda queue, entity: queue.set_preempting(entity),
}


def an_entity(state: EntityState) -> tuple[SchedulingQueue, QueuedEntity]:
    """An entity whose binds are in flight, so that it could be binding, in some state."""
    member = Member(a_pod("x"))
    member.in_flight = True
    queue = SchedulingQueue()
    entity = queue.add(QueuedEntity(EntityKey("Pod", "ns", "x"), member=member), 0.0)
    if state is not S.INCOMPLETE:
        queue.activate(entity)
        MOVES[state](queue, entity)
    assert entity.state is state
    return queue, entity


@pytest.mark.parametrize(("now", "after", "allowed"), CELLS, ids=lambda value: getattr(value, "value", None))
def test_a_move_happens_by_its_method_or_raises(now: EntityState, after: EntityState, allowed: bool):
    queue, entity = an_entity(now)
    if allowed:
        MOVES[after](queue, entity)
        assert entity.state is after
    else:
        with pytest.raises(AssertionError, match=f"cannot go from {now.name} to {after.name}"):
            MOVES[after](queue, entity)
        assert entity.state is now


def test_the_table_of_moves_is_the_one_that_the_queue_obeys():
    allowed = {now: frozenset(after for n, after, yes in CELLS if n is now and yes) for now in S}
    assert allowed == TRANSITIONS


@pytest.mark.parametrize("state", EntityState)
def test_an_entity_can_be_removed_in_every_state(state: EntityState):
    queue, entity = an_entity(state)
    assert queue.remove(entity.key) is entity
    assert queue.remove(entity.key) is None
    assert (queue.pop(), queue.next_due()) == (None, None)


def test_an_entity_without_binds_in_flight_cannot_be_binding():
    queue = SchedulingQueue()
    entity = queue.add(QueuedEntity(EntityKey("Pod", "ns", "x"), member=Member(a_pod("x"))), 0.0)
    with pytest.raises(AssertionError, match="has no binds in flight"):
        queue.set_binding(entity)


def test_binds_in_flight_are_those_of_the_pod_or_of_the_whole_tree():
    member, group = Member(a_pod("x")), Group(EntityKey("PodGroup", "ns", "g"))
    member.in_flight, group.in_flight = True, 3
    assert QueuedEntity(EntityKey("Pod", "ns", "x"), member=member).binds_in_flight == 1
    assert QueuedEntity(group.key, group=group).binds_in_flight == 3
    assert QueuedEntity(group.key).binds_in_flight == 0


def test_the_order_is_bound_in_part_then_priority_then_age_then_uid():
    fields: list[dict[str, Any]] = [
        {"partly_bound": True, "uid": "z"},
        {"priority": 9, "uid": "y"},
        {"created": "2026", "uid": "a"},
        {"created": "2026", "uid": "b"},
        {"created": "2027", "uid": "a"},
    ]
    keys = [QueuedEntity(EntityKey("Pod", "ns", "x"), **each).sort_key for each in fields]
    assert sorted(keys) == keys


def test_an_outcome_is_a_verdict_with_its_message():
    entity = QueuedEntity(EntityKey("Pod", "ns", "x"))
    entity.set_outcome("Unschedulable", "no room")
    assert (entity.verdict, entity.message) == ("Unschedulable", "no room")


def test_hints_for_the_same_room_have_one_signature_however_many_seats_they_ask_for():
    shape = cast("Shape", SimpleNamespace(id=7))
    assert CapacityHint(shape, 1).signature == CapacityHint(shape, 5).signature
    others = [
        CapacityHint(shape, 1, "rack"),
        CapacityHint(shape, 1, weak=True),
        CapacityHint(cast("Shape", SimpleNamespace(id=8)), 1),
    ]
    assert len({hint.signature for hint in (CapacityHint(shape, 1), *others)}) == 4
