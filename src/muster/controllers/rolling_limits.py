"""`maxUnavailable` and `maxSurge`: a number of pods, or a percentage of those that are wanted."""

from __future__ import annotations


def rolling_limit(value: int | str, wanted: int, *, round_up: bool, least: int = 0) -> int:
    """The number of pods that a limit stands for."""
    if isinstance(value, int):
        return max(least, value)
    share = int(value.rstrip("%")) * wanted
    return max(least, -(-share // 100) if round_up else share // 100)
