"""Preemptions under way."""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.placement.verdict import Placed


@dataclass(slots=True)
class PreemptionInProgress:
    """An eviction under way for one root."""

    placed: Placed
    victims: set[str]  # uids that are not gone yet
    marked: set[str]  # of these, the ones whose deletion was not yet asked for

    @property
    def doomed(self) -> set[str]:
        """Victims whose deletion was asked for: nothing can save them."""
        return self.victims - self.marked
