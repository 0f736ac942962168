"""The supply of seats: countable shapes, what is free, what victims free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.build.objects import RACK, a_gang, a_node, a_pod, apart, near, pods
from tests.build.preemption import HIGH, LOW, Evictions, a_tree, with_lows
from tests.build.scheduler import a_world


def test_pod_level_resources_count():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 1))
    world.add(a_pod("vip", cpu=0, priority=HIGH, resources={"requests": {"cpu": "2"}})).run()
    assert world.evicted() == ["low"]


def test_the_holder_of_a_host_port_leaves_although_there_is_room():
    port = {"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    world = a_world([a_node("n0", cpu=4)])
    with_lows(world, ("holder", "n0", 1), containers=[port])
    with_lows(world, ("other", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, containers=[port])).run()
    assert world.evicted() == ["holder"]


WEB = {"containers": [{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]}
SPREAD = {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


@pytest.mark.parametrize(
    ("spec", "countable"),
    [
        ({}, True),
        (WEB, True),
        ({"affinity": near(RACK, app="stays")}, True),
        ({"affinity": near(RACK, app="victim")}, False),
        ({"affinity": near(RACK, app="own"), "labels": {"app": "own"}}, False),
        ({"affinity": apart(RACK, app="other")}, False),
        ({"topologySpreadConstraints": [SPREAD]}, False),
    ],
)
def test_a_shape_can_be_counted_unless_victims_decide_where_it_may_be(spec: dict[str, Any], countable: bool):
    world = with_lows(a_world([a_node("n0", rack="r0")]), ("low", "n0", 1), labels={"app": "victim"})

    assert (Evictions(world).countable(a_pod("new", **spec)) is not None) is countable


def test_a_countable_shape_has_the_nodes_it_may_use():
    world = a_world([a_node("n0", rack="r0"), a_node("n1", rack="r1"), a_node("n2", taints=["t=:NoSchedule"])])
    world.add(a_pod("stays", node="n1", priority=500, labels={"app": "stays"}))
    found = Evictions(world)

    plain, affine = found.countable(a_pod("p")), found.countable(a_pod("q", affinity=near(RACK, app="stays")))

    assert plain is not None
    assert affine is not None
    assert plain.nodes.tolist() == [True, True, False]
    assert affine.nodes.tolist() == [False, True, False]


def test_seats_are_what_is_free_and_what_victims_free():
    world = with_lows(
        a_world([a_node("n0", cpu=4), a_node("n1", cpu=4)]), ("a", "n0", 3), ("b", "n1", 1), ("c", "n1", 2)
    )
    found = Evictions(world)
    shape = found.countable(a_pod("new", cpu=2))
    assert shape is not None

    supply = found.supply(shape)

    assert supply.seats(shape).tolist() == [0, 0]
    assert supply.seats(shape, supply.free_without([found.number("a")])).tolist() == [2, 0]
    assert supply.seats(shape, supply.free_without([found.number("b")])).tolist() == [0, 1]
    assert supply.seats(shape, supply.free_without(range(3))).tolist() == [2, 2]
    assert supply.seats(shape).tolist() == [0, 0]


def test_the_number_of_pods_is_a_row_too():
    world = with_lows(a_world([a_node("n0", cpu=9, pods=2)]), ("a", "n0", 1), ("b", "n0", 1))
    found = Evictions(world)
    shape = found.countable(a_pod("new"))
    assert shape is not None

    supply = found.supply(shape)

    assert supply.seats(shape).tolist() == [0]
    assert supply.seats(shape, supply.free_without([0])).tolist() == [1]


def test_a_host_port_is_one_more_row_of_which_a_node_has_one():
    world = with_lows(a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)]), ("holder", "n0", 1), **WEB)
    found = Evictions(world)
    web, plain = found.countable(a_pod("new", **WEB)), found.countable(a_pod("plain"))
    assert web is not None
    assert plain is not None

    supply = found.supply(plain, web)

    assert supply.seats(web).tolist() == [0, 1]
    assert supply.seats(web, supply.free_without([0])).tolist() == [1, 1]
    assert supply.seats(plain).tolist()[1] == 9


def test_pods_of_others_can_be_added_and_taken_away():
    world = a_world([a_node("n0", cpu=4)])
    found = Evictions(world)
    shape = found.countable(a_pod("new"))
    assert shape is not None
    supply = found.supply(shape)

    supply.add(found.shape(a_pod("big", cpu=3)).footprint, 0, -1)
    assert supply.seats(shape).tolist() == [1]
    supply.add(found.shape(a_pod("big", cpu=3)).footprint, 0, +1)
    assert supply.seats(shape).tolist() == [4]


def test_a_victim_on_several_nodes_frees_room_on_each():
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=4)])
    a_tree(world, "all", "all")
    found = Evictions(world)
    shape = found.countable(a_pod("new"))
    assert shape is not None

    supply = found.supply(shape)

    freed = dict(supply.freed_by(0))
    assert sorted(freed) == [0, 1]
    assert np.subtract(freed[1], freed[0]).tolist() == list(freed[0])  # two pods on n1, one on n0
    assert [[number for number, _ in supply.on_slot(slot)] for slot in range(2)] == [[0], [0]]
    assert supply.is_spread(0)


def test_members_of_a_gang_that_can_be_evicted_one_by_one_are_known():
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_gang("g", 1, priority=LOW), *(a_pod(f"g-{i}", "g", priority=LOW, node="n0") for i in range(3)))
    with_lows(world, ("alone", "n0", 1))
    found = Evictions(world, marked={"pod-g-2"})
    shape = found.countable(a_pod("new"))
    assert shape is not None

    supply = found.supply(shape)

    gang = supply.gang_of[found.number("g-0")]
    assert found.victims.groups[gang].key.name == "g"
    assert sorted(found.victims[number].key.name for number in supply.members(gang)) == ["g-0", "g-1"]
    assert supply.slack[gang] == 2
    assert [supply.gang_of[found.number(name)] for name in ("g-1", "g-2", "alone")] == [gang, -1, -1]


def test_affinity_beside_spreading_cannot_be_counted():
    world = a_world([a_node("n0", rack="r0")])
    spec = {"affinity": near(RACK, app="stays"), "topologySpreadConstraints": [SPREAD]}

    assert Evictions(world).countable(a_pod("new", **spec)) is None


def test_one_of_several_ports_is_enough_for_a_conflict():
    ports = [{"hostPort": port, "containerPort": port} for port in (80, 81)]
    two = {"containers": [{"name": "c", "ports": ports}]}
    world = with_lows(a_world([a_node("n0"), a_node("n1")]), ("holder", "n0", 1), **WEB)
    found = Evictions(world)
    shape = found.countable(a_pod("new", **two))
    assert shape is not None

    supply = found.supply(shape)

    assert supply.seats(shape).tolist() == [0, 1]
    assert supply.seats(shape, supply.free_without([0])).tolist() == [1, 1]
