"""Victims for whole requests: each group in its cheapest domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.placement.request import GroupRequest, leaves, shapes_of
from muster.scheduler.preemption import group_victims
from muster.scheduler.preemption.group_victims import GroupVictims
from muster.scheduler.preemption.victim_selection import VictimSelection
from tests.build.objects import BLOCK, RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, Evictions, with_lows
from tests.build.scheduler import TestWorld, a_world


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


def chosen(world: TestWorld, name: str, wanted: dict[str, int]) -> list[str] | None:
    """The victims chosen for so many pods of each PodGroup of a tree that is pending."""
    found = Evictions(world)
    entity = next(entity for entity in found.state.queue.entities.values() if entity.key.name == name)
    request = request_of(entity, found.state.shape_of, found.state.domain_of)
    shapes = {number: found.countable(shape.pod) for number, shape in shapes_of(request).items()}
    assert None not in shapes.values()
    supply = found.supply(*shapes.values())  # type: ignore[arg-type]
    seats = {
        leaf.key: {leaf.members[0].shape.id: wanted[leaf.key.name]}
        for leaf in leaves(request)
        if leaf.key.name in wanted
    }
    groups = GroupVictims(found.state.cluster, supply, shapes, seats)  # type: ignore[arg-type]
    selection = groups.select(request, VictimSelection(supply), groups.everywhere())
    return None if selection is None else sorted(victim.key.name for victim in selection.victims())


def full_racks(*priorities: tuple[int, int]) -> TestWorld:
    """Racks of two nodes of one cpu, with pods of these priorities."""
    world = a_world(racks(len(priorities)))
    for rack, pair in enumerate(priorities):
        for i, priority in enumerate(pair):
            with_lows(world, (f"r{rack}-{i}", f"n{2 * rack + i}", 1), priority=priority)
    return world


def test_the_cheapest_domain_that_suffices_is_chosen():
    world = full_racks((5, 50), (6, 7), (4, 90))
    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH))

    assert chosen(world, "g", {"g": 2}) == ["r1-0", "r1-1"]
    assert chosen(world, "g", {"g": 1}) == ["r2-0"]
    assert chosen(world, "g", {"g": 3}) is None
    assert chosen(world, "g", {}) == []


def test_without_a_constraint_victims_are_chosen_everywhere():
    world = full_racks((5, 50), (6, 70))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))

    assert chosen(world, "g", {"g": 2}) == ["r0-0", "r1-0"]


def test_each_child_takes_its_seats_before_the_next():
    world = full_racks((5, 5), (6, 6))
    world.add(a_composite("tree", 2, priority=HIGH))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="tree", topology=RACK, priority=HIGH), *pods(2, name, priority=HIGH))

    assert chosen(world, "tree", {"x": 2, "y": 2}) == ["r0-0", "r0-1", "r1-0", "r1-1"]
    assert chosen(world, "tree", {"x": 2}) == ["r0-0", "r0-1"]


def test_a_tree_fails_if_one_of_its_groups_does():
    world = full_racks((5, 5), (6, 500))
    world.add(a_composite("tree", 2, priority=HIGH))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="tree", topology=RACK, priority=HIGH), *pods(2, name, priority=HIGH))

    assert chosen(world, "tree", {"x": 2, "y": 2}) is None


def a_pinned(world: TestWorld, *domains: str) -> list[list[str]]:
    """The nodes of each domain that a group may use whose members are in these already."""
    found = Evictions(world)
    entity = next(entity for entity in found.state.queue.entities.values() if entity.key.name == "g")
    request: GroupRequest = request_of(entity, found.state.shape_of, found.state.domain_of)
    groups = GroupVictims(found.state.cluster, found.supply(), {}, {})
    parts = groups.domains(request.with_topology(RACK, domains), groups.everywhere())
    return [[found.state.cluster.names[slot] for slot in np.flatnonzero(part)] for part in parts]


def test_the_domains_of_a_group_are_all_or_the_one_it_is_in():
    world = full_racks((5, 5), (6, 6))
    world.add(a_node("loose"), a_gang("g", 2, priority=HIGH), *pods(2, "g", cpu=9, priority=HIGH))

    assert a_pinned(world) == [["n0", "n1"], ["n2", "n3"]]
    assert a_pinned(world, "r1") == [["n2", "n3"]]
    assert a_pinned(world, "r0", "r1") == []
    assert a_pinned(world, "") == []


def test_where_there_is_too_much_to_try_the_most_promising_domains_come_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_victims, "MOST_VICTIMS", 3)
    monkeypatch.setattr(group_victims, "FEWEST_DOMAINS", 1)
    world = full_racks((90, 90), (80, 80), (5, 5), (85, 85))
    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH))

    assert chosen(world, "g", {"g": 2}) == ["r2-0", "r2-1"]


def test_constrained_children_choose_before_those_that_may_be_anywhere():
    world = full_racks((5, 5), (6, 500))
    world.add(a_node("n4", cpu=1), a_node("n5", cpu=1))
    with_lows(world, ("loose-0", "n4", 1), ("loose-1", "n5", 1))
    world.add(a_composite("tree", 2, priority=HIGH))
    world.add(a_gang("free", 3, parent="tree", priority=HIGH), *pods(3, "free", priority=HIGH))
    world.add(a_gang("rack", 2, parent="tree", topology=RACK, priority=HIGH), *pods(2, "rack", priority=HIGH))

    assert chosen(world, "tree", {"free": 3, "rack": 2}) == ["loose-0", "loose-1", "r0-0", "r0-1", "r1-0"]
