"""What is free, and what more would cost, once some victims are chosen."""

from __future__ import annotations

import random

import numpy as np
import pytest

from muster.scheduler.preemption.victim_selection import VictimSelection
from tests.build.objects import a_gang, a_node, a_pod
from tests.build.preemption import LOW, Evictions, a_mixed_world
from tests.build.scheduler import TestWorld, a_world


def a_selection(world: TestWorld) -> tuple[Evictions, VictimSelection]:
    """Nobody is chosen yet, for seats of one cpu."""
    found = Evictions(world)
    shape = found.countable(a_pod("new"))
    assert shape is not None
    return found, VictimSelection(found.supply(shape))


def test_what_a_victim_frees_is_taken_back_with_it():
    world = a_world([a_node("n0", cpu=3)])
    world.add(*(a_pod(f"p{cpu}", cpu=cpu, priority=LOW, node="n0") for cpu in (1, 2)))
    found, selection = a_selection(world)
    before = list(selection.free(0))
    variant = selection.copy()
    variant.evict(found.number("p2"))
    assert [victim.key.name for victim in variant.victims()] == ["p2"]
    assert variant.free(0)[0] == before[0] + 2000
    variant.reprieve(found.number("p2"))
    assert variant.free(0) == before == selection.free(0)
    assert not variant.chosen


def test_once_a_gang_is_broken_its_other_members_break_nothing_more():
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_gang("g", 2, priority=LOW), *(a_pod(f"g-{i}", "g", priority=LOW, node="n0") for i in range(5)))
    found, selection = a_selection(world)
    numbers = [found.number(f"g-{i}") for i in range(5)]

    seen = [(selection.evict(number), selection.cost(numbers[-1])[2]) for number in numbers[:-1]]
    assert seen == [(False, 0), (False, 0), (True, 1), (True, 0)], "whether the others cost something else, and what"


@pytest.mark.parametrize("seed", range(20))
def test_several_victims_are_chosen_as_if_one_by_one(seed: int):
    rng = random.Random(seed)
    found, all_at_once = a_selection(a_mixed_world(rng, budgets=seed % 2 == 0))
    numbers = sorted(rng.sample(range(len(found.victims)), rng.randint(0, len(found.victims))))
    one_by_one = all_at_once.copy()
    if seed % 3 == 0:
        one_by_one.slots = all_at_once.slots = [slot % 2 == 0 for slot in range(found.state.cluster.size)]

    all_at_once.evict_all(np.array(numbers, dtype=np.int64))
    for number in numbers:
        one_by_one.evict(number)

    assert all_at_once.chosen == one_by_one.chosen
    assert (all_at_once.all_free() == one_by_one.all_free()).all()
    assert (all_at_once.lost, all_at_once.disrupted) == (one_by_one.lost, one_by_one.disrupted)
