"""The check before an attempt: it never rejects what would fit, and it rejects by counting what cannot."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cycle.evaluate import evaluate
from muster.scheduler.cycle.requeue_check import Rooms, least_requests, most_that_fit
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.queue.entity import EntityState
from muster.scheduler.queue.waiting_classes import WaitingClass
from tests.build.examples import examples
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.random_pressure import Pressure, a_life
from tests.build.scheduler import TestWorld, a_world


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32))
def test_what_the_check_rejects_cannot_be_placed(seed: int):
    pressure = Pressure()
    pressure.live(a_life(seed))
    rng = Random(seed)
    for _ in range(4):  # changes that nobody was told of yet
        rng.choice((pressure.change_node, pressure.remove_pod, pressure.reap))(rng)
    state = pressure.world.scheduler.state
    rooms = Rooms(state)
    for waiting in state.queue.waiting:
        entity = waiting.first()
        same = entity.state is EntityState.UNSCHEDULABLE and waiting.hints.request is not None
        if same and not most_that_fit(state, rooms, waiting):
            verdict = evaluate(state, entity, waiting.hints.request).verdict
            assert not isinstance(verdict, Placed), f"{entity.key} fits"


def only_class(world: TestWorld) -> WaitingClass:
    (waiting,) = world.run().scheduler.state.queue.waiting
    return waiting


def count_after(world: TestWorld, *nodes: object) -> int:
    """How many of the only class would fit if these nodes were there, before anything is tried."""
    waiting = only_class(world)
    world.add(*nodes)
    state = world.scheduler.state
    return most_that_fit(state, Rooms(state), waiting)


def test_of_one_shape_as_many_entities_fit_as_there_are_seats_for():
    world = a_world().add(*[a_pod(f"p{i}", cpu=2) for i in range(9)])
    assert count_after(world, a_node("n0", cpu=5), a_node("n1", cpu=3)) == 3


@pytest.mark.parametrize(("cpu", "fits"), [(2, 0), (3, 1)])
def test_shapes_that_compete_for_one_node_do_not_fit_because_each_would_alone(cpu: int, fits: int):
    world = a_world().add(a_gang("g", 2), a_pod("a", "g", cpu=1), a_pod("b", "g", cpu=2))
    assert count_after(world, a_node("n0", cpu=cpu)) == fits


def test_seats_of_two_racks_do_not_add_up():
    world = a_world().add(a_gang("g", 2, topology=RACK), *pods(2, "g"))
    assert count_after(world, a_node("n0", cpu=1, rack="r0"), a_node("n1", cpu=1, rack="r1")) == 0
    assert count_after(world, a_node("n2", cpu=1, rack="r1")) == 1


def test_every_child_that_is_needed_must_pass():
    world = a_world().add(a_composite("top", 2), a_gang("a", 1, parent="top"), a_gang("b", 1, parent="top"))
    world.add(a_pod("a-0", "a", cpu=1), a_pod("b-0", "b", cpu=4))
    assert count_after(world, a_node("n0", cpu=3)) == 0
    assert count_after(world, a_node("n1", cpu=4)) == 1


def test_a_composite_in_one_rack_needs_its_children_there_together():
    tree = a_composite("top", 2, topology=RACK)
    world = a_world().add(tree, a_gang("a", 1, parent="top"), a_gang("b", 1, parent="top"))
    world.add(a_pod("a-0", "a", cpu=1), a_pod("b-0", "b", cpu=2))
    assert count_after(world, a_node("n0", cpu=1, rack="r0"), a_node("n1", cpu=2, rack="r1")) == 0
    assert count_after(world, a_node("n2", cpu=1, rack="r1")) == 1


def test_pods_of_lower_priority_count_as_room_for_who_may_preempt():
    for policy, fits in ((None, 1), ("Never", 0)):
        world = a_world([a_node("n0", cpu=1)]).add(a_pod("high", cpu=2, priority=5, policy=policy))
        waiting = only_class(world)
        world.add(a_node("n1", cpu=2), a_pod("low", cpu=2, node="n1", priority=1))
        state = world.scheduler.state
        assert most_that_fit(state, Rooms(state), waiting) == fits


def test_the_least_that_a_group_requests_is_that_of_its_smallest_pods():
    world = a_world().add(a_gang("g", 2), a_pod("a", "g", cpu=3), a_pod("b", "g", cpu=1), a_pod("c", "g", cpu=2))
    request = only_class(world).hints.request
    assert request is not None
    cluster = world.scheduler.state.cluster
    assert least_requests(request, cluster)[cluster.row["cpu"]] == 3000
