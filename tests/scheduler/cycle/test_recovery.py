"""A restarted scheduler finishes or takes back what an earlier run left half done."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api import groups as api
from muster.api import types
from muster.scheduler.queue.entity import EntityState
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, apart, pods
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10
MARK = types.Condition(
    api.DISRUPTION_TARGET, "True", "PreemptionByScheduler", "default-scheduler: preempting to accommodate"
)


def lows(world: TestWorld, count: int, node: str = "n0", **fields: Any) -> TestWorld:
    return world.add(*[a_pod(f"low-{i}", priority=LOW, node=node, **fields) for i in range(count)])


def with_status(pod: types.Pod, **fields: Any) -> types.Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **fields))


def marked(world: TestWorld) -> set[str]:
    every = [obj for (kind, _, _), obj in world.objects.items() if kind == "Pod"]
    return {
        p.metadata.name for p in every for c in p.status.conditions or () if c.type == MARK.type and c.status == "True"
    }


def nominated(world: TestWorld) -> set[str]:
    return {name for (kind, _, name), o in world.objects.items() if kind == "Pod" and o.status.nominated_node_name}


def test_a_gang_bound_in_part_comes_first_after_a_restart():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("half", 2, created=50), a_pod("half-0", "half", node="n0"), a_pod("half-1", "half", created=50))
    world.add(a_pod("important", priority=HIGH, policy="Never"))
    world.restart()
    world.run()
    assert set(world.bound()) == {"half-0", "half-1"}


def test_a_tree_with_one_child_bound_and_the_other_not_is_incomplete_too():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("tree", 2, created=50))
    world.add(a_gang("a", 1, parent="tree"), a_pod("a-0", "a", node="n0"))
    world.add(a_gang("b", 1, parent="tree"), a_pod("b-0", "b", created=50))
    world.add(a_pod("important", priority=HIGH, policy="Never"))
    world.restart()
    world.run()
    assert set(world.bound()) == {"a-0", "b-0"}


def test_marked_victims_are_finished_off_and_no_others():
    world = a_world([a_node("n0", cpu=4)])
    lows(world, 4)
    for name in ("low-1", "low-3"):
        world.add(with_status(world.pod(name), conditions=(MARK,)))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    world.restart()
    world.run()
    assert world.evicted() == ["low-1", "low-3"]
    assert len(world.bound("g")) == 2


def test_marks_that_nobody_needs_any_more_are_taken_back():
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    world.add(with_status(world.pod("low-0"), conditions=(MARK,)))
    world.restart()
    world.run()
    assert world.evicted() == []
    assert marked(world) == set()


def test_the_mark_of_another_scheduler_is_not_ours_to_take_back():
    world = lows(a_world([a_node("n0", cpu=2)]), 1)
    foreign = types.Condition(MARK.type, "True", MARK.reason, "kube-scheduler: preempting to accommodate")
    world.add(with_status(world.pod("low-0"), conditions=(foreign,)))
    world.restart()
    world.run()
    assert marked(world) == {"low-0"}


def test_a_nomination_without_a_victim_is_void():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 3, priority=HIGH), with_status(a_pod("g-0", "g", priority=HIGH), nominated_node_name="n0"))
    world.restart()
    world.add(a_pod("peer", cpu=2)).run()
    assert nominated(world) == set()
    assert "peer" in world.bound()


def test_seats_stay_held_over_a_restart_while_a_victim_is_still_leaving():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.slow_victims = True
    world.add(a_pod("older", priority=HIGH, created=0, gates=["later"]))
    world.add(a_pod("low-0", priority=LOW, node="n0"), a_pod("low-1", priority=LOW, node="n1"))
    world.add(a_gang("g", 2, priority=HIGH, created=5), *pods(2, "g", priority=HIGH, created=5)).run()
    world.remove("Pod", "low-0")
    world.restart()

    world.add(a_pod("older", priority=HIGH, created=0)).run()
    world.reap()
    world.run()

    assert len(world.bound("g")) == 2
    assert world.evicted() == ["low-0", "low-1"]


def test_a_seat_that_waits_for_a_pod_to_leave_another_node_is_held_over_a_restart():
    world = a_world([a_node("n0", cpu=4, rack="r0"), a_node("n1", cpu=1, rack="r0")])
    world.add(a_pod("noisy", node="n1", labels={"app": "noisy"}, scheduler="someone"))
    world.terminate("noisy")
    world.add(a_pod("quiet", cpu=4, affinity=apart(RACK, app="noisy"), priority=HIGH)).run()
    assert world.pod("quiet").status.nominated_node_name == "n0"
    world.add(a_pod("earlier", cpu=4, priority=HIGH, created=0, gates=["later"]))

    world.restart()
    world.add(a_pod("earlier", cpu=4, priority=HIGH, created=0)).run()

    assert nominated(world) == {"quiet"}
    assert "earlier" not in world.bound()


def test_a_group_evicted_before_the_restart_is_no_target_once_it_is_bound_again():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_gang("victim", 1, mode="all", priority=LOW), *pods(1, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    world.restart()
    world.run()
    assert world.condition("PodGroup", "victim", api.QUORUM_MET).reason == "Preempted"

    world.add(a_node("n1", cpu=1), a_pod("again", "victim", priority=LOW)).run()

    assert world.condition("PodGroup", "victim", api.DISRUPTION_TARGET).status == "False"


def test_members_on_a_node_that_does_not_exist_count_when_it_comes_back():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    world.remove("Node", "n0")
    world.restart()
    group = world.scheduler.state.forest.members["pod-g-0"].group
    assert group is not None
    assert group.bound == 0

    world.add(a_node("n0", cpu=2))

    assert group.bound == 2


def test_a_gang_that_lost_members_with_their_node_waits_for_others_after_a_restart():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.add(a_gang("g", 3), *pods(4, "g")[:3])
    world.run()
    lost = world.pod("g-0").spec.node_name
    world.remove("Node", lost)
    world.add(pods(4, "g")[3])
    world.restart()

    (entity,) = world.scheduler.state.queue.entities.values()

    assert entity.state is EntityState.INCOMPLETE
