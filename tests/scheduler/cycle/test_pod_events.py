"""Pods as the watches show them, and answers of the API to binds."""

from __future__ import annotations

from typing import Any

from tests.build.delayed_api import a_delayed_api
from tests.build.objects import RACK, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10


def lows(world: TestWorld, count: int, node: str = "n0", **fields: Any) -> TestWorld:
    return world.add(*[a_pod(f"low-{i}", priority=LOW, node=node, **fields) for i in range(count)])


def nominated(world: TestWorld) -> set[str]:
    return {name for (kind, _, name), o in world.objects.items() if kind == "Pod" and o.status.nominated_node_name}


def test_members_that_succeeded_count_for_a_completing_gang():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.finish("g-0")
    world.finish("g-1")

    world.add(a_pod("late", "g")).run()

    assert "late" in world.bound()


def test_failed_and_terminating_members_never_count():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.finish("g-0", "Failed")
    world.terminate("g-1")

    world.add(a_pod("late", "g"))
    world.wait(3)

    assert "late" not in world.bound()


def test_a_refused_bind_is_planned_again_while_the_others_keep_their_seats():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.refuse_binds.add("g-1")

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert len(world.bound()) == 3


def test_with_gang_scheduling_switched_off_in_its_profile_members_are_single_pods():
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}}}],
    }
    world = a_world([a_node("n0", cpu=2)], config=config)

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert len(world.bound()) == 2


def test_a_refused_member_is_planned_again_and_the_others_keep_their_seats():
    world = a_world([a_node(f"n{i}", cpu=2, rack="r0") for i in range(2)])
    world.refuse_binds = {"g-1"}
    world.add(a_gang("g", 3, topology=RACK), *pods(3, "g")).run()
    assert len(world.bound("g")) == 3


def test_pods_bound_by_someone_else_meanwhile_are_never_overcommitted():
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    world.slow_victims = True
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    world.reap()
    world.add(a_pod("foreign", cpu=1, priority=900, node="n0", scheduler="other")).run()
    assert world.bound("g") == {}
    assert nominated(world) == set()


def test_pods_bound_to_a_node_that_was_deleted_meanwhile_count_when_it_is_back():
    api = a_delayed_api([a_node("n0", cpu=2)])
    api.add(a_gang("g", 2), *pods(2, "g"))
    api.deliver()
    api.cycles()
    api.remove("Node", "n0")
    api.deliver()
    api.execute()
    api.answer()
    api.deliver()
    group = api.scheduler.state.forest.members["pod-g-0"].group
    assert group is not None
    assert group.bound == 0

    api.add(a_node("n0", cpu=2))
    api.deliver()

    assert group.bound == 2
