"""How much a property test tries, as the profile says: all in `full`, a quarter in `quick` (see tests/conftest.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")
FULL = 100  # the examples of a test that names no number, without a profile or in the profile `full`


def examples(number: int) -> int:
    """So many examples, or their share in the profile that is loaded."""
    return max(1, number * settings.default.max_examples // FULL)


def sampled(cases: Sequence[T]) -> Sequence[T]:
    """All of the cases, or as many as their share in the profile, evenly spaced from the first on."""
    return cases[:: max(1, FULL // settings.default.max_examples)]
