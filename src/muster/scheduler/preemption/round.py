"""One consideration of preemption and how it ended, for those who count."""

from __future__ import annotations

from typing import NamedTuple

MOST_ROUNDS = 1024  # kept until someone takes them

NOMINATED, NO_VICTIMS, UNDECIDED, REFUSED = "nominated", "no_victims", "undecided", "refused"


class Round(NamedTuple):
    """What was considered for one root."""

    preemptor: str  # pod, podgroup or compositepodgroup
    result: str
    victims: int = 0
    units: int = 0
    budget_violations: int = 0
