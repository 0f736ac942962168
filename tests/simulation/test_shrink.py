"""A bad day made smaller: what is left is needed, and fails alike."""

from __future__ import annotations

import pytest

from tests.simulation.shrink import shrink


@pytest.mark.parametrize("needed", [{3}, {0, 19}, {2, 3, 11}, set(range(20))])
def test_only_what_is_needed_is_left(needed: set[int]):
    kept, text = shrink(20, lambda tried: "1.0 I1 it broke" if needed <= set(tried) else "")
    assert set(kept) == needed
    assert text == "1.0 I1 it broke"


def test_another_fault_is_not_taken_for_the_same():
    def complaint(tried: list[int]) -> str:
        return "9.0 I2 another" if 5 not in tried else "1.0 I1 it broke"

    kept, text = shrink(10, complaint)
    assert kept == [5]
    assert text.endswith("I1 it broke")


def test_a_good_day_stays_as_it_is():
    assert shrink(4, lambda tried: "") == ([0, 1, 2, 3], "")
