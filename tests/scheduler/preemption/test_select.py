"""`select_victims`: only where it helps, as many pods placed as possible, the cheapest victims."""

from __future__ import annotations

from typing import Any

from bench.preemption_rule import tally

from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, a_tree, with_lows
from tests.build.scheduler import a_world


def racks(count: int, size: int = 2) -> list[Any]:
    return [a_node(f"n{i}", cpu=1, rack=f"r{i // size}") for i in range(count * size)]


def test_nobody_is_evicted_when_it_would_not_help():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_pod("big", priority=500, node="n0"), *[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])

    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == []
    assert world.bound("g") == {}
    assert world.condition("PodGroup", "g").reason == "Unschedulable"


def test_as_many_members_as_possible_are_seated():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    for i, priority in enumerate((LOW, LOW, 200, 200)):
        world.add(a_pod(f"old-{i}", priority=priority, node=f"n{i}"))
    world.add(a_gang("g", 1, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["old-0", "old-1"]
    assert len(world.bound("g")) == 2


def test_a_larger_need_takes_the_whole_group_and_the_pod_too():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1)])
    world.add(a_gang("victim", 2, mode="all", priority=50), *pods(2, "victim", priority=50)).run()
    world.add(a_pod("alone", priority=LOW)).run()
    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["alone", "victim-0", "victim-1"]


def test_room_that_an_eviction_frees_beyond_need_is_used_without_another():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=2)])
    world.add(a_gang("low", 2, mode="all", priority=50), *pods(2, "low", priority=50)).run()
    world.add(a_gang("safe", 1, mode="all", priority=200), *pods(1, "safe", priority=200, cpu=2)).run()
    world.add(a_gang("g", 1, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["low-0", "low-1"]
    assert len(world.bound("g")) == 2


def test_nobody_leaves_for_a_pod_that_no_node_can_ever_take():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 2))
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"disk": "ssd"})).run()
    assert world.evicted() == []


def test_the_company_that_the_preemptor_needs_is_spared():
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    with_lows(world, ("cache", "n0", 1), labels={"app": "cache"})
    with_lows(world, ("low", "n0", 1), ("far", "n1", 2))
    world.add(a_pod("vip", priority=HIGH, affinity=near)).run()
    assert world.evicted() == ["low"]
    assert world.bound("vip") == {"vip": "n0"}


def test_nobody_leaves_when_no_rack_can_hold_the_gang():
    world = a_world(racks(2))
    with_lows(world, *[(f"low-{i}", f"n{i}", 1) for i in range(4)])
    world.add(a_gang("g", 3, topology=RACK, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == []


def test_nobody_leaves_for_a_tree_that_would_not_fit_even_then():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    a_tree(world, "all", "all")
    world.add(a_composite("big", 2, priority=HIGH))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="big", priority=HIGH), *pods(2, name, priority=HIGH))
    world.run()
    assert world.evicted() == []


def test_no_choice_is_dearer_than_that_of_removing_all_and_putting_back():
    found = tally(40, first_seed=5000)
    assert found.dearer == 0
    assert found.pods[0] < found.pods[1]
    assert found.gangs[0] < found.gangs[1]
