"""Commits and evictions that were interrupted: by a restart, a refused bind, a lost node, another scheduler."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api import groups as api
from muster.api import types
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.queue.entity import EntityState
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10
MARK = types.Condition(
    api.DISRUPTION_TARGET, "True", "PreemptionByScheduler", "default-scheduler: preempting to accommodate"
)


def lows(world: TestWorld, count: int, node: str = "n0", **fields: Any) -> TestWorld:
    return world.add(*[a_pod(f"low-{i}", priority=LOW, node=node, **fields) for i in range(count)])


def with_status(pod: types.Pod, **fields: Any) -> types.Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **fields))


def until(world: TestWorld, kind: type) -> None:
    """Turns until a decision of a kind was carried out."""
    while not any(isinstance(decision, kind) for decision in world.log):
        assert world.step(), f"no {kind.__name__} came"


def marked(world: TestWorld) -> set[str]:
    every = [obj for (kind, _, _), obj in world.objects.items() if kind == "Pod"]
    return {
        p.metadata.name for p in every for c in p.status.conditions or () if c.type == MARK.type and c.status == "True"
    }


def nominated(world: TestWorld) -> set[str]:
    return {name for (kind, _, name), o in world.objects.items() if kind == "Pod" and o.status.nominated_node_name}


def forbid(world: TestWorld, name: str) -> None:
    """The API refuses to delete one pod."""
    delete = world._evict

    def evict(ref: ObjectRef) -> None:
        if ref.name == name:
            world.brain.handle(events.EvictionFailed(ref.uid, "forbidden"), world.now)
        else:
            delete(ref)

    world._evict = evict


# --- a restart -------------------------------------------------------------------------------------


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


def test_the_rest_of_a_gang_goes_to_the_domain_of_those_who_are_bound():
    world = a_world([a_node(f"n{i}", cpu=4, rack=f"r{i}") for i in range(3)])
    world.add(a_gang("g", 3, topology=RACK), a_pod("g-0", "g", node="n2"), a_pod("g-1", "g"), a_pod("g-2", "g"))
    world.restart()
    world.run()
    assert set(world.bound("g").values()) == {"n2"}


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


def test_a_group_evicted_before_the_restart_is_no_target_once_it_is_bound_again():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_gang("victim", 1, mode="all", priority=LOW), *pods(1, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    world.restart()
    world.run()
    assert world.condition("PodGroup", "victim", api.QUORUM_MET).reason == "Preempted"

    world.add(a_node("n1", cpu=1), a_pod("again", "victim", priority=LOW)).run()

    assert world.condition("PodGroup", "victim", api.DISRUPTION_TARGET).status == "False"


# --- while victims leave ---------------------------------------------------------------------------


def a_waiting_world(slow: bool = True) -> TestWorld:
    """A gang of two waits for two victims."""
    world = a_world([a_node("n0", cpu=2)])
    world.slow_victims = slow
    lows(world, 2)
    return world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))


@pytest.mark.parametrize("kind", ["gang", "pod"])
def test_a_preemptor_that_is_deleted_before_the_deletes_gives_everything_back(kind: str):
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    if kind == "gang":
        world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    else:
        world.add(a_pod("g-0", cpu=2, priority=HIGH))
    until(world, d.Nominate)
    assert marked(world) == {"low-0", "low-1"}

    for name in sorted(world.pending("g")):
        world.remove("Pod", name)
    world.run()

    assert world.evicted() == []
    assert marked(world) == set()
    assert not world.brain.state.nominations


def test_room_held_for_a_deleted_preemptor_is_free_for_others():
    world = a_waiting_world().run()
    world.add(a_pod("next", priority=LOW)).run()
    for i in range(2):
        world.remove("Pod", f"g-{i}")
    world.reap()
    world.run()
    assert set(world.bound()) == {"next"}


def test_a_preemptor_that_someone_else_binds_gives_its_marks_back():
    world = lows(a_world([a_node("n0", cpu=2), a_node("n1", cpu=1, unready="yes")]), 2)
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"kubernetes.io/hostname": "n0"}))
    until(world, d.Nominate)
    world.add(a_pod("vip", priority=HIGH, node="n1")).run()
    assert world.evicted() == []
    assert marked(world) == set()


def test_a_higher_priority_may_take_the_seats_and_the_first_plans_again():
    world = a_waiting_world().run()
    world.add(a_gang("king", 2, priority=500), *pods(2, "king", priority=500)).run()
    world.reap()
    world.run()
    assert set(world.bound()) == {"king-0", "king-1"}
    assert nominated(world) == set()
    assert world.evicted() == ["low-0", "low-1"], "what leaves anyway is enough: nobody is evicted twice"


def test_two_preemptors_take_different_victims():
    world = a_world([a_node("n0", cpu=4)])
    world.slow_victims = True
    lows(world, 4)
    for name in ("one", "two"):
        world.add(a_gang(name, 2, priority=HIGH), *pods(2, name, priority=HIGH))
    world.run()
    assert len(world.evicted()) == len(set(world.evicted())) == 4
    world.reap()
    world.run()
    assert len(world.bound("one")) == len(world.bound("two")) == 2


def test_room_on_its_way_is_shared_before_anyone_else_must_go():
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=2)])
    world.slow_victims = True
    world.add(a_pod("large", cpu=4, priority=LOW, node="n0"), a_pod("other", cpu=2, priority=1, node="n1", labels={}))
    world.add(a_gang("one", 2, priority=HIGH), *pods(2, "one", priority=HIGH)).run()
    first = world.evicted()
    world.add(a_gang("two", 2, priority=HIGH), *pods(2, "two", priority=HIGH)).run()
    world.reap()
    world.run()
    assert len(world.bound("one")) == len(world.bound("two")) == 2
    assert len(world.evicted()) <= len(first) + 1


def test_a_victim_that_never_leaves_blocks_its_preemptor_but_starts_no_second_round():
    world = a_waiting_world().run()
    world.add(a_node("n1", cpu=1), a_pod("more", priority=LOW, node="n1"))
    world.wait(600)
    assert world.evicted() == ["low-0", "low-1"]
    assert world.condition("PodGroup", "g").reason == "WaitingForVictims"


def test_a_tree_that_waits_takes_room_that_appears_elsewhere():
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    world.slow_victims = True
    world.add(a_composite("tree", 2, priority=HIGH))
    for name in ("x", "y"):
        world.add(a_gang(name, 1, parent="tree", priority=HIGH), a_pod(f"{name}-0", name, priority=HIGH))
    world.run()
    assert world.condition("CompositePodGroup", "tree").reason == "WaitingForVictims"

    world.add(a_node("n1", cpu=4)).run()

    assert set(world.bound("x") | world.bound("y")) == {"x-0", "y-0"}
    assert nominated(world) == set()


def test_a_victim_that_cannot_be_deleted_is_let_be_and_another_is_found():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_pod("stubborn", priority=1, node="n0"), a_pod("other", priority=LOW, node="n1"))
    forbid(world, "stubborn")
    world.add(a_pod("vip", priority=HIGH)).run()

    assert world.evicted() == ["other", "stubborn"]
    assert world.bound("vip") == {"vip": "n1"}
    assert world.condition("Pod", "stubborn", api.DISRUPTION_TARGET).status == "False"


def test_a_victim_that_cannot_be_deleted_is_not_asked_again_and_again():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("stubborn", priority=1, node="n0"))
    forbid(world, "stubborn")
    world.add(a_pod("vip", priority=HIGH)).run()
    world.wait(30)
    assert world.evicted() == ["stubborn"]
    assert marked(world) == nominated(world) == set()

    world.wait(60)
    assert world.evicted() == ["stubborn", "stubborn"]


def test_a_plan_that_can_no_longer_hold_parks_its_root_with_a_reason():
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    until(world, d.Nominate)
    world.add(a_pod("intruder", cpu=0, priority=500, node="n0"), a_node("n0", cpu=1))
    world.check = lambda: None
    world.run()
    assert world.evicted() == []
    assert marked(world) == nominated(world) == set()
    assert world.condition("PodGroup", "g").reason == "Unschedulable"

    world.add(a_node("n1", cpu=2)).run()
    assert len(world.bound("g")) == 2


def test_pods_that_are_just_being_bound_are_asked_to_leave_as_soon_as_they_are():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("low", priority=LOW))
    bind = next(x for x in world.brain.next(0.0) if isinstance(x, d.Bind))
    world.add(a_pod("vip", priority=HIGH))
    while world.step():
        pass
    assert world.evicted() == []

    world._carry_out(bind)
    world.run()

    assert world.evicted() == ["low"]
    assert "vip" in world.bound()


# --- binds that fail, nodes that go, others who bind -----------------------------------------------


def test_a_refused_member_is_planned_again_and_the_others_keep_their_seats():
    world = a_world([a_node(f"n{i}", cpu=2, rack="r0") for i in range(2)])
    world.refuse_binds = {"g-1"}
    world.add(a_gang("g", 3, topology=RACK), *pods(3, "g")).run()
    assert len(world.bound("g")) == 3


def stuck(owner: str | None) -> TestWorld:
    """Two of three members are bound when the room for the third is taken for good."""
    world = a_world([a_node("n0", cpu=3)])
    world.refuse_binds = {"g-2"}
    world.add(a_gang("g", 3), *pods(3, "g", owner=owner))
    until(world, d.Bind)
    return world.add(a_pod("squatter", node="n0")).run()


def test_a_gang_that_cannot_be_completed_gives_its_pods_back_after_the_timeout():
    world = stuck(owner="job")
    world.wait(299)
    assert world.evicted() == []
    world.wait(2)
    assert world.evicted() == ["g-0", "g-1"]


def test_bare_pods_are_kept_and_reported():
    world = stuck(owner=None)
    world.wait(400)
    assert world.evicted() == []
    note = next(event.note for event in world.events if event.reason == "BindTimeout")
    assert "(g-0, g-1)" in note


def test_a_group_that_once_ran_is_never_torn_down():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 2), *pods(2, "g", owner="job")).run()
    world.remove("Pod", "g-1")
    world.add(a_pod("squatter", node="n0"), a_pod("g-2", "g", owner="job")).run()
    world.wait(1000)
    assert world.evicted() == []
    assert world.condition("PodGroup", "g", api.QUORUM_MET).reason == "BelowMinimum"


def test_a_tree_whose_second_child_never_comes_is_given_back_as_a_whole():
    world = a_world([a_node("n0", cpu=4)])
    world.refuse_binds = {"b-0", "b-1"}
    world.add(a_composite("tree", 2))
    for name in ("a", "b"):
        world.add(a_gang(name, 2, parent="tree"), *pods(2, name, owner="set"))
    until(world, d.Bind)
    world.add(a_pod("squatter", cpu=2, node="n0")).run()
    world.wait(400)
    assert world.evicted() == ["a-0", "a-1"]


def test_pods_bound_by_someone_else_meanwhile_are_never_overcommitted():
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    world.slow_victims = True
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    world.reap()
    world.add(a_pod("foreign", cpu=1, priority=900, node="n0", scheduler="other")).run()
    assert world.bound("g") == {}
    assert nominated(world) == set()


def test_replacements_for_a_lost_node_stay_in_the_domain():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])
    world.add(a_gang("g", 4, topology=RACK), *pods(4, "g")).run()
    rack = world.domain("g-0")
    lost = world.bound("g")["g-0"]
    gone = [name for name, node in world.bound("g").items() if node == lost]
    world.remove("Node", lost)
    for name in gone:
        world.remove("Pod", name)
    world.add(*[a_pod(f"new-{i}", "g") for i in range(len(gone))]).run()
    assert world.bound("new") == {}, "the rest of the rack is full"

    world.add(a_node("spare", cpu=4, rack=rack)).run()
    assert set(world.bound("new").values()) == {"spare"}


def test_a_node_lost_while_victims_leave_calls_for_a_new_plan():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.slow_victims = True
    world.add(a_pod("cheap", cpu=2, priority=1, node="n0"), a_pod("dear", cpu=2, priority=LOW, node="n1"))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["cheap"]
    world.remove("Node", "n0")
    world.run()
    world.reap()
    world.run()
    assert set(world.bound("g").values()) == {"n1"}


def test_a_whole_unit_leaves_together_with_its_member_on_a_lost_node():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("victim", 2, mode="all", priority=LOW))
    world.add(*[a_pod(f"victim-{i}", "victim", priority=LOW, node=f"n{i}") for i in range(2)]).run()
    world.remove("Node", "n1")
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["victim-0", "victim-1"]


def test_members_on_a_node_that_does_not_exist_count_when_it_comes_back():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    world.remove("Node", "n0")
    world.restart()
    group = world.brain.state.forest.members["pod-g-0"].group
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

    (entity,) = world.brain.state.queue.entities.values()

    assert entity.state is EntityState.INCOMPLETE
