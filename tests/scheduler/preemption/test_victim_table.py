"""Victims as columns: the same victims, numbers and costs as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from muster.scheduler.preemption.victim_table import VictimTable
from tests.build.examples import examples
from tests.build.objects import a_gang, a_node, pods
from tests.build.preemption import HIGH, LOW, Evictions, a_tree, with_lows
from tests.build.preemption_cases import Case, cases
from tests.build.scheduler import a_world


def table() -> VictimTable:
    """A subtree of three pods on two nodes, and two single pods, one of them in a gang."""
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "all", "all")
    world.add(a_gang("g", 1, priority=LOW), *pods(1, "g", priority=LOW, node="n1"))
    with_lows(world, ("alone", "n0", 1))
    return Evictions(world).victims


def test_a_single_pod_is_described_by_the_columns():
    victims = table()
    (number,) = (at for at, victim in enumerate(victims) if victim.key.name == "g-0")

    assert victims[number].uids == ("pod-g-0",)
    assert victims[number].losses == ((victims.groups[victims.group_of[number]].key, 1),)
    assert victims[number] is victims[number]


def test_every_pod_on_a_node_has_a_row_of_its_victim():
    victims = table()
    rows = sorted(zip(victims.pods.victim.tolist(), victims.pods.slot.tolist(), strict=True))
    by_name = {victim.key.name: at for at, victim in enumerate(victims)}
    expected = [("t", 0), ("t", 1), ("t", 1), ("g-0", 1), ("alone", 0)]
    assert rows == sorted((by_name[name], slot) for name, slot in expected)


def test_other_numbers_leave_the_victims_as_they_are():
    victims = table()
    order = np.array([2, 0, 1])

    moved = victims.reordered(order)

    assert list(moved) == [victims[at] for at in order.tolist()]
    assert moved.pods.victim.tolist() == sorted(moved.pods.victim.tolist())
    slots = {at: sorted(victims.pods.slot[victims.pods.victim == at].tolist()) for at in range(3)}
    for number, before in enumerate(order.tolist()):
        assert sorted(moved.pods.slot[moved.pods.victim == number].tolist()) == slots[before]


@settings(max_examples=examples(100), deadline=None)
@given(cases())
def test_cheapest_first_is_the_order_of_single_costs_and_keys(case: Case):
    found = Evictions(case.world(), below=HIGH)
    costs = [found.cost.single(victim) for victim in found.victims]
    assert [found.costs[number] for number in range(len(costs))] == costs
    order = [(cost, victim.key) for cost, victim in zip(costs, found.victims, strict=True)]
    assert order == sorted(order)
