"""A filling from fractional ones: domains take the sets that they get as a whole, and the rest is filled again.

A fractional filling of least cost gives most domains a single set. These are taken, what follows from that is settled,
and the domains that are left are filled once more, until so few are open that they are searched. Other costs lead to
another filling. Domains with too many sets take part with some of them; where these do not suffice, the prices say
which to add.
"""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.filling_rules import Choice, FillingRules, FillingState
from muster.scheduler.planning.group_sets import GroupSets, together
from muster.scheduler.planning.set_relaxation import FractionalFilling, fill_fractionally
from muster.scheduler.planning.set_samples import SetSamples, noise

MOST_ROUNDS = 8  # fractional fillings in one dive


MOST_SHORT = 4  # of them that do not exist for want of sets


FEW_DOMAINS = 8  # that are searched rather than filled fractionally


WHOLE = 0.9  # a share that counts as whole


COSTS = 1 << 16


class SetDiving:
    """Dives on the rows as they are, with the samples of earlier ones."""

    def __init__(self, rows: DomainRows, budget: Budget) -> None:
        self.rules = FillingRules(rows, budget)
        self.samples = SetSamples(rows, budget)
        self.hopeless = False  # there is no fractional filling, by floating point: no dive is worth it

    def dive(self, state: FillingState, variant: int) -> Pausing[FillingState | None]:
        """A state that few domains are open in, from one that is settled; None if the way there is a dead end."""
        weights, rules, short = None, self.rules, 0
        for taken in range(MOST_ROUNDS):
            samples = yield from self.samples.of(state, rules.spare(state.open, state.waiting), weights)
            sets = together([state.sets, *samples], rules.rows)
            if rules.budget.pause_due():
                yield
            if (np.bincount(sets.domain, minlength=len(state.open))[state.open > 0] == 0).any():
                return None
            costs = noise(len(sets), variant, COSTS) / COSTS
            found = yield from fill_fractionally(sets, state.open, state.waiting, costs, rules.budget)
            if found is None:
                return None
            weights = None if found.feasible else found.weights
            if not found.feasible:
                self.hopeless |= not taken and not samples
                short += 1
                if not samples or short == MOST_SHORT:
                    return None
                continue
            state = rules.take(state, _whole(sets, found))
            if rules.settle(state) is False:
                return None
            if int(state.open.sum()) <= FEW_DOMAINS or not state.waiting.any():
                return state
        return None if weights is not None else state


def _whole(sets: GroupSets, found: FractionalFilling) -> list[Choice]:
    """The sets that a domain gets as a whole, the surest first; if there are none, the one with the largest share."""
    order = np.argsort(-found.shares, kind="stable")
    taken = order[: max(1, int(np.count_nonzero(found.shares >= WHOLE)))]
    return [(int(sets.domain[at]), sets.counts[at]) for at in taken.tolist()]
