"""Measurements: what the cycles did, kept until it is taken. Decisions do not depend on it."""

from __future__ import annotations

from collections import Counter, deque

from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.preemption.result import PreemptionAttempt

MOST_KEPT = 1024
HELD, TAKEN, LOST, TIMED_OUT = "held", "taken", "lost", "timed_out"  # what became of seats for expected members
ACCEPTED, REJECTED, UNCHECKED = "accepted", "rejected", "unchecked"  # what became of a proof of infeasibility


class Measurements:
    """The latest preemption attempts and evaluated domains; the oldest are dropped when they are not taken."""

    def __init__(self) -> None:
        self._preemptions: deque[PreemptionAttempt] = deque(maxlen=MOST_KEPT)
        self._domains: deque[DomainsEvaluated] = deque(maxlen=MOST_KEPT)
        self._proofs: Counter[str] = Counter()
        self._missed = 0
        self._reservations: Counter[str] = Counter()
        self._held: Counter[str] = Counter()

    def add_preemption(self, attempt: PreemptionAttempt) -> None:
        self._preemptions.append(attempt)

    def add_domains(self, evaluated: DomainsEvaluated) -> None:
        self._domains.append(evaluated)

    def add_proof(self, result: str) -> None:
        self._proofs[result] += 1

    def add_missed(self, count: int) -> None:
        self._missed += count

    def take_missed(self) -> int:
        """Entities that the fallback timer had to find, since they were last taken."""
        taken, self._missed = self._missed, 0
        return taken

    def add_reservation(self, event: str) -> None:
        self._reservations[event] += 1

    def add_held(self, event: str, seats: int) -> None:
        if seats:
            self._held[event] += seats

    def take_held(self) -> dict[str, int]:
        """How many seats for expected members were held, taken, lost and timed out since they were last taken."""
        taken, self._held = dict(self._held), Counter()
        return taken

    def take_preemptions(self) -> list[PreemptionAttempt]:
        """The preemption attempts since they were last taken."""
        taken = list(self._preemptions)
        self._preemptions.clear()
        return taken

    def take_domains(self) -> list[DomainsEvaluated]:
        """The domains evaluated since they were last taken."""
        taken = list(self._domains)
        self._domains.clear()
        return taken

    def take_proofs(self) -> dict[str, int]:
        """How many proofs of infeasibility were accepted, rejected and not checked since they were last taken."""
        taken, self._proofs = dict(self._proofs), Counter()
        return taken

    def take_reservations(self) -> dict[str, int]:
        """How many reservations were made, moved and ended, and pods overstayed, since they were last taken."""
        taken, self._reservations = dict(self._reservations), Counter()
        return taken
