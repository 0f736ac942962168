"""Budgets: steps are counted, also beyond the limit."""

from __future__ import annotations

from muster.scheduler.placement.verdict import Budget


def test_a_budget_allows_steps_up_to_its_limit():
    budget = Budget(3)

    assert budget.spend(2)
    assert not budget.exhausted
    assert budget.spend()
    assert budget.exhausted


def test_what_is_spent_beyond_the_limit_is_counted_too():
    budget = Budget(3)

    assert not budget.spend(5)
    assert (budget.spent, budget.exhausted) == (5, True)
