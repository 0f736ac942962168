"""Some sets of the domains that have too many to enumerate, gathered while the search goes on.

The first are those that take most. Where they do not suffice, prices say which groups are short of sets, and sets that
are dear at these prices are added.
"""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.filling_rules import FillingState
from muster.scheduler.planning.group_sets import GroupSets, some_sets, together
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.prices import DEAREST

FEW_SAMPLES = 50  # below which a domain is sampled again


NOISE_BITS = 2  # by which noise is below the dearest price


MOST_KEPT = 2_000  # sets of one kind of domain that are kept beside new ones


class SetSamples:
    """Some sets of kinds of domains; all of them obey the rows as they are when they are asked for."""

    def __init__(self, rows: DomainRows, budget: Budget) -> None:
        self.rows = rows
        self.budget = budget
        self._known: dict[int, GroupSets] = {}
        self._stuck = 0  # how often prices gave hardly any new set
        self._ruled_out: dict[int, int] = {}  # how many sets of a domain were ruled out when it was last looked at

    def of(self, state: FillingState, spare: Ints, weights: Ints | None = None) -> Pausing[list[GroupSets]]:
        """Sets that a state allows, of each kind of domain with too many; with prices, some more that are dear."""
        found: list[GroupSets] = []
        before = self._count()
        if weights is not None and self._stuck:
            weights = weights + noise(len(weights), self._stuck, DEAREST >> NOISE_BITS)
        for domain in state.unknown.tolist():
            usable = self._usable(domain, state, spare)
            if weights is not None or len(usable) < FEW_SAMPLES:
                self._add(domain, state, spare, weights)
                usable = self._usable(domain, state, spare)
            found.append(usable)
            if self.budget.pause_due():
                yield
        if weights is not None and self._count() < before + FEW_SAMPLES:
            self._stuck += 1
        return found

    def _count(self) -> int:
        return sum(map(len, self._known.values()))

    def _add(self, domain: int, state: FillingState, spare: Ints, weights: Ints | None) -> None:
        fresh = some_sets(self.rows, domain, state.waiting, spare, self.budget, weights)
        known = self._known.get(domain)
        parts = [part for part in (fresh, known) if part is not None]
        if parts:
            self.budget.spend_cells(6 * sum(part.counts.size for part in parts))
            self._known[domain] = _distinct(together(parts, self.rows)).only(slice(MOST_KEPT))

    def _usable(self, domain: int, state: FillingState, spare: Ints) -> GroupSets:
        rows, known = self.rows, self._known.get(domain)
        if known is None:
            return together([], rows)
        if known.left.shape[1] < rows.room.shape[1] or self._ruled_out.get(domain, 0) < len(rows.ruled_out[domain]):
            known = self._known[domain] = known.refreshed(rows)
            self._ruled_out[domain] = len(rows.ruled_out[domain])
        self.budget.spend_cells(known.left.size)
        taken = np.flatnonzero(state.waiting < rows.groups)
        allowed: Mask = known.within(state.waiting, taken) & np.less_equal(known.left, spare).all(axis=1)
        return known.only(allowed)


def noise(count: int, variant: int, below: int) -> Ints:
    """Numbers without a pattern, the same on every machine."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64((variant + 1) * 0xD1B54A32D192ED03 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> np.uint64(32)) % np.uint64(below)).astype(np.int64)


def _distinct(sets: GroupSets) -> GroupSets:
    """Each set once, in the order in which they are."""
    if not sets.counts.size:
        return sets
    # Two sets with the same number would be counted as one, which costs a sample.
    number = sets.counts.astype(np.int64) @ noise(sets.counts.shape[1], 0, 1 << 31)
    order = np.argsort(number, kind="stable")
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = number[order[1:]] != number[order[:-1]]
    return sets.only(np.sort(order[fresh]))
