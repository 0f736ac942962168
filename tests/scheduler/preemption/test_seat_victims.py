"""Victims for seats of one shape, by counting."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from muster.scheduler.preemption import seat_victims
from muster.scheduler.preemption.seat_victims import SeatVictims, count
from muster.scheduler.preemption.supply import CountableShape
from muster.scheduler.preemption.victim_selection import VictimSelection
from tests.build.objects import a_basic, a_budget, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, Evictions, a_mixed_world, a_tree, with_lows
from tests.build.scheduler import TestWorld, a_world


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


def test_one_large_pod_leaves_rather_than_one_on_each_node():
    world = a_world([a_node("n1", cpu=2), a_node("n2", cpu=2)])
    with_lows(world, ("large", "n1", 2), ("small", "n2", 1))
    world.add(a_gang("g", 3, priority=HIGH), *pods(3, "g", priority=HIGH)).run()
    assert world.evicted() == ["large"]


class Choice:
    """Victims chosen for seats of pods like one, on all nodes of a world."""

    def __init__(self, world: TestWorld, pod: Any = None, **options: Any) -> None:
        self.found = Evictions(world, **options)
        shape = self.found.countable(pod or a_pod("new"))
        assert shape is not None
        self.shape: CountableShape = shape
        self.selection = VictimSelection(self.found.supply(self.shape))
        self.nodes = np.ones(self.found.state.cluster.size, dtype=np.bool_)

    def select(self, wanted: int, **only: bool) -> list[str] | None:
        if only:
            self.nodes = np.array([only.get(name, False) for name in self.found.state.cluster.names])
        ok = SeatVictims(self.selection, self.shape, self.nodes).select(wanted)
        return [victim.key.name for victim in self.selection.victims()] if ok else None

    def number(self, name: str) -> int:
        return self.found.number(name)


def test_seats_in_what_is_free_are_those_of_the_scarcest_row():
    assert count([7, 9, -1], ((0, 2), (1, 3))) == 3
    assert count([7, 2, 9], ((0, 2), (1, 3))) == 0
    assert count([7, -4, 9], ((1, 3),)) == 0


def test_nobody_is_chosen_while_there_are_seats():
    world = with_lows(a_world([a_node("n0", cpu=3)]), ("low", "n0", 1))

    assert Choice(world).select(2) == []


def test_the_cheapest_victims_per_seat_are_chosen():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2), a_node("n2", cpu=2)])
    with_lows(world, ("two", "n0", 2), ("a", "n1", 1), ("b", "n1", 1))
    with_lows(world, ("mid", "n2", 2), priority=50)

    assert Choice(world).select(2) == ["two"]
    assert sorted(Choice(world).select(3) or []) in (["a", "two"], ["b", "two"])
    assert sorted(Choice(world).select(6) or []) == ["a", "b", "mid", "two"]
    assert Choice(world).select(7) is None


def test_victims_that_turn_out_to_be_unnecessary_are_reprieved():
    # The small one is cheaper, and of no use once the large one is evicted as well.
    world = with_lows(a_world([a_node("n0", cpu=3)]), ("large", "n0", 2))
    with_lows(world, ("small", "n0", 1), priority=1)

    assert Choice(world, a_pod("new", cpu=2)).select(1) == ["large"]


def test_only_victims_on_the_given_nodes_are_chosen():
    world = with_lows(a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)]), ("a", "n0", 1), ("b", "n1", 1))

    assert Choice(world).select(1, n1=True) == ["b"]
    assert Choice(world).select(2, n1=True) is None


def test_excluded_victims_are_not_chosen():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("a", "n0", 1), ("b", "n0", 1))
    choice = Choice(world)
    choice.selection.excluded = {choice.number("a")}

    assert choice.select(1) == ["b"]
    assert choice.select(2) is None


def test_a_victim_on_several_nodes_counts_with_all_the_seats_it_frees():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2), a_node("n2", cpu=3)])
    world.add(a_basic("whole", mode="all", priority=LOW))
    world.add(*(a_pod(f"w{i}", "whole", priority=LOW, node=node) for i, node in enumerate(("n0", "n1", "n1"))))
    with_lows(world, *((f"p{i}", "n2", 1) for i in range(3)))

    assert Choice(world).select(3) == ["whole"]
    assert Choice(world).select(1) in (["p0"], ["p1"], ["p2"])  # fewer pods for the one seat that is wanted


def test_priority_can_be_ignored():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    with_lows(world, ("a", "n0", 1), ("b", "n0", 1), priority=1)
    with_lows(world, ("large", "n1", 2), priority=5)
    large = a_pod("new", cpu=2)
    assert sorted(Choice(world, large).select(1) or []) == ["a", "b"]

    choice = Choice(world, large)
    choice.selection.ignore_priority = True

    assert choice.select(1) == ["large"]


def test_a_budget_that_is_used_up_makes_its_pods_cost_more():
    world = with_lows(a_world([a_node("n0", cpu=4)]), ("a", "n0", 1), ("b", "n0", 1), labels={"app": "db"}, priority=1)
    with_lows(world, ("c", "n0", 1))
    world.add(a_budget("db", 1, app="db"))
    choice = Choice(world)
    selection = choice.selection
    before = selection.cost(choice.number("b"))

    selection.evict(choice.number("a"))

    assert (before[0], selection.cost(choice.number("b"))[0]) == (0, 1)
    selection.reprieve(choice.number("a"))
    assert selection.cost(choice.number("b")) == before
    assert choice.select(3) is not None  # one of the two, and c
    assert len(choice.selection.chosen) == 2


def test_nobody_is_counted_twice_whose_cost_changed_meanwhile():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    for gang, nodes in (("a", "n0 n1"), ("b", "n2 n3")):
        members = [a_pod(f"{gang}-{node}", gang, priority=LOW, node=node) for node in nodes.split()]
        world.add(a_gang(gang, 2, priority=LOW), *members)
    assert Choice(world).select(3) == ["a-n0", "a-n1", "b-n2"]


def test_members_of_a_broken_gang_are_taken_before_another_breaks():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(4)])
    for gang, nodes in (("a", "n0 n2"), ("b", "n1 n3")):
        world.add(a_gang(gang, 2, priority=LOW))
        world.add(*(a_pod(f"{gang}-{n}", gang, priority=LOW, node=n) for n in nodes.split()))

    chosen = Choice(world).select(2)

    assert chosen is not None
    assert len({name[0] for name in chosen}) == 1


def test_a_copy_is_changed_alone():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("a", "n0", 1), ("b", "n0", 1), labels={"app": "db"})
    world.add(a_budget("db", 0, app="db"))
    choice = Choice(world)
    choice.selection.evict(0)

    copy = choice.selection.copy()
    copy.evict(1)

    assert (choice.selection.chosen, copy.chosen) == ({0}, {0, 1})
    assert (choice.selection.seats(choice.shape).tolist(), copy.seats(choice.shape).tolist()) == ([1], [2])
    assert (choice.selection.disrupted, copy.disrupted) == ({0: 1}, {0: 2})


def test_seats_that_are_taken_are_gone_on_emptied_nodes_first():
    world = with_lows(a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)]), ("a", "n1", 2))
    choice = Choice(world)
    choice.selection.evict(choice.number("a"))
    assert choice.selection.seats(choice.shape).tolist() == [2, 2]

    choice.selection.place(choice.shape, choice.nodes, 3)

    assert choice.selection.seats(choice.shape).tolist() == [1, 0]


def test_only_the_slots_that_matter_are_followed():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    a_tree(world, "all", "all")
    choice = Choice(world)
    choice.selection.slots = [True, False]

    choice.selection.evict(0)

    assert choice.selection.seats(choice.shape).tolist() == [1, 0]


def test_marked_victims_are_free_of_charge():
    world = with_lows(a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)]), ("low", "n0", 1), priority=1)
    with_lows(world, ("marked", "n1", 1), priority=50)

    assert Choice(world, marked={"pod-marked"}).select(1) == ["marked"]


def test_a_set_of_victims_is_compared_without_those_that_make_no_difference():
    # On n0 the small one is cheapest, and of no use for a seat of two cpus; without it one victim is enough.
    world = a_world([a_node("n0", cpu=3), a_node("n1", cpu=2)])
    with_lows(world, ("small", "n0", 1), priority=1)
    with_lows(world, ("late", "n0", 2), created=600)
    with_lows(world, ("early", "n1", 2))

    assert Choice(world, a_pod("new", cpu=2)).select(1) == ["late"]


def test_a_set_of_victims_has_the_highest_priority_among_them():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    with_lows(world, ("a", "n0", 1), priority=1)
    with_lows(world, ("b", "n0", 1), priority=50)
    with_lows(world, ("c", "n1", 1), ("d", "n1", 1))

    assert sorted(Choice(world, a_pod("new", cpu=2)).select(1) or []) == ["c", "d"]


def test_seats_are_taken_on_the_given_nodes_only():
    choice = Choice(a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)]))

    choice.selection.place(choice.shape, np.array([False, True]), 3)

    assert choice.selection.seats(choice.shape).tolist() == [2, 0]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_reprieved_does_not_depend_on_how_it_is_computed(seed: int, monkeypatch: pytest.MonkeyPatch):
    chosen: list[list[str] | None] = []
    for many in (0, 10**9):
        monkeypatch.setattr(seat_victims, "MANY_VICTIMS", many)
        rng = random.Random(seed)
        world, cpu = a_mixed_world(rng), rng.randint(2, 4)
        choice = Choice(world, a_pod("new", cpu=cpu))
        all_gone = VictimSelection(choice.selection.supply)
        all_gone.evict_all(np.arange(len(choice.found.victims)))
        most = int(all_gone.seats(choice.shape).sum())
        chosen.append(choice.select(most - rng.randint(0, 2)))

    assert chosen[0] == chosen[1]
