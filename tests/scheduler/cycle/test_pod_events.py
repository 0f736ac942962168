"""Pods as the watches show them, and answers of the API to binds."""

from __future__ import annotations

from typing import Any

from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
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
    assert len(world.bound()) == 2

    world.wait(1.0)
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
    world.add(a_gang("g", 3, topology=RACK), *pods(3, "g")).wait(1.0)
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


def test_a_pod_of_another_scheduler_counts_once_it_is_bound():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("theirs", scheduler="other"))
    assert world.scheduler.state.forest.members == {}
    world.add(a_pod("theirs", scheduler="other", node="n0"))
    assert list(world.scheduler.state.cluster.pods) == ["pod-theirs"]


def test_a_view_that_is_older_than_the_bind_is_ignored():
    world = a_world([a_node("n0")]).add(a_pod("p", node="n0"))
    world.add(a_pod("p"))
    assert world.scheduler.state.cluster.pods["pod-p"].node == "n0"
    assert world.scheduler.state.queue.entities == {}


def test_the_deletion_of_an_unknown_pod_changes_nothing():
    world = a_world()
    version = world.scheduler.state.version
    world.scheduler.handle(events.ObjectDeleted("Pod", "ns", "nobody", "uid"), 0.0)
    assert world.scheduler.state.version == version


def test_the_late_deletion_of_an_earlier_pod_of_the_name_leaves_the_new_one_alone():
    world = a_world([a_node("n0")]).add(a_pod("p", node="n0"))
    world.scheduler.handle(events.ObjectDeleted("Pod", "ns", "p", "another"), 0.0)
    assert world.scheduler.state.cluster.pods.keys() == {"pod-p"}


def test_an_accepted_bind_is_recorded_as_an_event():
    world = a_world([a_node("n0")]).add(a_pod("p")).run()
    assert [(event.reason, event.note) for event in world.events] == [("Scheduled", "Successfully assigned ns/p to n0")]


def test_a_refused_bind_is_recorded_with_its_reason_and_its_room_is_free_at_once():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p"))
    (bind,) = world.scheduler.next(0.0)
    assert isinstance(bind, d.Bind)
    world.scheduler.handle(events.BindFailed(bind.pod.uid, bind.node, "forbidden"), 0.0)
    assert world.scheduler.state.cluster.pods == {}
    recorded = [each for each in world.scheduler.next(0.0) if isinstance(each, d.RecordEvent)]
    assert [each.note for each in recorded] == ["binding failed: forbidden"]


def test_a_pod_that_is_deleted_while_its_bind_is_in_flight_gives_its_room_back():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("p"))
    world.scheduler.next(0.0)
    world.terminate("p")
    assert world.scheduler.state.cluster.pods == {}
    assert world.scheduler.state.queue.entities == {}
    world.scheduler.handle(events.BindFailed("pod-p", "n0", "the pod is being deleted"), 0.0)
    assert world.scheduler.state.assumed.in_flight() == 0
