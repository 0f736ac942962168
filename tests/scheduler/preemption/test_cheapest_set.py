"""The cheapest sufficient set of victims, and the cache of which sets suffice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.placement.request import GroupRequest, leaves
from muster.scheduler.preemption import cheapest_set
from muster.scheduler.preemption.cheapest_set import SufficiencyCache, cheapest_sufficient
from muster.scheduler.preemption.victim_table import Victim
from muster.scheduler.preemption.what_if import EvictionTrial
from tests.build.objects import RACK, a_composite, a_gang, a_node, pods
from tests.build.preemption import HIGH, Evictions, with_lows
from tests.build.scheduler import TestWorld, a_world


def five() -> Evictions:
    """Five victims whose priority is their number."""
    world = a_world([a_node("n0", cpu=9)])
    for i in range(1, 6):
        with_lows(world, (f"v{i}", "n0", 1), priority=i)
    return Evictions(world)


class Suffices:
    """A set suffices if it contains one of the given sets; how often it was asked."""

    def __init__(self, *sets: str) -> None:
        self.sets = [set(names.split()) for names in sets]
        self.asked = 0

    def __call__(self, victims: Sequence[Victim]) -> bool:
        self.asked += 1
        names = {victim.key.name for victim in victims}
        return any(wanted <= names for wanted in self.sets)


def cheapest(found: Evictions, suffices: Any, below: str | None = None, monotone: bool = True) -> list[str] | None:
    limit = [found.victim(name) for name in below.split()] if below is not None else None
    chosen = cheapest_sufficient(found.victims, found.cost, suffices, below=limit, monotone=monotone)
    return None if chosen is None else [victim.key.name for victim in chosen]


@pytest.mark.parametrize("monotone", [True, False])
def test_the_cheapest_of_all_sufficient_sets_is_found(monotone: bool):
    found = five()

    assert cheapest(found, Suffices("v5", "v1 v2 v3", "v2 v4"), monotone=monotone) == ["v1", "v2", "v3"]
    assert cheapest(found, Suffices("v5", "v1 v2 v5"), monotone=monotone) == ["v5"]
    assert cheapest(found, Suffices(""), monotone=monotone) == []
    assert cheapest(found, Suffices(), monotone=monotone) is None


def test_only_a_set_that_is_cheaper_than_the_given_one_counts():
    found = five()

    assert cheapest(found, Suffices("v2 v4"), below="v2 v4") is None
    assert cheapest(found, Suffices("v2 v4"), below="v1 v2 v4") == ["v2", "v4"]
    assert cheapest(found, Suffices("v2 v4"), below="v3") is None


def test_a_failed_set_rules_out_all_sets_that_miss_what_it_lacks():
    found, suffices = five(), Suffices("v5")

    assert cheapest(found, suffices) == ["v5"]
    assert suffices.asked < 10  # of 32 sets

    every = Suffices("v5")
    cheapest(found, every, monotone=False)
    assert every.asked > 10


def test_without_monotony_the_number_of_plans_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cheapest_set, "MOST_PLANS", 3)
    suffices = Suffices("v5")

    assert cheapest(five(), suffices, monotone=False) is None
    assert suffices.asked == 4


# --- which sets suffice ----------------------------------------------------------------------------


class Case:
    """A pending group over victims, and the cache of which of them suffice; plans are counted."""

    def __init__(self, world: TestWorld, name: str, *, count: bool = True, monotone: bool = True) -> None:
        self.found = Evictions(world)
        state = self.found.state
        entity = next(entity for entity in state.queue.entities.values() if entity.key.name == name)
        self.request: GroupRequest = request_of(entity, state.shape_of, state.domain_of)
        shape = self.found.countable(next(leaves(self.request)).members[0].shape.pod)
        assert shape is not None
        shapes = {shape.shape.id: shape} if count else {}
        supply = self.found.supply(shape) if count else None
        self.plans = 0
        what_if = EvictionTrial(state.evaluator, (), (), 1000)
        plan = what_if.suffices

        def counted(request: GroupRequest, victims: Sequence[Victim]) -> bool:
            self.plans += 1
            return plan(request, victims)

        what_if.suffices = counted  # type: ignore[method-assign]
        self.cache = SufficiencyCache(what_if, self.request, supply, shapes, monotone=monotone)

    def __call__(self, *names: str) -> bool:
        return self.cache([self.found.victim(name) for name in names])


def four_nodes(**gang: Any) -> TestWorld:
    world = with_lows(a_world([a_node(f"n{i}", cpu=1, rack=f"r{i // 2}") for i in range(4)]))
    with_lows(world, *((f"v{i}", f"n{i}", 1) for i in range(4)))
    return world.add(a_gang("g", 2, priority=HIGH, **gang), *pods(2, "g", priority=HIGH))


def test_what_was_planned_once_is_remembered():
    suffices = Case(four_nodes(), "g", count=False, monotone=False)

    assert (suffices("v0", "v1"), suffices("v0")) == (True, False)
    assert (suffices("v1", "v0"), suffices("v0")) == (True, False)
    assert suffices.plans == 2
    assert suffices("v0", "v1", "v2")
    assert suffices.plans == 3


def test_subsets_of_what_failed_and_supersets_of_what_suffices_need_no_plan():
    suffices = Case(four_nodes(), "g", count=False)

    assert (suffices("v0", "v1"), suffices("v2")) == (True, False)
    assert suffices.plans == 2
    assert (suffices("v0", "v1", "v2"), suffices()) == (True, False)
    assert suffices.plans == 2


def test_a_count_that_falls_short_spares_the_plan():
    suffices = Case(four_nodes(), "g")

    assert not suffices("v0")
    assert suffices.plans == 0
    assert suffices("v0", "v3")
    assert suffices.plans == 1


def test_the_count_is_made_inside_each_domain():
    suffices = Case(four_nodes(topology=RACK), "g")

    assert not suffices("v1", "v2")
    assert suffices.plans == 0
    assert suffices("v2", "v3")


def test_the_count_of_a_tree_needs_enough_children():
    world = with_lows(a_world([a_node(f"n{i}", cpu=1) for i in range(4)]), *((f"v{i}", f"n{i}", 1) for i in range(4)))
    world.add(a_composite("tree", 1, priority=HIGH))
    for name, size in (("small", 2), ("large", 3)):
        world.add(a_gang(name, size, parent="tree", priority=HIGH), *pods(size, name, priority=HIGH))
    suffices = Case(world, "tree")

    assert not suffices("v0")
    assert suffices.plans == 0
    assert suffices("v0", "v1")
