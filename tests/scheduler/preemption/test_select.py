"""`select_victims`: only where it helps, as many pods placed as possible, the cheapest victims."""

from __future__ import annotations

from typing import Any

from bench.preemption_rule import tally

from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.placement.budget import Budget
from muster.scheduler.preemption.result import NoCandidates, PreemptionPlan
from muster.scheduler.preemption.select import NO_VICTIMS, select_victims
from tests.build.objects import HOSTNAME, RACK, a_budget, a_composite, a_gang, a_node, a_pod, apart, near, pods
from tests.build.preemption import HIGH, LOW, Evictions, a_tree, with_lows
from tests.build.scheduler import TestWorld, a_world


def racks(count: int, size: int = 2) -> list[Any]:
    return [a_node(f"n{i}", cpu=1, rack=f"r{i // size}") for i in range(count * size)]


def test_nobody_is_evicted_when_it_would_not_help():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_pod("big", priority=500, node="n0"), *[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])

    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()

    assert world.evicted() == []
    assert world.bound("g") == {}
    assert world.condition("PodGroup", "g").reason == "Unschedulable"


def test_as_many_members_as_possible_are_seated():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    for i, priority in enumerate((LOW, LOW, 200, 200)):
        world.add(a_pod(f"old-{i}", priority=priority, node=f"n{i}"))
    world.add(a_gang("g", 1, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["old-0", "old-1"]
    assert len(world.bound("g")) == 2


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


def test_nobody_leaves_for_a_pod_that_no_node_can_ever_take():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 2))
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"disk": "ssd"})).run()
    assert world.evicted() == []


def test_the_company_that_the_preemptor_needs_is_spared():
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    with_lows(world, ("cache", "n0", 1), labels={"app": "cache"})
    with_lows(world, ("low", "n0", 1), ("far", "n1", 2))
    world.add(a_pod("vip", priority=HIGH, affinity=near)).run()
    assert world.evicted() == ["low"]
    assert world.bound("vip") == {"vip": "n0"}


def test_a_pod_leaves_whose_own_anti_affinity_keeps_the_preemptor_away():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 1), affinity=apart(HOSTNAME, app="new"))
    world.add(a_pod("new", priority=HIGH, labels={"app": "new"})).run()
    assert (world.evicted(), world.bound()) == (["low"], {"new": "n0"})


def test_company_that_is_leaving_anyway_is_none():
    world = with_lows(a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)]), ("a", "n0", 1), ("b", "n1", 1))
    world.slow_victims = True
    world.add(*[a_pod(f"x-{node}", node=node, priority=HIGH, labels={"app": "x"}) for node in ("n0", "n1")])
    world.terminate("x-n0")
    world.terminate("a")
    world.add(a_pod("new", priority=HIGH, affinity=near(HOSTNAME, app="x"))).run()
    assert world.evicted() == ["b"]
    assert world.pod("new").status.nominated_node_name == "n1"


def test_nobody_leaves_when_no_rack_can_hold_the_gang():
    world = a_world(racks(2))
    with_lows(world, *[(f"low-{i}", f"n{i}", 1) for i in range(4)])
    world.add(a_gang("g", 3, topology=RACK, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == []


def test_nobody_leaves_for_a_tree_that_would_not_fit_even_then():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    a_tree(world, "all", "all")
    world.add(a_composite("big", 2, priority=HIGH))
    for name in ("x", "y"):
        world.add(a_gang(name, 2, parent="big", priority=HIGH), *pods(2, name, priority=HIGH))
    world.run()
    assert world.evicted() == []


def test_no_choice_is_dearer_than_that_of_removing_all_and_putting_back():
    found = tally(40, first_seed=5000)
    assert found.dearer == 0
    assert found.pods[0] < found.pods[1]
    assert found.gangs[0] < found.gangs[1]


def selected(world: TestWorld, name: str, **more: Any) -> PreemptionPlan | NoCandidates:
    found = Evictions(world, marked=more.pop("marked", ()))
    state = found.state
    entity = next(entity for entity in state.queue.entities.values() if entity.key.name == name)
    request = request_of(entity, state.shape_of, state.domain_of)
    more.setdefault("victims", found.victims)
    return select_victims(
        request, state.evaluator, quorums=found.quorums, budgets=found.budgets, budget=Budget(2500), **more
    )


def names(answer: PreemptionPlan | NoCandidates) -> list[str]:
    assert isinstance(answer, PreemptionPlan), answer
    return [victim.key.name for victim in answer.victims]


def test_without_victims_there_is_nothing_to_select():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("new", cpu=2, priority=HIGH))

    assert selected(world, "new") == NoCandidates(True, NO_VICTIMS)


def test_a_plan_names_the_victims_and_where_the_pods_are_placed_without_them():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("b", "n0", 1), ("a", "n0", 1), labels={"app": "db"})
    world.add(a_budget("db", 1, app="db"), a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))

    answer = selected(world, "g")

    assert names(answer) == ["a", "b"]
    assert isinstance(answer, PreemptionPlan)
    assert answer.budget_violations == 1
    assert sorted((one.uid, one.node) for one in answer.placed.assignments) == [("pod-g-0", "n0"), ("pod-g-1", "n0")]


def test_nominated_seats_and_pods_that_leave_anyway_count():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("a", "n0", 1), ("b", "n0", 1))
    world.add(a_pod("new", priority=HIGH))
    shape = Evictions(world).shape(a_pod("other"))

    assert len(names(selected(world, "new"))) == 1
    assert names(selected(world, "new", nominated=[(shape, 0)])) == ["a", "b"]
    assert names(selected(world, "new", leaving=["pod-a"], victims=Evictions(world, excluded={"pod-a"}).victims)) == []


def test_where_not_even_all_victims_suffice_it_is_hopeless():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("a", "n0", 1))
    with_lows(world, ("safe", "n0", 1), priority=500)
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH))
    mixed = with_lows(a_world([a_node("n0", cpu=2)]), ("a", "n0", 1))
    mixed.add(a_gang("m", 2, priority=HIGH), a_pod("m-0", "m", priority=HIGH), a_pod("m-1", "m", cpu=2, priority=HIGH))

    for answer in (selected(world, "g"), selected(mixed, "m")):
        assert isinstance(answer, NoCandidates)
        assert answer.hopeless


def test_mixed_pods_are_planned_for_with_the_cheapest_victims():
    world = a_world([a_node("n0", cpu=3), a_node("n1", cpu=3)])
    with_lows(world, ("a", "n0", 3), priority=5)
    with_lows(world, ("b", "n1", 3), priority=50)
    world.add(a_gang("m", 2, priority=HIGH), a_pod("m-0", "m", priority=HIGH), a_pod("m-1", "m", cpu=2, priority=HIGH))

    assert names(selected(world, "m")) == ["a"]


def test_pods_that_the_required_affinity_selects_are_kept_if_possible():
    world = with_lows(
        a_world([a_node("n0", cpu=2, rack="r0")]), ("cache", "n0", 1), labels={"app": "cache"}, priority=1
    )
    with_lows(world, ("other", "n0", 1), priority=50)
    world.add(a_pod("new", priority=HIGH, affinity=near(RACK, app="cache")))

    assert names(selected(world, "new")) == ["other"]


def test_more_than_the_minimum_is_placed_where_evictions_allow_it():
    world = a_world([a_node(f"n{i}", cpu=1, rack=f"r{i // 2}") for i in range(4)])
    with_lows(world, *((f"v{i}", f"n{i}", 1) for i in range(3)))
    world.add(a_gang("g", 1, topology=RACK, priority=HIGH), *pods(3, "g", cpu=1, priority=HIGH))

    answer = selected(world, "g")

    assert isinstance(answer, PreemptionPlan)
    assert len(answer.placed.assignments) == 2
    assert names(answer) == ["v2"]


def test_marked_victims_are_taken_before_others():
    world = with_lows(a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)]), ("low", "n0", 1), priority=1)
    with_lows(world, ("marked", "n1", 1), priority=50)
    world.add(a_pod("new", priority=HIGH))

    assert names(selected(world, "new")) == ["low"]
    assert names(selected(world, "new", marked={"pod-marked"})) == ["marked"]
