"""Patterns of domains: the sets of groups that each domain can hold, and covers: one set a domain, every group once.

A set is listed for a domain if no row of the assignment rules it out and the domain is filled well enough: what all
domains hold, at the prices of the first row, exceeds what all groups weigh by a known amount, and no domain may waste
more than that. Where groups nearly fill the domains few sets are left, and a cover is found, or ruled out, by going
through them: the group or domain with the fewest sets first, fuller sets before others.
"""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.node_matrix import Ints, Mask

MOST_SETS = 20_000


MOST_PARTIAL_SETS = 60_000


class DomainPatterns:
    """The sets that are possible, one row each, sorted by domain."""

    def __init__(self, domain: Ints, members: Mask, waste: Ints, spare: int, domains: int) -> None:
        self.domain = domain  # [set]
        self.members = members  # [set, group]
        self.waste = waste  # [set], of the first row
        self.spare = spare  # what all domains together may waste
        self.domains = domains
        self.good: Mask = np.zeros(len(domain), dtype=bool)  # known to pack
        self.complete = True  # nothing was left out, and nothing was dropped without a proof

    def keep(self, mask: Mask) -> None:
        """Drop the sets outside a mask."""
        self.domain, self.members, self.waste, self.good = (
            self.domain[mask],
            self.members[mask],
            self.waste[mask],
            self.good[mask],
        )

    def cover(self, budget: Budget) -> Pausing[list[int] | None]:
        """The indexes of sets that are a cover; None if there is none, or `complete` is False by then."""
        alive: Ints = np.arange(len(self.domain))
        covered = np.zeros(self.members.shape[1], dtype=bool)
        taken = np.zeros(self.domains, dtype=bool)
        return (yield from self._extend(alive, covered, taken, self.spare, budget))

    def _extend(
        self, alive: Ints, covered: Mask, taken: Mask, spare: int, budget: Budget
    ) -> Pausing[list[int] | None]:
        if taken.all():
            return [] if covered.all() else None
        if not budget.spend_cells(2 * len(alive) * len(covered)):
            self.complete = False
            return None
        if budget.pause_due():
            yield
        choice = self._narrowest(alive, covered, taken, spare)
        if choice is None:
            return None
        for at in choice.tolist():
            members, waste = self.members[at], int(self.waste[at])
            rest = alive[(self.domain[alive] != self.domain[at]) & ~(self.members[alive] & members).any(axis=1)]
            now_taken = taken.copy()
            now_taken[self.domain[at]] = True
            found = yield from self._extend(rest, covered | members, now_taken, spare - waste, budget)
            if found is not None:
                return [at, *found]
            if not self.complete and budget.exhausted:
                return None
        return None

    def _narrowest(self, alive: Ints, covered: Mask, taken: Mask, spare: int) -> Ints | None:
        """The sets of the group or domain that has fewest of them, best first; None if no cover is possible."""
        domain, waste = self.domain[alive], self.waste[alive]
        least = np.full(self.domains, spare + 1)
        np.minimum.at(least, domain, waste)
        left = spare - int(least[~taken].sum())
        if left < 0:
            return None
        fits = waste - least[domain] <= left
        alive, domain = alive[fits], domain[fits]
        per_domain = np.where(taken, len(alive) + 1, np.bincount(domain, minlength=self.domains))
        per_group = np.where(covered, len(alive) + 1, self.members[alive].sum(axis=0))
        narrow_domain, narrow_group = int(per_domain.argmin()), int(per_group.argmin())
        if min(per_domain[narrow_domain], per_group[narrow_group]) == 0:
            return None
        by_group = per_group[narrow_group] < per_domain[narrow_domain]
        chosen = alive[self.members[alive, narrow_group] if by_group else domain == narrow_domain]
        return chosen[np.lexsort((self.waste[chosen], ~self.good[chosen]))]


def domain_patterns(room: Ints, load: Ints, allowed: Mask, budget: Budget) -> DomainPatterns | None:
    """The possible sets; None if there are too many. `room` is [row, domain], `load` [row, group]."""
    domains, groups = room.shape[1], load.shape[1]
    spare = int(room[0].sum()) - int(load[0].sum())
    domain, last = np.arange(domains), np.full(domains, -1)
    left, members = room.T.copy(), np.zeros((domains, groups), dtype=bool)
    found = [(domain, members, left[:, 0])]
    while len(domain):
        if not budget.spend_cells(len(domain) * groups * 2):
            return None
        able = allowed.T[domain] & (np.arange(groups)[None, :] > last[:, None])
        for row in range(len(room)):
            able &= load[row][None, :] <= left[:, row, None]
        parent, group = np.nonzero(able)
        if len(parent) > MOST_PARTIAL_SETS:
            return None
        budget.spend_cells(len(parent) * (groups + len(room)))
        domain, last = domain[parent], group
        left, members = left[parent] - load.T[group], members[parent]
        members[np.arange(len(group)), group] = True
        found.append((domain, members, left[:, 0]))
    domain = np.concatenate([each[0] for each in found])
    members = np.concatenate([each[1] for each in found])
    waste = np.concatenate([each[2] for each in found])
    usable = np.flatnonzero(waste <= spare)
    if len(usable) > MOST_SETS:
        return None
    return DomainPatterns(domain[usable], members[usable], waste[usable], spare, domains)
