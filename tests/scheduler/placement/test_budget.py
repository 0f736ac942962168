"""Budgets: steps are counted, also beyond the limit, and end a slice."""

from __future__ import annotations

from muster.scheduler.placement.budget import CELLS_PER_STEP, Budget, Pausing, run_to_end


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


def test_an_array_pass_costs_by_its_cells():
    budget = Budget(100)
    budget.spend_cells(10)
    budget.spend_cells(3 * CELLS_PER_STEP)

    assert budget.spent == 1 + 4


def test_a_part_is_spent_of_the_whole_and_never_larger_than_what_is_left():
    whole = Budget(10, slice_steps=4)
    part = whole.part(6)

    assert not part.pause_due()
    assert part.spend(5)
    assert (whole.spent, whole.left, whole.part(100).limit) == (5, 5, 5)
    assert part.pause_due(), "the slice is one of the whole"
    assert not part.pause_due(), "and the next one has begun"


def test_without_slices_a_search_never_pauses():
    budget = Budget(10)
    budget.spend(1000)

    assert not budget.pause_due()


def test_a_search_run_to_its_end_gives_its_answer():
    def search() -> Pausing[str]:
        yield
        yield
        return "found"

    assert run_to_end(search()) == "found"


def test_other_work_shortens_a_slice_and_spends_nothing():
    budget = Budget(100, slice_steps=10)
    budget.part(50).shorten_slice(8)

    budget.spend(2)

    assert budget.pause_due()
    assert budget.spent == 2
