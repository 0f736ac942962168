"""The check before an attempt: it never rejects what would fit, and it rejects by counting what cannot."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cycle.evaluate import evaluate
from muster.scheduler.cycle.fit_check import Rooms, least_requests, most_that_fit
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.queue.entity import EntityState
from muster.scheduler.queue.waiting_classes import WaitingClass
from tests.build.examples import examples
from tests.build.objects import BLOCK, HOSTNAME, RACK, a_composite, a_gang, a_node, a_pod, apart, near, pods
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


def count_of(world: TestWorld, name: str) -> int:
    """How many of the class of an entity would fit now."""
    state = world.scheduler.state
    waiting = next(one for one in state.queue.waiting if one.first().key.name == name)
    return most_that_fit(state, Rooms(state), waiting)


# --- how many --------------------------------------------------------------------------------------


def test_of_one_shape_as_many_entities_fit_as_there_are_seats_for():
    world = a_world().add(*[a_pod(f"p{i}", cpu=2) for i in range(9)])
    assert count_after(world, a_node("n0", cpu=5), a_node("n1", cpu=3)) == 3


def test_of_equal_gangs_as_many_fit_as_there_are_seats_for_all_their_pods():
    world = a_world()
    for name in ("g", "h", "i"):
        world.add(a_gang(name, 2), *pods(2, name))
    assert count_after(world, a_node("n0", cpu=5)) == 2


def test_of_gangs_in_racks_of_their_own_one_is_tried_at_a_time():
    world = a_world().add(a_gang("g", 2, topology=RACK), *pods(2, "g"), a_gang("h", 2, topology=RACK), *pods(2, "h"))
    assert count_after(world, a_node("n0", cpu=3, rack="r0"), a_node("n1", cpu=1, rack="r1")) == 1


def test_of_pods_that_keep_each_other_away_one_is_tried_at_a_time():
    alone = {"labels": {"app": "x"}, "affinity": apart(HOSTNAME, app="x")}
    world = a_world().add(*[a_pod(f"p{i}", **alone) for i in range(3)])
    assert count_after(world, a_node("n0", cpu=3)) == 1


def test_of_pods_that_may_have_to_evict_one_is_tried_at_a_time():
    world = a_world().add(*[a_pod(f"p{i}", cpu=2, priority=5) for i in range(3)])
    assert count_after(world, a_node("n0", cpu=6), a_pod("low", cpu=2, node="n0", priority=1)) == 1


# --- whether a group fits --------------------------------------------------------------------------


@pytest.mark.parametrize(("cpu", "fits"), [(2, 0), (3, 1)])
def test_shapes_that_compete_for_one_node_do_not_fit_because_each_would_alone(cpu: int, fits: int):
    world = a_world().add(a_gang("g", 2), a_pod("a", "g", cpu=1), a_pod("b", "g", cpu=2))
    assert count_after(world, a_node("n0", cpu=cpu)) == fits


@pytest.mark.parametrize("topology", [None, RACK])
def test_seats_for_more_pods_of_a_shape_than_there_are_do_not_count(topology: str | None):
    world = a_world().add(a_gang("g", 2, topology=topology), a_pod("a", "g"), a_pod("b", "g", nodeSelector={"x": "y"}))
    assert count_after(world, a_node("n0", cpu=3, rack="r0")) == 0
    assert count_after(world, a_node("n1", cpu=3, rack="r0", x="y")) == 1


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


def test_a_gang_that_must_be_in_one_rack_of_its_trees_block_needs_its_seats_in_one():
    world = a_world().add(a_composite("top", 1, topology=BLOCK), a_gang("a", 2, parent="top", topology=RACK))
    world.add(*pods(2, "a"))
    one_each = [a_node(f"n{i}", cpu=1, block="b0", rack=f"r{i}") for i in range(2)]
    assert count_after(world, *one_each) == 0
    assert count_after(world, a_node("n2", cpu=1, block="b0", rack="r1")) == 1


def test_a_gang_that_is_bound_in_part_needs_room_in_the_rack_of_its_pods():
    world = a_world([a_node("n0", cpu=1, rack="r0")]).add(a_gang("g", 2, topology=RACK), a_pod("g-0", "g", node="n0"))
    world.add(a_pod("g-1", "g"))
    assert count_after(world, a_node("n1", rack="r1")) == 0
    assert count_after(world, a_node("n2", rack="r0")) == 1


def test_a_gang_whose_pods_are_in_two_racks_fits_nowhere():
    world = a_world([a_node("n0", cpu=1, rack="r0"), a_node("n1", cpu=1, rack="r1")])
    world.add(a_gang("g", 3, topology=RACK), *[a_pod(f"g-{i}", "g", node=f"n{i}") for i in range(2)], a_pod("g-2", "g"))
    assert count_after(world, a_node("n2", rack="r0"), a_node("n3", rack="r1")) == 0


# --- groups that have their minimum ----------------------------------------------------------------


def test_a_group_with_its_minimum_needs_room_for_one_more_pod():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 1), a_pod("g-0", "g", node="n0"), *pods(2, "g", "h", cpu=2))
    assert count_after(world, a_node("n1", cpu=1)) == 0
    assert count_after(world, a_node("n2", cpu=2)) == 1


def test_a_group_with_its_minimum_grows_in_its_rack_alone():
    world = a_world([a_node("n0", cpu=1, rack="r0")]).add(a_gang("g", 1, topology=RACK), a_pod("g-0", "g", node="n0"))
    world.add(a_pod("g-1", "g"))
    assert count_after(world, a_node("n1", rack="r1")) == 0
    assert count_after(world, a_node("n2", rack="r0")) == 1


def test_a_tree_with_its_minimum_grows_by_whole_children():
    world = a_world([a_node("n0", cpu=1)]).add(a_composite("top", 1), a_gang("a", 1, parent="top"))
    world.add(a_pod("a-0", "a", node="n0"), a_gang("b", 2, parent="top"), *pods(2, "b"))
    assert count_after(world, a_node("n1", cpu=1)) == 0
    assert count_after(world, a_node("n2", cpu=1)) == 1


# --- rules about other pods ------------------------------------------------------------------------


def test_a_single_pod_needs_the_pod_that_its_term_asks_for():
    world = a_world().add(a_pod("p", affinity=near(HOSTNAME, app="x")))
    assert count_after(world, a_node("n0")) == 0
    assert count_after(world, a_pod("x", node="n0", labels={"app": "x"})) == 1


def test_a_gang_may_bring_the_pod_that_a_term_asks_for():
    world = a_world().add(a_gang("g", 2), a_pod("x", "g", labels={"app": "x"}))
    world.add(a_pod("p", "g", affinity=near(HOSTNAME, app="x")))
    assert count_after(world, a_node("n0")) == 1


# --- whose room it is ------------------------------------------------------------------------------


def with_a_nomination(**fields: Any) -> TestWorld:
    """The pod `low` leaves n0 for `high`; `other` waits, and may not preempt."""
    world = a_world([a_node("n0", cpu=4)]).add(a_pod("low", cpu=4, node="n0"))
    world.slow_victims = True
    world.add(a_pod("high", cpu=3, priority=5, labels={"app": "x"}), a_pod("other", policy="Never", **fields)).run()
    assert world.pod("high").status.nominated_node_name == "n0"
    return world


@pytest.mark.parametrize(("cpu", "fits"), [(2, 0), (1, 1)])
def test_seats_that_are_nominated_are_no_room_for_others(cpu: int, fits: int):
    world = with_a_nomination(cpu=cpu)
    world.remove("Pod", "low")
    assert count_of(world, "other") == fits


def test_seats_that_are_nominated_for_an_entity_are_room_for_itself():
    world = with_a_nomination(cpu=2)
    world.add(a_pod("low", cpu=1, node="n0"))  # shrunk in place, and it stays: the victim is still awaited
    assert count_of(world, "high") == 1


def test_a_nominated_pod_can_be_what_a_term_asks_for():
    world = with_a_nomination(cpu=1, affinity=near(HOSTNAME, app="x"))
    world.remove("Pod", "low")
    assert count_of(world, "other") == 1


def test_room_that_evictions_could_make_is_none_for_a_gang_that_may_not_preempt():
    for policy, fits in ((None, 1), ("Never", 0)):
        world = a_world([a_node("n0", cpu=1)])
        world.add(a_gang("g", 2, priority=5, policy=policy), *pods(2, "g", priority=5, policy=policy))
        waiting = only_class(world)
        world.remove("Node", "n0")
        world.add(a_node("n1", cpu=2), a_pod("low", cpu=1, node="n1", priority=1))
        state = world.scheduler.state
        assert most_that_fit(state, Rooms(state), waiting) == fits


def test_reserved_room_is_none_for_others_but_for_those_that_are_bound_in_part():
    world = a_world()
    world.now = 1_767_225_600.0  # when the builders' pods are created
    world.add(a_node("n0", cpu=4), *[a_pod(f"old-{i}", node="n0") for i in range(3)])
    world.add(a_pod("part-0", "part", node="n0"), a_gang("g", 1), a_pod("g-0", "g", cpu=4)).wait(300)
    world.add(a_gang("part", 2, created=400), a_pod("part-1", "part"), a_pod("small", created=400)).run()
    assert [kept.entity.name for kept in world.scheduler.state.reservations] == ["g"]
    world.remove("Pod", "old-0")
    assert count_of(world, "small") == 0
    assert count_of(world, "part") == 1


def test_kept_room_is_worked_out_once_for_all_who_may_not_use_it():
    world = a_world()
    world.now = 1_767_225_600.0
    world.add(a_node("n0", cpu=4), a_pod("old", node="n0"), a_gang("g", 1), a_pod("g-0", "g", cpu=4)).wait(300)
    world.add(*[a_gang(f"h{i}", 1, created=400) for i in range(2)])
    world.add(*[a_pod(f"h{i}-0", f"h{i}", cpu=4, created=400) for i in range(2)]).run()
    state = world.scheduler.state
    rooms, entities = Rooms(state), {key.name: entity for key, entity in state.queue.entities.items()}
    kind = next(iter(state.queue.waiting)).kind

    kept = rooms.unreserved(kind, entities["h0"])

    cpu = state.cluster.row["cpu"]
    assert kept[cpu, 0] == 0
    assert rooms.unreserved(kind, entities["h1"]) is kept
    assert rooms.unreserved(kind, entities["g"])[cpu, 0] == 3000


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
