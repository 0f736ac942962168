"""Durations as Kubernetes writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("1h30m", 5400), ("1.5h", 5400), (".5s", 0.5), ("1h0m1s", 3601), ("250ms", 0.25)],
)
def test_a_duration_is_a_sum_of_numbers_with_units(text: str, seconds: float):
    assert durations.seconds(text) == pytest.approx(seconds)
    assert durations.is_duration(text)


@pytest.mark.parametrize("text", ["", "5", "s", "1d", "-5s", "1h ", " 1h", "0s", "1e3s", "1hh", "h1", "1h30", "٣s"])
def test_everything_else_is_refused(text: str):
    with pytest.raises(ValueError, match="must be a duration above 0"):
        durations.seconds(text)
    assert not durations.is_duration(text)


@given(st.integers(0, 500), st.integers(0, 59), st.integers(1, 59))
def test_what_is_written_is_read(hours: int, minutes: int, seconds: int):
    assert durations.seconds(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_not(text: str):
    assert not durations.is_duration(text) or durations.seconds(text) > 0
