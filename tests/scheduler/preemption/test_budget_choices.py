"""Sets of victims that violate no budget: all of them, largest ones only, the cheapest first."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings

from muster.scheduler.preemption import budget_choices
from muster.scheduler.preemption.budget_choices import choices_within_budgets
from tests.build.examples import examples
from tests.build.objects import a_budget, a_node
from tests.build.preemption import Evictions, with_lows
from tests.build.preemption_cases import Case, cases
from tests.build.scheduler import a_world


def choices(found: Evictions) -> list[list[str]]:
    return [[victim.key.name for victim in one] for one in choices_within_budgets(found.victims, found.cost)]


def protected(count: int, allowed: int) -> Evictions:
    """So many pods under one budget, and a free one."""
    world = with_lows(a_world([a_node("n0", cpu=99)]), ("free", "n0", 1))
    with_lows(world, *[(f"db-{i}", "n0", 1) for i in range(count)], labels={"app": "db"})
    return Evictions(world.add(a_budget("db", allowed, app="db")))


def test_one_of_three_may_leave_together_with_the_free_one():
    assert choices(protected(3, 1)) == [["db-0", "free"], ["db-1", "free"], ["db-2", "free"]]


def test_without_an_allowed_disruption_only_the_free_one_may_leave():
    assert choices(protected(3, 0)) == [["free"]]


def test_a_budget_that_allows_all_restricts_nothing():
    assert choices(protected(3, 3)) == [["db-0", "db-1", "db-2", "free"]]


def test_of_very_many_choices_only_some_are_tried():
    assert len(choices(protected(30, 15))) == budget_choices.MOST_CHOICES


@settings(max_examples=examples(100), deadline=None)
@given(cases())
def test_the_choices_are_the_largest_sets_without_a_violation(case: Case):
    found = Evictions(case.world())
    victims = list(found.victims)
    sets = [frozenset(some) for size in range(len(victims) + 1) for some in combinations(victims, size)]
    within = [some for some in sets if found.cost.violations(some) == 0]
    largest = {some for some in within if not any(some < other for other in within)}
    assert {frozenset(one) for one in choices_within_budgets(victims, found.cost)} == largest
