"""The results of preemption: a plan with its victims, or why there is none; and for metrics, how an attempt ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from muster.scheduler.placement.verdict import Placed
from muster.scheduler.preemption.victim_table import Victim

NOMINATED, NO_VICTIMS, UNDECIDED, REFUSED = "nominated", "no_victims", "undecided", "refused"


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The placement that is possible once these victims are gone."""

    placed: Placed
    victims: tuple[Victim, ...]
    budget_violations: int


@dataclass(frozen=True, slots=True)
class NoCandidates:
    """Evicting does not help. `hopeless`: not even evicting everything of lower priority would."""

    hopeless: bool
    reason: str


class PreemptionAttempt(NamedTuple):
    """How preemption ended for one entity."""

    preemptor: str  # pod, podgroup or compositepodgroup
    result: str
    pods: int = 0
    disruptions: int = 0  # victims, each of one or more pods
    budget_violations: int = 0
