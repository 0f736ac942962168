"""What preemption answers."""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.planning.verdict import Placed
from muster.scheduler.preemption.units import Unit


@dataclass(frozen=True, slots=True)
class Eviction:
    """After these units have left, these seats hold."""

    placed: Placed
    units: tuple[Unit, ...]
    budget_violations: int


@dataclass(frozen=True, slots=True)
class NoHelp:
    """Evicting does not help. `hopeless`: not even everything of lower priority together would do."""

    hopeless: bool
    reason: str
