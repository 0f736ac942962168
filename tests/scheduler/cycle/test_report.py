"""What conditions and events of failed entities say."""

from __future__ import annotations

from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def test_a_rack_that_came_nearest_is_named():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])

    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()

    assert world.bound() == {}
    assert "rack r" in world.condition("PodGroup", "g").message
    assert "4 of 5 seats" in world.condition("PodGroup", "g").message


def test_single_pods_without_room_carry_the_usual_message():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_pod("big", cpu=2)).run()

    assert world.condition("Pod", "big").message == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_composite_reports_for_its_own_level():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("root", 2), a_gang("a", 1, parent="root"), a_gang("b", 2, parent="root"))
    world.add(*pods(1, "a"), *pods(2, "b")).run()

    assert world.bound() == {}
    assert world.condition("CompositePodGroup", "root").reason == "Unschedulable"

    world.add(a_node("n1", cpu=1)).run()

    assert len(world.bound()) == 3
    assert world.condition("CompositePodGroup", "root").status == "True"
