"""What preemption answers.

One consideration of preemption and how it ended, for those who count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from muster.scheduler.placement.verdict import Placed
from muster.scheduler.preemption.victims import Victim


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """After these units have left, these seats hold."""

    placed: Placed
    victims: tuple[Victim, ...]
    budget_violations: int


@dataclass(frozen=True, slots=True)
class NoCandidates:
    """Evicting does not help. `hopeless`: not even everything of lower priority together would do."""

    hopeless: bool
    reason: str


MOST_ROUNDS = 1024  # kept until someone takes them


NOMINATED, NO_VICTIMS, UNDECIDED, REFUSED = "nominated", "no_victims", "undecided", "refused"


class PreemptionAttempt(NamedTuple):
    """What was considered for one root."""

    preemptor: str  # pod, podgroup or compositepodgroup
    result: str
    victims: int = 0
    units: int = 0
    budget_violations: int = 0
