"""What is left to decide when groups are assigned to domains, and what follows from it without a decision.

What all open domains have beyond all waiting groups is fixed for every row, so a set that leaves too much beside the
least that the others leave is dropped, and a domain with one set left takes it. All of it is counted in integers, by
kinds of domains and kinds of groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.group_sets import GroupSets, all_sets, together
from muster.scheduler.planning.node_matrix import Ints, Mask

FEW_GROUPS = 14  # of which all sets for a domain can be enumerated


PASSES_PER_ROUND = 5  # over what all sets leave, roughly, with what it takes to come to a state


Choice = tuple[int, Ints]  # a kind of domain, and how many groups of each kind one domain of it takes


@dataclass(slots=True, eq=False)
class FillingState:
    """What is left to decide, and the choices that led there."""

    sets: GroupSets  # of the kinds of domains that are enumerated
    known: Mask  # [kind of domain]: enumerated
    open: Ints  # [kind of domain]: how many take no set yet
    waiting: Ints  # [kind of group]: how many are in no set yet
    chosen: list[Choice] = field(default_factory=list[Choice])
    options: list[int] = field(default_factory=list[int])  # sets to try next, the last one first
    cut: bool = False  # something was left out here or below

    @property
    def unknown(self) -> Ints:
        """The kinds of open domains that have too many sets."""
        return np.flatnonzero(~self.known & (self.open > 0))

    @property
    def sizes(self) -> Ints:
        """[kind of domain]: how many sets."""
        return np.bincount(self.sets.domain, minlength=len(self.open))


class FillingRules:
    """What follows from a state by the rows as they are."""

    def __init__(self, rows: DomainRows, budget: Budget) -> None:
        self.rows = rows
        self.budget = budget

    def spare(self, domains: Ints, groups: Ints) -> Ints:
        """By row, what some domains have beyond some groups."""
        return domains @ self.rows.room - groups @ self.rows.load

    def allows(self, choice: Choice) -> bool:
        """Whether a domain may take a set, beside nothing else."""
        kind, counts = choice
        fits = bool(np.greater_equal(self.rows.room[kind], counts @ self.rows.load).all())
        return fits and not any(np.array_equal(counts, each) for each in self.rows.ruled_out[kind])

    def take(self, state: FillingState, choices: Iterable[Choice]) -> FillingState:
        """The state after domains take sets; those that groups or domains are missing for are passed over."""
        opened, waiting, chosen = state.open.copy(), state.waiting.copy(), list(state.chosen)
        for domain, counts in choices:
            if opened[domain] and np.less_equal(counts, waiting).all():
                chosen.append((domain, counts))
                opened[domain] -= 1
                waiting -= counts
        changed = np.flatnonzero(waiting < state.waiting)
        # Of a domain that is only sampled nothing is known once another one took its set.
        possible = state.sets.within(waiting, changed) & (state.known & (opened > 0))[state.sets.domain]
        return FillingState(state.sets.only(possible), state.known.copy(), opened, waiting, chosen)

    def settle(self, state: FillingState) -> bool | None:
        """Drop the sets that leave too much, and take the only set of a domain, for as long as there are any.

        True once every group is in a set; False if that cannot be reached.
        """
        while state.waiting.any():
            spare = self.spare(state.open, state.waiting)
            if (spare < 0).any():
                return False
            found = self._drop(state, spare)
            if found is None:
                return False
            sizes, slack = found
            if not self._covered(state):
                return False
            if self._enumerate_more(state, sizes, slack):
                continue
            single = np.flatnonzero(sizes == 1)
            if not len(single):
                return None
            option = int(np.flatnonzero(state.sets.domain == single[0])[0])
            after = self.take(state, [(int(single[0]), state.sets.counts[option])])
            state.sets, state.open, state.waiting, state.chosen = after.sets, after.open, after.waiting, after.chosen
        return True

    def _drop(self, state: FillingState, spare: Ints) -> tuple[Ints, Ints] | None:
        """Drop sets that leave too much: how many each kind of domain has then, and what is spare beyond the least.

        None if a domain has none.
        """
        while True:
            sets = state.sets
            if not self.budget.spend_cells(PASSES_PER_ROUND * sets.left.size):
                state.cut = True
                return None
            sizes = state.sizes
            if ((state.open > 0) & state.known & (sizes == 0)).any():
                return None
            present = np.flatnonzero(sizes)
            if not len(present):
                return sizes, spare
            starts = np.cumsum(sizes[present]) - sizes[present]
            least = np.minimum.reduceat(sets.left, starts)
            slack = spare - state.open[present] @ least
            if (slack < 0).any():
                return None
            usable = np.flatnonzero((sets.left - np.repeat(least, sizes[present], axis=0) <= slack).all(axis=1))
            if len(usable) == len(sets):
                return sizes, slack
            state.sets = sets.only(usable)

    def _covered(self, state: FillingState) -> bool:
        """Whether every waiting group is in some set, or fits into a domain that is not enumerated."""
        elsewhere = self.rows.fits[state.unknown].any(axis=0)
        return not (state.waiting.astype(bool) & ~elsewhere & ~state.sets.counts.any(axis=0)).any()

    def _enumerate_more(self, state: FillingState, sizes: Ints, slack: Ints) -> bool:
        """Enumerate a domain whose sets were too many, once few groups are left or there is nothing else to decide."""
        unknown = state.unknown
        if not len(unknown):
            return False
        groups = np.count_nonzero(self.rows.fits[unknown] & (state.waiting > 0), axis=1)
        for at in np.argsort(groups, kind="stable").tolist():
            if groups[at] > FEW_GROUPS and sizes.any():
                return False
            domain = int(unknown[at])
            sets = all_sets(self.rows, domain, state.waiting, slack, self.budget)
            if sets is not None:
                state.sets = together([state.sets, sets], self.rows)
                state.known[domain] = True
                return True
        return False
