"""Preemptions that something comes between: other preemptors, lost nodes, pods that cannot be deleted."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import groups as api
from muster.api import types
from muster.scheduler.cycle import preempt
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10
MARK = types.Condition(
    api.DISRUPTION_TARGET, "True", "PreemptionByScheduler", "default-scheduler: preempting to accommodate"
)


def lows(world: TestWorld, count: int, node: str = "n0", **fields: Any) -> TestWorld:
    return world.add(*[a_pod(f"low-{i}", priority=LOW, node=node, **fields) for i in range(count)])


def until(world: TestWorld, kind: type) -> None:
    """Turns until a decision of a kind was carried out."""
    while not any(isinstance(decision, kind) for decision in world.log):
        assert world.step(), f"no {kind.__name__} came"


def marked(world: TestWorld) -> set[str]:
    every = [obj for (kind, _, _), obj in world.objects.items() if kind == "Pod"]
    return {
        p.metadata.name for p in every for c in p.status.conditions or () if c.type == MARK.type and c.status == "True"
    }


def a_waiting_world(slow: bool = True) -> TestWorld:
    """A gang of two waits for two victims."""
    world = a_world([a_node("n0", cpu=2)])
    world.slow_victims = slow
    lows(world, 2)
    return world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))


def nominated(world: TestWorld) -> set[str]:
    return {name for (kind, _, name), o in world.objects.items() if kind == "Pod" and o.status.nominated_node_name}


def forbid(world: TestWorld, name: str) -> None:
    """The API refuses to delete one pod."""
    delete = world._evict

    def evict(ref: ObjectRef) -> None:
        if ref.name == name:
            world.scheduler.handle(events.EvictionFailed(ref.uid, "forbidden"), world.now)
        else:
            delete(ref)

    world._evict = evict


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
    assert not world.scheduler.state.nominations


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


def test_a_victim_that_leaves_after_its_deletion_was_refused_is_waited_for():
    world = a_world([a_node("n0", cpu=1)])
    world.slow_victims = True
    world.add(a_pod("stubborn", priority=1, node="n0"))
    forbid(world, "stubborn")
    world.add(a_pod("vip", priority=HIGH)).run()
    assert nominated(world) == set()

    world.terminate("stubborn")
    world.run(turns=20)  # it comes to rest: one plan, not one after the other

    assert nominated(world) == {"vip"}
    assert world.evicted() == ["stubborn"], "it is not asked again"
    world.reap()
    assert world.run().bound() == {"vip": "n0"}


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


def test_victims_are_not_deleted_for_a_plan_that_no_longer_holds_whoever_else_has_looked():
    world = lows(a_world([a_node("n0", cpu=2)]), 2)
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    until(world, d.Nominate)
    assert world.evicted() == []
    world.add(a_node("n0", cpu=1))

    decided = preempt.proceed(world.scheduler.state, world.now)

    assert not any(isinstance(decision, d.Evict) for decision in decided)
    assert any(isinstance(decision, d.Nominate) and not decision.node for decision in decided), "it is cancelled"


def test_pods_that_are_just_being_bound_are_asked_to_leave_as_soon_as_they_are():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("low", priority=LOW))
    bind = next(x for x in world.scheduler.next(0.0) if isinstance(x, d.Bind))
    world.add(a_pod("vip", priority=HIGH))
    while world.step():
        pass
    assert world.evicted() == []

    world._carry_out(bind)
    world.run()

    assert world.evicted() == ["low"]
    assert "vip" in world.bound()


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


def test_a_group_that_was_to_leave_as_a_whole_is_told_that_it_may_stay():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("low", 2, priority=LOW), *pods(2, "low", priority=LOW)).run()
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    world.step()
    assert world.condition("PodGroup", "low", api.DISRUPTION_TARGET).status == "True"
    world.add(a_node("n1", cpu=2)).run()
    condition = world.condition("PodGroup", "low", api.DISRUPTION_TARGET)
    assert (condition.status, condition.reason) == ("False", "PreemptionCalledOff")
    assert world.evicted() == []
