"""The cost of evictions: budgets, priority, gangs broken, victims, pods, work lost."""

from __future__ import annotations

import msgspec

from tests.build.objects import a_budget, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, a_tree, with_lows
from tests.build.scheduler import a_world


def test_the_lowest_priority_goes_first():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_pod("mid", priority=50, node="n0"), *[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == ["low-0", "low-1"]


def test_a_single_pod_is_preferred_to_breaking_a_gang():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1)])
    world.add(a_gang("victim", 2, priority=LOW), *pods(2, "victim", priority=LOW)).run()
    world.add(a_pod("alone", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["alone"]


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
