"""Victims for whole requests: each group in its cheapest domain."""

from __future__ import annotations

from typing import Any

from tests.build.objects import BLOCK, RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, with_lows
from tests.build.scheduler import a_world


def racks(count: int, size: int = 2) -> list[Any]:
    return [a_node(f"n{i}", cpu=1, rack=f"r{i // size}") for i in range(count * size)]


def test_the_cheapest_rack_wins():
    world = a_world([a_node(f"n{i}", cpu=1, rack=f"r{i // 2}") for i in range(4)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node=f"n{i}") for i in range(3)])

    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH)).run()

    assert world.evicted() == ["low-2"]
    assert {world.domain(name) for name in world.bound("g")} == {"r1"}


def test_a_rack_that_is_blocked_is_left_alone():
    world = a_world(racks(2))
    with_lows(world, ("vip-0", "n0", 1), priority=200)
    with_lows(world, ("low-1", "n1", 1), ("low-2", "n2", 1), ("low-3", "n3", 1))
    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["low-2", "low-3"]


def test_the_rack_whose_victims_have_lower_priority_wins():
    world = a_world(racks(2))
    with_lows(world, ("a", "n0", 1), ("b", "n1", 1), priority=50)
    with_lows(world, ("c", "n2", 1), ("d", "n3", 1), priority=5)
    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["c", "d"]


def test_late_members_make_room_inside_their_domain_even_if_it_is_dearer():
    world = a_world(racks(2))
    world.add(a_gang("g", 1, topology=RACK, priority=HIGH), a_pod("g-0", "g", priority=HIGH, node="n0"))
    with_lows(world, ("dear", "n1", 1), priority=90)
    with_lows(world, ("cheap", "n2", 1), ("other", "n3", 1), priority=1)
    world.add(a_pod("late", "g", priority=HIGH)).run()
    assert world.evicted() == ["dear"]


def test_a_tree_takes_the_cheapest_block_and_in_it_one_rack_for_each_child():
    nodes = [a_node(f"n{i}", cpu=1, rack=f"r{i // 2}", block=f"b{i // 4}") for i in range(8)]
    world = a_world(nodes)
    with_lows(world, *[(f"low-{i}", f"n{i}", 1) for i in range(8)])
    world.add(*[a_pod(f"mid-{i}", cpu=0, priority=50, node=f"n{i}") for i in range(4)])
    world.add(a_node("n7", cpu=2, rack="r3", block="b1"))
    world.add(a_composite("tree", 2, priority=HIGH, topology=BLOCK))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="tree", topology=RACK, priority=HIGH), *pods(2, name, priority=HIGH))
    world.run()
    assert world.evicted() == ["low-4", "low-5", "low-6"]
    assert {world.domain("x-0"), world.domain("x-1")} != {world.domain("y-0"), world.domain("y-1")}
