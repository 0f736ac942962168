"""Victims for seats of one shape, by counting."""

from __future__ import annotations

from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, with_lows
from tests.build.scheduler import a_world


def test_only_as_many_as_needed_leave():
    world = a_world([a_node("n0", cpu=4)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(4)])
    world.add(a_pod("vip", priority=HIGH, cpu=2)).run()
    assert len(world.evicted()) == 2
    assert "vip" in world.bound()


def test_one_large_victim_is_better_than_two_small_ones():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.add(a_pod("large", cpu=2, priority=LOW, node="n0"))
    world.add(*[a_pod(f"small-{i}", priority=LOW, node="n1") for i in range(2)])
    world.add(a_pod("vip", priority=HIGH, cpu=2)).run()
    assert world.evicted() == ["large"]


def test_one_large_pod_leaves_rather_than_one_on_each_node():
    world = a_world([a_node("n1", cpu=2), a_node("n2", cpu=2)])
    with_lows(world, ("large", "n1", 2), ("small", "n2", 1))
    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["large"]
