"""What is free, and what more would cost, once some victims are chosen."""

from __future__ import annotations

from muster.scheduler.preemption.victim_selection import VictimSelection
from tests.build.objects import a_gang, a_node, a_pod
from tests.build.preemption import LOW, Evictions
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
