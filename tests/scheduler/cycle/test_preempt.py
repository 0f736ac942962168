"""A preemption from the marks to the binds: what is marked, nominated, deleted, cancelled and reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api import groups as api
from muster.api import kueue
from muster.scheduler.interface import decisions as d
from tests.build.objects import HOSTNAME, a_basic, a_composite, a_gang, a_node, a_pod, apart, near, pods
from tests.build.preemption import HIGH, LOW, a_tree, with_lows
from tests.build.scheduler import a_world


def test_a_gang_evicts_lower_priority_pods_and_then_runs():
    world = a_world([a_node("n0", cpu=3)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(3)])

    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == ["low-0", "low-1", "low-2"]
    assert len(world.bound("g")) == 3


def test_never_means_never():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH, policy="Never"), *pods(2, "g", priority=HIGH, policy="Never")).run()
    assert world.evicted() == []


def switching_off(*points: str) -> dict[str, Any]:
    """A configuration that disables preemption at these extension points."""
    disabled = {point: {"disabled": [{"name": "DefaultPreemption"}]} for point in points}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return head | {"profiles": [{"plugins": disabled}]}


@pytest.mark.parametrize(
    ("off", "group_evicts", "pod_evicts"),
    [
        ({"features": "WorkloadAwarePreemption=false"}, False, True),
        ({"config": switching_off("podGroupPostFilter")}, False, True),
        ({"config": switching_off("postFilter")}, True, False),
        ({"config": switching_off("multiPoint")}, False, False),
    ],
)
def test_preemption_is_switched_off_for_groups_for_pods_or_for_both(
    off: dict[str, Any], group_evicts: bool, pod_evicts: bool
):
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=1)], **off)
    world.add(*[a_pod(f"low-{i}", priority=LOW, node=f"n{i // 2}") for i in range(3)])

    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert len(world.evicted()) == (2 if group_evicts else 0)

    before = len(world.evicted())
    world.add(a_pod("single", priority=HIGH)).run()
    assert len(world.evicted()) - before == (1 if pod_evicts else 0)


def test_a_unit_of_mode_all_leaves_as_a_whole_and_is_told():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("victim", 2, mode="all", priority=LOW), *pods(2, "victim", priority=LOW)).run()

    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()

    assert world.evicted() == ["victim-0", "victim-1"]
    condition = world.condition("PodGroup", "victim", api.DISRUPTION_TARGET)
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")


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


def test_a_rule_that_is_met_for_the_first_time_counts_the_pods_that_wait_for_victims():
    world = a_world([a_node("n0", cpu=4)])
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    world.add(a_pod("leaving", node="n0", container=port))
    world.terminate("leaving")
    world.add(a_pod("web", labels={"app": "web"}, priority=HIGH, container=port)).run()
    assert world.pod("web").status.nominated_node_name == "n0"

    world.add(a_pod("p", affinity=apart(HOSTNAME, app="web"))).run()

    assert world.bound("p") == {}
    assert world.evicted() == [], "p is not bound beside the seat of web, only to be evicted for it"


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


def test_a_gang_whose_member_goes_while_it_waits_for_victims_plans_again_with_the_others():
    world = a_world([a_node("n0", cpu=3), a_node("n1", cpu=3)])
    world.slow_victims = True
    with_lows(world, ("low", "n1", 1))
    world.add(a_gang("g", 2, priority=HIGH), *pods(3, "g", priority=HIGH, cpu=3)).run()
    first = {name for name in ("g-0", "g-1", "g-2") if world.pod(name).status.nominated_node_name}
    assert len(first) == 2

    world.terminate(min(first))
    world.run()

    seats = {name: world.pod(name).status.nominated_node_name for name in world.pending("g") if name != min(first)}
    assert sorted(seats.values()) == ["n0", "n1"]


def test_a_gang_that_gets_a_smaller_member_while_it_waits_for_victims_runs_at_once_if_it_fits_now():
    world = a_world([a_node("n0", cpu=3), a_node("n1", cpu=3)])
    world.slow_victims = True
    with_lows(world, ("low", "n1", 1))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH, cpu=3)).run()
    assert world.condition("PodGroup", "g").reason == "WaitingForVictims"

    world.add(a_pod("g-2", "g", priority=HIGH, cpu=1)).run()

    assert len(world.bound("g")) == 2


def test_a_plan_that_needs_a_pod_which_begins_to_leave_is_made_anew():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.slow_victims = True
    with_lows(world, ("low-n0", "n0", 1), ("low-n1", "n1", 1))
    world.add(*[a_pod(f"x-{node}", node=node, priority=HIGH, labels={"app": "x"}) for node in ("n0", "n1")])
    world.add(a_pod("p", priority=HIGH, affinity=near(HOSTNAME, app="x"))).run()
    first = world.pod("p").status.nominated_node_name
    assert world.evicted() == [f"low-{first}"]

    world.terminate(f"x-{first}")
    world.run()

    assert world.pod("p").status.nominated_node_name == {"n0": "n1", "n1": "n0"}[first]


def test_pods_that_left_the_tree_while_it_waited_for_victims_keep_no_nomination():
    world = a_world([a_node("n0", cpu=1)])
    world.slow_victims = True
    with_lows(world, ("low", "n0", 1))
    world.add(a_composite("c", 1, priority=HIGH), a_gang("a", 1, parent="c", priority=HIGH))
    world.add(a_gang("b", 1, parent="c", priority=HIGH, created=5))
    world.add(a_pod("a-0", "a", priority=HIGH), a_pod("b-0", "b", priority=HIGH, cpu=2)).run()
    assert world.pod("a-0").status.nominated_node_name == "n0"

    world.remove("PodGroup", "a")
    world.run()

    assert not world.pod("a-0").status.nominated_node_name


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


@pytest.mark.parametrize("make", [lambda: a_gang("g", 3, priority=HIGH), lambda: a_basic("g", priority=HIGH)])
def test_every_member_is_nominated_while_its_room_is_made(make: Any):
    world = with_lows(a_world([a_node("n0", cpu=3)]), *[(f"low-{i}", "n0", 1) for i in range(3)])
    world.slow_victims = True

    world.add(make(), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == ["low-0", "low-1", "low-2"]
    assert [world.pod(f"g-{i}").status.nominated_node_name for i in range(3)] == ["n0"] * 3


def test_a_pod_that_says_never_does_not_evict():
    world = with_lows(a_world([a_node("n0", cpu=1)]), ("low", "n0", 1))
    world.add(a_pod("vip", priority=HIGH, policy="Never")).run()
    assert world.evicted() == []


def test_members_that_say_never_bind_a_group_without_a_word_of_its_own():
    world = with_lows(a_world([a_node("n0", cpu=1)]), ("low", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, policy="Never")).run()
    assert world.evicted() == []


@pytest.mark.parametrize("make", [lambda: a_gang("g", 2, priority=HIGH), lambda: a_basic("g", priority=HIGH)])
def test_new_members_that_fit_are_bound_before_anyone_is_marked(make: Any):
    world = a_world([a_node("n0", cpu=4)])
    world.add(make(), *pods(2, "g", priority=HIGH)).run()
    with_lows(world, ("low", "n0", 1))

    world.add(a_pod("x", "g", priority=HIGH), a_pod("y", "g", priority=HIGH)).run()

    binds = [i for i, x in enumerate(world.log) if isinstance(x, d.Bind) and x.pod.name in "xy"]
    marks = [i for i, x in enumerate(world.log) if isinstance(x, d.SetCondition) and x.type == api.DISRUPTION_TARGET]
    assert binds[0] < marks[0] < binds[1]
    assert world.evicted() == ["low"]


def test_the_nominated_seat_is_taken_even_if_another_would_score_better():
    world = a_world([a_node("n0", cpu=2)])
    world.slow_victims = True
    with_lows(world, ("low", "n0", 2))
    world.add(a_pod("vip", priority=HIGH, cpu=2)).run()
    world.scheduler.state.signals.clear()
    world.reap()

    world.add(a_node("n1", cpu=64))
    world.scheduler.state.signals.clear()
    world.run()

    assert world.bound("vip") == {"vip": "n0"}


def test_victims_and_whole_groups_are_told_by_whom_and_why():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    world.slow_victims = True
    a_tree(world, "all", "all")
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()

    for kind, name in [("CompositePodGroup", "t"), ("PodGroup", "t-a"), ("PodGroup", "t-b"), ("Pod", "t-b-1")]:
        target = world.condition(kind, name, api.DISRUPTION_TARGET)
        assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
        assert "podgroup" in target.message
    told = {event.about.name for event in world.events if event.reason == "Preempted" and event.related.name == "g"}
    assert told == {"t", "t-a", "t-b", "t-a-0", "t-b-0", "t-b-1"}


def test_a_group_that_loses_a_part_is_no_target_itself():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("victim", 1, priority=LOW), *pods(2, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.condition("PodGroup", "victim", api.DISRUPTION_TARGET) is None


def test_a_group_on_its_way_out_stays_a_target_until_it_is_bound_again():
    world = a_world([a_node("n0", cpu=3)])
    world.slow_victims = True
    world.add(a_gang("victim", 1, mode="all", priority=LOW), *pods(3, "victim", priority=LOW)).run()
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()
    world.remove("Pod", "victim-0")
    world.run()
    assert world.condition("PodGroup", "victim", api.DISRUPTION_TARGET).status == "True"


# --- Kueue -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["kueue.x-k8s.io/podset", "kueue.x-k8s.io/queue-name"])
def test_nobody_is_evicted_for_what_kueue_admitted_unless_the_group_says_so(label: str):
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH, labels={label: "main"})).run()
    assert world.evicted() == []
    assert world.bound("g") == {}
    told = a_gang("g", 2, priority=HIGH)
    told = msgspec.structs.replace(
        told, metadata=msgspec.structs.replace(told.metadata, annotations={kueue.PREEMPTION: kueue.ALLOWED})
    )
    world.add(told).run()
    assert world.evicted() == ["low-0", "low-1"]
    assert len(world.bound("g")) == 2


def test_nobody_is_evicted_for_a_single_pod_that_kueue_admitted():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("low", priority=LOW, node="n0"))
    world.add(a_pod("p", priority=HIGH, labels={"kueue.x-k8s.io/managed": "true"})).run()
    assert world.evicted() == []
