"""Who leaves, for whom: the decisive cases of units, priorities, budgets, rules between pods, and topology."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api import groups as api
from muster.scheduler.interface import decisions as d
from tests.build.objects import BLOCK, RACK, a_basic, a_budget, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10


def with_lows(world: TestWorld, *where: tuple[str, str, int | str], **fields: Any) -> TestWorld:
    """Low priority pods: name, node, cpu."""
    return world.add(*[a_pod(name, cpu=cpu, node=node, **({"priority": LOW} | fields)) for name, node, cpu in where])


# --- flat preemptors -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: a_gang("g", 3, priority=HIGH), lambda: a_basic("g", priority=HIGH)])
def test_every_member_is_nominated_while_its_room_is_made(make: Any):
    world = with_lows(a_world([a_node("n0", cpu=3)]), *[(f"low-{i}", "n0", 1) for i in range(3)])
    world.slow_victims = True

    world.add(make(), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == ["low-0", "low-1", "low-2"]
    assert [world.pod(f"g-{i}").status.nominated_node_name for i in range(3)] == ["n0"] * 3


def test_one_large_pod_leaves_rather_than_one_on_each_node():
    world = a_world([a_node("n1", cpu=2), a_node("n2", cpu=2)])
    with_lows(world, ("large", "n1", 2), ("small", "n2", 1))
    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["large"]


def test_the_unprotected_pod_leaves():
    world = a_world([a_node("n0", cpu=3)])
    with_lows(world, ("a", "n0", 1), ("b", "n0", 1), labels={"app": "db"})
    with_lows(world, ("c", "n0", 1))
    world.add(a_budget("db", 0, app="db"))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", cpu="500m", priority=HIGH)).run()
    assert world.evicted() == ["c"]


def test_a_budget_is_violated_only_when_there_is_no_other_way():
    world = a_world([a_node("n0", cpu=2)])
    with_lows(world, ("a", "n0", 1), ("b", "n0", 1), labels={"app": "db"})
    world.add(a_budget("db", 1, app="db"))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["a", "b"]
    assert world.brain.take_preemptions()[-1].budget_violations == 1


def test_a_budget_is_drawn_on_only_as_far_as_it_allows():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    with_lows(world, ("a", "n0", 1), ("b", "n1", 1), labels={"app": "db"})
    with_lows(world, ("c", "n2", 1), ("d", "n3", 1), priority=50)
    world.add(a_budget("db", 1, app="db"))
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert len(set(world.evicted()) & {"a", "b"}) == 1


def test_pods_that_a_budget_counts_as_disrupted_already_are_free():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    with_lows(world, ("counted", "n0", 1), ("whole", "n1", 1), labels={"app": "db"})
    budget = a_budget("db", 0, app="db")
    status = msgspec.structs.replace(budget.status, disrupted_pods={"counted": "2026-01-01T00:00:00Z"})
    world.add(msgspec.structs.replace(budget, status=status))
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["counted"]


def test_a_budget_of_another_namespace_protects_nobody_here():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    with_lows(world, ("young", "n0", 1), labels={"app": "db"}, created=100)
    with_lows(world, ("old", "n1", 1))
    foreign = a_budget("db", 0, app="db")
    world.add(msgspec.structs.replace(foreign, metadata=msgspec.structs.replace(foreign.metadata, namespace="other")))
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["young"]


def test_the_lower_of_two_on_one_node_leaves_when_one_suffices():
    world = a_world([a_node("n0", cpu=2)])
    with_lows(world, ("five", "n0", 1), priority=5)
    with_lows(world, ("ten", "n0", 1), priority=10)
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()
    assert world.evicted() == ["five"]


def test_the_latest_start_leaves_among_equals():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    with_lows(world, ("old", "n0", 1), created=10)
    with_lows(world, ("young", "n1", 1), created=500)
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["young"]


def test_a_larger_need_takes_the_whole_group_and_the_pod_too():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1)])
    world.add(a_gang("victim", 2, mode="all", priority=50), *pods(2, "victim", priority=50)).run()
    world.add(a_pod("alone", priority=LOW)).run()
    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["alone", "victim-0", "victim-1"]


def test_room_that_an_eviction_frees_beyond_need_is_used_without_another():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=2)])
    world.add(a_gang("low", 2, mode="all", priority=50), *pods(2, "low", priority=50)).run()
    world.add(a_gang("safe", 1, mode="all", priority=200), *pods(1, "safe", priority=200, cpu=2)).run()
    world.add(a_gang("g", 1, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["low-0", "low-1"]
    assert len(world.bound("g")) == 2


def test_a_basic_group_of_mode_all_leaves_as_a_whole_too():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_basic("victim", mode="all", priority=LOW), *pods(3, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["victim-0", "victim-1", "victim-2"]


def test_a_pod_that_says_never_does_not_evict():
    world = with_lows(a_world([a_node("n0", cpu=1)]), ("low", "n0", 1))
    world.add(a_pod("vip", priority=HIGH, policy="Never")).run()
    assert world.evicted() == []


def test_members_that_say_never_bind_a_group_without_a_word_of_its_own():
    world = with_lows(a_world([a_node("n0", cpu=1)]), ("low", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, policy="Never")).run()
    assert world.evicted() == []


def test_nobody_leaves_for_a_pod_that_no_node_can_ever_take():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 2))
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"disk": "ssd"})).run()
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
    world.brain.state.signals.nodes.clear()
    world.reap()

    world.add(a_node("n1", cpu=64))
    world.brain.state.signals.nodes.clear()
    world.run()

    assert world.bound("vip") == {"vip": "n0"}


# --- resources and rules between pods --------------------------------------------------------------


def test_pod_level_resources_count():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 1))
    world.add(a_pod("vip", cpu=0, priority=HIGH, resources={"requests": {"cpu": "2"}})).run()
    assert world.evicted() == ["low"]


def test_a_pod_that_repels_the_preemptor_leaves_although_there_is_room():
    term = {"labelSelector": {"matchLabels": {"app": "loud"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_world([a_node("n0", cpu=4)])
    with_lows(world, ("loud", "n0", 1), labels={"app": "loud"})
    with_lows(world, ("calm", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, affinity=apart)).run()
    assert world.evicted() == ["loud"]
    assert world.bound("g") == {"g-0": "n0"}


def test_the_holder_of_a_host_port_leaves_although_there_is_room():
    port = {"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    world = a_world([a_node("n0", cpu=4)])
    with_lows(world, ("holder", "n0", 1), containers=[port])
    with_lows(world, ("other", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, containers=[port])).run()
    assert world.evicted() == ["holder"]


def test_a_spread_pod_moves_a_victim_where_cpu_would_fit():
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=1)])
    world.add(a_pod("web-0", priority=HIGH, node="n0", labels={"app": "web"}))
    with_lows(world, ("low", "n1", 1))
    world.add(a_pod("web-1", priority=HIGH, labels={"app": "web"}, topologySpreadConstraints=spread)).run()
    assert world.evicted() == ["low"]
    assert world.bound("web-1") == {"web-1": "n1"}


def test_the_company_that_the_preemptor_needs_is_spared():
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    with_lows(world, ("cache", "n0", 1), labels={"app": "cache"})
    with_lows(world, ("low", "n0", 1), ("far", "n1", 2))
    world.add(a_pod("vip", priority=HIGH, affinity=near)).run()
    assert world.evicted() == ["low"]
    assert world.bound("vip") == {"vip": "n0"}


# --- topology --------------------------------------------------------------------------------------


def racks(count: int, size: int = 2) -> list[Any]:
    return [a_node(f"n{i}", cpu=1, rack=f"r{i // size}") for i in range(count * size)]


def test_a_rack_that_is_blocked_is_left_alone():
    world = a_world(racks(2))
    with_lows(world, ("vip-0", "n0", 1), priority=200)
    with_lows(world, ("low-1", "n1", 1), ("low-2", "n2", 1), ("low-3", "n3", 1))
    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["low-2", "low-3"]


def test_nobody_leaves_when_no_rack_can_hold_the_gang():
    world = a_world(racks(2))
    with_lows(world, *[(f"low-{i}", f"n{i}", 1) for i in range(4)])
    world.add(a_gang("g", 3, topology=RACK, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == []


def test_the_rack_whose_victims_have_lower_priority_wins():
    world = a_world(racks(2))
    with_lows(world, ("a", "n0", 1), ("b", "n1", 1), priority=50)
    with_lows(world, ("c", "n2", 1), ("d", "n3", 1), priority=5)
    world.add(a_gang("g", 2, topology=RACK, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["c", "d"]


def test_late_members_make_room_inside_their_domain_even_if_it_is_dearer():
    world = a_world(racks(2))
    world.add(a_gang("g", 1, topology=RACK, priority=HIGH), a_pod("g-0", "g", priority=HIGH, node="n0"))
    with_lows(world, ("dear", "n1", 1), priority=90)
    with_lows(world, ("cheap", "n2", 1), ("other", "n3", 1), priority=1)
    world.add(a_pod("late", "g", priority=HIGH)).run()
    assert world.evicted() == ["dear"]


def test_a_tree_takes_the_cheapest_block_and_in_it_one_rack_for_each_child():
    nodes = [a_node(f"n{i}", cpu=1, rack=f"r{i // 2}", block=f"b{i // 4}") for i in range(8)]
    world = a_world(nodes)
    with_lows(world, *[(f"low-{i}", f"n{i}", 1) for i in range(8)])
    world.add(*[a_pod(f"mid-{i}", cpu=0, priority=50, node=f"n{i}") for i in range(4)])
    world.add(a_node("n7", cpu=2, rack="r3", block="b1"))
    world.add(a_composite("tree", 2, priority=HIGH, topology=BLOCK))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="tree", topology=RACK, priority=HIGH), *pods(2, name, priority=HIGH))
    world.run()
    assert world.evicted() == ["low-4", "low-5", "low-6"]
    assert {world.domain("x-0"), world.domain("x-1")} != {world.domain("y-0"), world.domain("y-1")}


# --- composite victims -----------------------------------------------------------------------------


def a_tree(
    world: TestWorld, top: str, leaf: str = "single", name: str = "t", priority: int = LOW, **labels: Any
) -> None:
    """A running tree of two gangs: one pod on n0, two on n1."""
    world.add(a_composite(name, 2, mode=top, priority=priority))
    for child in ("a", "b"):
        world.add(a_gang(f"{name}-{child}", 1, parent=name, mode=leaf, priority=priority))
    world.add(a_pod(f"{name}-a-0", f"{name}-a", priority=priority, node="n0", **labels))
    world.add(*[a_pod(f"{name}-b-{i}", f"{name}-b", priority=priority, node="n1", **labels) for i in range(2)])
    world.run()


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


def test_nobody_leaves_for_a_tree_that_would_not_fit_even_then():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    a_tree(world, "all", "all")
    world.add(a_composite("big", 2, priority=HIGH))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="big", priority=HIGH), *pods(2, name, priority=HIGH))
    world.run()
    assert world.evicted() == []


def test_a_group_leaves_rather_than_a_tree():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2), a_node("n2", cpu=3)])
    a_tree(world, "all", "all")
    world.add(a_gang("flat", 3, mode="all", priority=LOW))
    world.add(*[a_pod(f"flat-{i}", "flat", priority=LOW, node="n2") for i in range(3)])
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["flat-0", "flat-1", "flat-2"]


def test_the_tree_of_lower_priority_leaves():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=4)])
    a_tree(world, "all", "all", name="dear", priority=50)
    a_tree(world, "all", "all", name="cheap", priority=5)
    world.add(a_pod("vip", priority=HIGH)).run()
    assert {name.split("-")[0] for name in world.evicted()} == {"cheap"}


def test_a_budget_protects_a_whole_tree_through_one_of_its_pods():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=4)])
    a_tree(world, "all", "all", name="safe", priority=5, labels={"app": "db"})
    a_tree(world, "all", "all", name="free", priority=50)
    world.add(a_budget("db", 2, app="db"))
    world.add(a_pod("vip", priority=HIGH)).run()
    assert {name.split("-")[0] for name in world.evicted()} == {"free"}


def test_a_gang_with_members_to_spare_loses_one_rather_than_another_breaks():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(5)])
    world.add(a_gang("tight", 2, priority=LOW), *pods(2, "tight", priority=LOW)).run()
    world.add(a_gang("loose", 2, priority=LOW, created=5), *pods(3, "loose", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert [name[:5] for name in world.evicted()] == ["loose"]


def test_one_gang_is_taken_apart_rather_than_two_are_broken():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    world.add(a_gang("one", 2, priority=LOW), *[a_pod(f"one-{i}", "one", priority=LOW, node=f"n{i}") for i in (0, 2)])
    world.add(a_gang("two", 2, priority=LOW), *[a_pod(f"two-{i}", "two", priority=LOW, node=f"n{i}") for i in (1, 3)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert len({name[:3] for name in world.evicted()}) == 1


# --- what is said ----------------------------------------------------------------------------------


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
