"""Victims: which running pods are evicted together, and which cannot be evicted."""

from __future__ import annotations

import pytest

from tests.build.objects import a_basic, a_composite, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, a_tree
from tests.build.scheduler import a_world


def test_equal_priority_is_safe():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"peer-{i}", priority=HIGH, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == []


def test_a_unit_of_mode_single_loses_only_what_is_needed():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("victim", 2, mode="single", priority=LOW), *pods(2, "victim", priority=LOW)).run()
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()
    assert len(world.evicted()) == 1


def test_the_highest_ancestor_of_mode_all_is_the_unit():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 2, mode="all", priority=LOW))
    world.add(
        a_gang("a", 1, parent="top", mode="all", priority=LOW), a_gang("b", 2, parent="top", mode="all", priority=LOW)
    )
    world.add(*pods(1, "a", priority=LOW), *pods(2, "b", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["a-0", "b-0", "b-1"]


def test_a_basic_group_of_mode_all_leaves_as_a_whole_too():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_basic("victim", mode="all", priority=LOW), *pods(3, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["victim-0", "victim-1", "victim-2"]


@pytest.mark.parametrize(
    ("top", "leaf", "victims"),
    [
        ("all", "all", ["t-a-0", "t-b-0", "t-b-1"]),
        ("all", "single", ["t-a-0", "t-b-0", "t-b-1"]),  # the highest `all` decides, whatever is below it
        ("single", "all", ["t-b-0", "t-b-1"]),
        ("single", "single", ["t-b-1"]),
    ],
)
def test_the_highest_whole_ancestor_is_the_unit(top: str, leaf: str, victims: list[str]):
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    a_tree(world, top, leaf)
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"kubernetes.io/hostname": "n1"})).run()
    assert [name[:3] for name in world.evicted()] == [name[:3] for name in victims]


def test_a_grandparent_of_mode_all_takes_everyone_below_along():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 1, mode="all", priority=LOW))
    world.add(a_composite("mid", 1, mode="all", priority=LOW, parent="top", workload="wl/mid"))
    world.add(a_gang("leaf", 2, mode="all", priority=LOW, parent="mid"), *pods(2, "leaf", priority=LOW))
    world.add(a_gang("side", 1, mode="all", priority=LOW, parent="top"), *pods(1, "side", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["leaf-0", "leaf-1", "side-0"]


def test_a_parent_of_mode_all_below_a_grandparent_of_mode_single_takes_only_its_own():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 1, mode="single", priority=LOW))
    world.add(a_composite("mid", 1, mode="all", priority=LOW, parent="top", workload="wl/mid"))
    world.add(a_gang("leaf", 2, mode="all", priority=LOW, parent="mid"), *pods(2, "leaf", priority=LOW))
    world.add(a_gang("side", 1, priority=LOW, parent="top"), *pods(1, "side", priority=LOW)).run()
    where = world.bound("leaf")["leaf-0"]
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"kubernetes.io/hostname": where})).run()
    assert world.evicted() == ["leaf-0", "leaf-1"]


def test_without_its_parent_object_a_group_keeps_its_own_mode():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("orphan", 2, mode="all", parent="absent", priority=LOW))
    world.add(*[a_pod(f"orphan-{i}", "orphan", priority=LOW, node=f"n{i}") for i in range(2)])
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["orphan-0", "orphan-1"]
