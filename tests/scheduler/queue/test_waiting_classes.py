"""Waiting classes: equal hints are one class, and one pass finds those that a gain has room for."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import QueuedEntity, RequeueHints
from muster.scheduler.queue.gain import HIGHEST, Gain
from muster.scheduler.queue.waiting_classes import Kind, WaitingClasses
from tests.build.examples import examples


def waiting(classes: WaitingClasses, name: str, key: object, *requests: list[int], **fields: object) -> QueuedEntity:
    """An entity that failed at stamp 0 and requests so much per shape."""
    hints = RequeueHints(key, requests=np.array(requests, dtype=np.int64).reshape(len(requests), -1), **fields)
    entity = QueuedEntity(EntityKey("Pod", "ns", name), uid=name, hints=hints)
    classes.add(entity)
    return entity


def found(classes: WaitingClasses, gains: dict[Gain, int], room: Ints) -> set[object]:
    return {one.hints.key for one in classes.with_a_seat(gains, lambda kind: room)}


def free(slot: int) -> Gain:
    return Gain(slot, -HIGHEST, HIGHEST, True)


def test_entities_with_equal_hints_are_one_class_in_the_order_of_the_line():
    classes = WaitingClasses()
    for name in ("b", "a", "c"):
        waiting(classes, name, "same", [1])
    (one,) = classes
    assert [entity.uid for entity in one.in_order()] == ["a", "b", "c"]
    classes.discard(one.entities[EntityKey("Pod", "ns", "a")])
    assert one.first().uid == "b"


def test_a_class_ends_with_its_last_entity_and_its_rows_are_used_again():
    classes = WaitingClasses()
    for number in range(300):
        entity = waiting(classes, f"e{number}", number, [1], [2])
        assert entity in classes
        classes.discard(entity)
        assert entity not in classes
    assert (len(classes), found(classes, {free(0): 1}, np.full((1, 1), 9))) == (0, set())


def test_an_entity_whose_place_in_line_changes_is_still_found():
    classes = WaitingClasses()
    first, second = waiting(classes, "a", "same", [1]), waiting(classes, "b", "same", [1])
    second.priority = 9
    (one,) = classes
    first.priority = 1
    assert {one.first().uid, *(entity.uid for entity in one.in_order())} == {"a", "b"}


def test_only_a_gain_after_its_stamp_concerns_a_class():
    classes, room = WaitingClasses(), np.array([[5, 5]])
    waiting(classes, "a", "a", [3])
    (one,) = classes
    assert found(classes, {free(0): 1}, room) == {"a"}
    classes.set_stamp(one, 1)
    assert found(classes, {free(0): 1}, room) == set()
    assert found(classes, {free(0): 1, free(1): 2}, room) == {"a"}


def test_a_class_that_needs_more_than_all_nodes_have_is_not_concerned():
    classes = WaitingClasses()
    waiting(classes, "a", "a", [1], least=np.array([6]))
    assert found(classes, {free(0): 1}, np.array([[3, 2]])) == set()
    assert found(classes, {free(0): 1}, np.array([[3, 3]])) == {"a"}


@pytest.mark.parametrize(
    ("preempts", "proven", "concerned"), [(False, True, False), (True, True, True), (False, False, True)]
)
def test_room_that_evictions_make_concerns_who_may_preempt_and_what_is_unproven(preempts, proven, concerned):
    classes, gain = WaitingClasses(), Gain(0, 3, HIGHEST, False)
    waiting(classes, "a", "a", [1], priority=5, preempts=preempts, proven=proven)
    assert (found(classes, {gain: 1}, np.array([[1]])) == {"a"}) is concerned


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**32))
def test_the_pass_finds_what_comparing_one_by_one_finds(seed: int):
    rng = Random(seed)
    classes, known = WaitingClasses(), {}
    resources = rng.randint(1, 6)
    for number in range(rng.randint(0, 200)):
        shapes = [[rng.randint(0, 4) for _ in range(resources)] for _ in range(rng.randint(1, 3))]
        fields = {"priority": rng.choice((0, 5)), "preempts": rng.random() < 0.5, "stamp": rng.randint(0, 3)}
        known[number] = (waiting(classes, f"e{number}", number, *shapes, **fields), shapes)
    for number in [number for number in known if rng.random() < 0.3]:
        classes.discard(known.pop(number)[0])
    rooms = {
        kind: np.array([[rng.randint(0, 5) for _ in range(4)] for _ in range(resources)])
        for kind in [Kind(priority, None, preempts, True) for priority in (0, 5) for preempts in (True, False)]
    }
    gains = {Gain(rng.randrange(4), rng.choice((-9, 3)), rng.choice((3, 9)), rng.random() < 0.5): 2 for _ in range(3)}
    expected = {
        number
        for number, (entity, shapes) in known.items()
        if entity.hints.stamp < 2
        and any(
            gain.helps(entity.hints.priority, preempts=entity.hints.preempts)
            and all(np.array(shape) <= room[:, gain.slot])
            for room in [rooms[Kind(entity.hints.priority, None, entity.hints.preempts, True)]]
            for gain in gains
            for shape in shapes
        )
    }
    assert {one.hints.key for one in classes.with_a_seat(gains, rooms.__getitem__)} == expected
