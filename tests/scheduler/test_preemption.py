"""Eviction: only when it helps, never more than needed, never half a unit, never in a cycle that binds."""

from __future__ import annotations

import msgspec
import pytest

from muster.api import groups as api
from muster.scheduler.interface import decisions as d
from tests.build.objects import RACK, a_budget, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world

HIGH, LOW = 100, 10


def test_a_gang_evicts_lower_priority_pods_and_then_runs():
    world = a_world([a_node("n0", cpu=3)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(3)])

    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == ["low-0", "low-1", "low-2"]
    assert len(world.bound("g")) == 3


def test_nobody_is_evicted_when_it_would_not_help():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_pod("big", priority=500, node="n0"), *[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])

    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == []
    assert world.bound("g") == {}
    assert world.condition("PodGroup", "g").reason == "Unschedulable"


def test_equal_priority_is_safe():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"peer-{i}", priority=HIGH, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == []


def test_never_means_never():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH, policy="Never"), *pods(2, "g", priority=HIGH, policy="Never")).run()
    assert world.evicted() == []


def test_the_lowest_priority_goes_first():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_pod("mid", priority=50, node="n0"), *[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["low-0", "low-1"]


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


def test_a_unit_of_mode_all_leaves_as_a_whole_and_is_told():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("victim", 2, mode="all", priority=LOW), *pods(2, "victim", priority=LOW)).run()

    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()

    assert world.evicted() == ["victim-0", "victim-1"]
    condition = world.condition("PodGroup", "victim", api.DISRUPTION_TARGET)
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")


def test_a_unit_of_mode_single_loses_only_what_is_needed():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("victim", 2, mode="single", priority=LOW), *pods(2, "victim", priority=LOW)).run()
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()
    assert len(world.evicted()) == 1


def test_a_single_pod_is_preferred_to_breaking_a_gang():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1)])
    world.add(a_gang("victim", 2, priority=LOW), *pods(2, "victim", priority=LOW)).run()
    world.add(a_pod("alone", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["alone"]


def test_the_highest_ancestor_of_mode_all_is_the_unit():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 2, mode="all", priority=LOW))
    world.add(
        a_gang("a", 1, parent="top", mode="all", priority=LOW), a_gang("b", 2, parent="top", mode="all", priority=LOW)
    )
    world.add(*pods(1, "a", priority=LOW), *pods(2, "b", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["a-0", "b-0", "b-1"]


def test_budgets_are_respected_where_another_choice_exists():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_pod("safe", priority=LOW, node="n0", labels={"app": "db"}), a_pod("free", priority=LOW, node="n1"))
    world.add(a_budget("db", 0, app="db"))
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["free"]


def test_a_budget_outweighs_priority():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_pod("safe", priority=1, node="n0", labels={"app": "db"}), a_pod("free", priority=50, node="n1"))
    world.add(a_budget("db", 0, app="db"))
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["free"]


def test_the_cheapest_rack_wins():
    world = a_world([a_node(f"n{i}", cpu=1, rack=f"r{i // 2}") for i in range(4)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node=f"n{i}") for i in range(3)])

    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH)).run()

    assert world.evicted() == ["low-2"]
    assert {world.domain(name) for name in world.bound("g")} == {"r1"}


def test_marks_and_nominations_come_before_deletes_and_binds_in_another_turn():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()

    kinds = [type(x).__name__ + (f":{x.type}" if isinstance(x, d.SetCondition) else "") for x in world.log]
    first_evict = kinds.index("Evict")
    assert kinds.index("SetCondition:DisruptionTarget") < kinds.index("Nominate") < first_evict < kinds.index("Bind")


def test_seats_are_held_against_others_while_victims_leave():
    world = a_world([a_node("n0", cpu=2)])
    world.slow_victims = True
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.condition("PodGroup", "g").reason == "WaitingForVictims"
    assert world.pod("g-0").status.nominated_node_name == "n0"
    world.add(a_pod("thief", priority=LOW), a_pod("peer", priority=HIGH, created=5)).run()

    world.reap()
    world.run()

    assert set(world.bound()) == {"g-0", "g-1"}


def test_no_second_round_of_evictions_while_the_first_is_under_way():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.slow_victims = True
    world.add(*[a_pod(f"low-{i}", priority=LOW, node=f"n{i % 2}") for i in range(4)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    first = world.evicted()

    world.wait(120)

    assert world.evicted() == first
    assert len(first) == 2


def test_a_better_place_without_eviction_is_taken_and_marks_are_given_back():
    world = a_world([a_node("n0", cpu=2)])
    world.slow_victims = True
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()

    world.add(a_node("n1", cpu=2)).run()

    assert set(world.bound("g").values()) == {"n1"}


def test_a_late_member_may_evict():
    world = a_world([a_node("n0", cpu=6)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(3)])
    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == []

    world.add(a_pod("late", "g", priority=HIGH)).run()

    assert len(world.evicted()) == 1
    assert "late" in world.bound()


def test_a_cycle_that_can_bind_binds_and_the_next_one_preempts():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    world.add(a_pod("low", priority=LOW, node="n0"))

    world.add(a_pod("x", "g", priority=HIGH), a_pod("y", "g", priority=HIGH)).run()

    assert {"x", "y"} <= set(world.bound())
    assert world.evicted() == ["low"]


def test_as_many_members_as_possible_are_seated():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    for i, priority in enumerate((LOW, LOW, 200, 200)):
        world.add(a_pod(f"old-{i}", priority=priority, node=f"n{i}"))
    world.add(a_gang("g", 1, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["old-0", "old-1"]
    assert len(world.bound("g")) == 2


def test_a_failed_attempt_clears_every_nomination():
    world = a_world([a_node("n0", cpu=1)])
    stale = a_pod("g-0", "g", cpu=5)
    stale = msgspec.structs.replace(stale, status=msgspec.structs.replace(stale.status, nominated_node_name="n0"))
    world.add(a_gang("g", 1), stale).run()
    assert world.pod("g-0").status.nominated_node_name == ""


def test_the_plan_is_called_off_when_it_becomes_impossible_before_the_deletes():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    while not any(isinstance(x, d.Nominate) for x in world.log):
        assert world.step()

    world.remove("Node", "n0")
    world.run()

    assert world.evicted() == []
    assert world.pod("g-0").status.nominated_node_name == ""


def test_a_composite_preempts_at_its_root():
    world = a_world([a_node("n0", cpu=3)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(3)])
    world.add(a_composite("root", 2, priority=HIGH))
    world.add(a_gang("a", 1, parent="root", priority=HIGH), a_gang("b", 2, parent="root", priority=HIGH))
    world.add(*pods(1, "a", priority=HIGH), *pods(2, "b", priority=HIGH)).run()
    assert len(world.bound("a")) + len(world.bound("b")) == 3


@pytest.mark.parametrize("grace", [False, True])
def test_a_group_bound_again_is_no_disruption_target_any_more(grace: bool):
    world = a_world([a_node("n0", cpu=1)])
    world.slow_victims = grace
    world.add(a_gang("victim", 1, mode="all", priority=LOW), *pods(1, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    world.reap()
    world.run()
    assert world.condition("PodGroup", "victim", api.QUORUM_MET).reason == "Preempted"

    world.add(a_node("n1", cpu=1), a_pod("again", "victim", priority=LOW)).run()

    assert world.condition("PodGroup", "victim", api.DISRUPTION_TARGET).status == "False"
