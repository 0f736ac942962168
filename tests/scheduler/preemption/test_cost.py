"""The cost of evictions: budgets, priority, gangs broken, victims, pods, work lost."""

from __future__ import annotations

import random

import msgspec
import pytest

from muster.scheduler.preemption.cost import NOTHING_EVICTED, seconds
from tests.build.objects import a_basic, a_budget, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, Evictions, a_mixed_world, a_tree, with_lows
from tests.build.scheduler import TestWorld, a_world


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
    assert world.scheduler.take_preemptions()[-1].budget_violations == 1


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


def crowded(**budgets: int) -> TestWorld:
    """Four pods with the label app=db on one node, and budgets that allow so many disruptions."""
    world = with_lows(a_world([a_node("n0", cpu=9)]), *((f"p{i}", "n0", 1) for i in range(4)), labels={"app": "db"})
    return world.add(*(a_budget(name, allowed, app="db") for name, allowed in budgets.items()))


def test_the_cost_of_a_set_is_compared_in_the_order_of_harm():
    world = with_lows(a_world([a_node("n0", cpu=9)]), ("low", "n0", 1), created=60)
    with_lows(world, ("mid", "n0", 1), priority=50)
    found = Evictions(world)
    low, mid = found.victim("low"), found.victim("mid")

    start = seconds("2026-01-01T00:00:00Z")
    assert found.cost.cost([low, mid]) == (0, 50, 0, 2, 2, -(2 * start + 60))
    assert found.cost.cost([]) == (0, NOTHING_EVICTED, 0, 0, 0, 0)
    assert found.cost.cost([]) < found.cost.cost([low]) < found.cost.cost([mid]) < found.cost.cost([low, mid])


def test_marked_victims_cost_nothing():
    found = Evictions(crowded(db=0), marked={"pod-p0"})
    marked, other = found.victim("p0"), found.victim("p1")

    assert found.cost.cost([marked]) == found.cost.cost([])
    assert found.cost.cost([marked, other]) == found.cost.cost([other])
    assert found.cost.single(marked) == (0, NOTHING_EVICTED, 0, 0, 0.0)
    assert found.cost.violations([marked]) == 0


def test_evictions_beyond_what_a_budget_allows_are_violations():
    found = Evictions(crowded(db=1, strict=0))
    three = [found.victim(f"p{i}") for i in range(3)]

    assert [found.cost.violations(three[:count]) for count in range(4)] == [0, 1, 1 + 2, 2 + 3]
    assert found.cost.single(three[0])[0] == 1  # of the strict one
    assert dict(found.cost.disruptions(three[0])) == {0: 1, 1: 1}
    assert Evictions(crowded()).cost.violations(three) == 0


def test_a_budget_that_is_overdrawn_already_allows_nothing_and_no_less():
    found = Evictions(crowded(db=-3))

    assert found.cost.violations([found.victim("p0")]) == 1


def test_a_gang_breaks_when_it_falls_below_its_minimum_and_its_parents_with_it():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "single", "single")  # both children are needed; b has a pod to spare
    found = Evictions(world)
    a, b0, b1 = (found.victim(name) for name in ("t-a-0", "t-b-0", "t-b-1"))

    assert found.cost.broken_gangs([b0]) == 0
    assert found.cost.broken_gangs([b0, b1]) == 2  # b, and the tree above it
    assert found.cost.broken_gangs([a, b0, b1]) == 3
    assert (found.cost.single(a)[2], found.cost.single(b0)[2]) == (1, 0)
    slack = {key.name: found.cost.slack(key) for key in found.quorums}
    assert slack == {"t-a": 0, "t-b": 1, "t": 0}


def test_a_basic_group_and_one_that_is_broken_already_have_nothing_to_lose():
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_basic("basic", priority=LOW), a_pod("b-0", "basic", priority=LOW, node="n0"))
    world.add(a_gang("broken", 3, priority=LOW), a_pod("g-0", "broken", priority=LOW, node="n0"))
    found = Evictions(world)

    assert found.cost.broken_gangs(found.victims) == 0
    assert {found.cost.slack(key) for key in found.quorums} == {-1}


def test_a_victim_of_many_pods_counts_with_its_latest_start():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    world.add(a_gang("g", 1, mode="all", priority=LOW))
    world.add(*(a_pod(f"g-{i}", "g", priority=LOW, node="n0", created=60 * i) for i in range(3)))
    found = Evictions(world)

    (whole,) = found.victims

    assert found.cost.single(whole) == (0, LOW, 1, 3, -seconds("2026-01-01T00:02:00Z"))


def test_a_pod_without_a_start_time_counts_as_old():
    assert seconds("") == 0.0
    assert seconds("1970-01-01T00:01:00Z") == 60.0


@pytest.mark.parametrize("seed", range(20))
def test_the_cost_by_number_is_that_of_the_victims(seed: int):
    rng = random.Random(seed)
    world = a_mixed_world(rng, budgets=seed % 2 == 0)
    found = Evictions(world, marked={uid for uid in world.scheduler.state.cluster.pods if rng.random() < 0.2})
    for _ in range(10):
        numbers = rng.sample(range(len(found.victims)), rng.randint(0, len(found.victims)))

        cost = found.cost.cost_of(found.victims, set(numbers))

        assert cost == found.cost.cost([found.victims[number] for number in sorted(numbers)])
