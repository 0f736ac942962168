"""Fractional filling: how often each domain takes each of its sets so that every group is covered once, at least cost.

Costs pick one of the many fractional fillings, and one at a corner, where most domains take a single set whole; that is
what makes it worth following. The dual is the sum, over the domains, of what their dearest set is worth beyond its
cost, less what the groups are worth. It is smoothed and minimised by Newton's method, as in `prices`, while the
smoothing goes to zero; the share of each set at the last level is the fractional filling. Floating point only proposes:
a set that is followed is checked in integers, and nothing is proven here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.group_sets import GroupSets
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.pattern_columns import Floats, SparseColumns
from muster.scheduler.planning.prices import DEAREST

LEVELS = (0, 2, 4, 6, 8, 10)  # powers of one half: the smoothing, relative to the highest cost


SURE_LEVEL = 4  # from which on what is not covered shows that there is no fractional filling


MOST_NEWTON_STEPS = 12  # at one level


CLOSE_ENOUGH = 1e-3  # what a step may still gain, relative to the smoothing


FAR_BELOW = 120.0  # sets that lose so many times the smoothing have no share


MOST_HALVINGS = 12


MOST_ERROR = 0.1  # groups that are covered too often or too rarely; more means that there is no fractional filling


RIDGE = 1e-6  # added to the curvature, so that it is one in every direction


PASSES_PER_STEP = 3  # over the members of all sets, roughly


STEP_COST = 4  # of one of Newton's steps beside its passes


NO_SHARE = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class FractionalFilling:
    """The share of its domains that each set gets; or, if the sets do not suffice, prices at which that shows."""

    feasible: bool
    shares: Floats  # [set]
    weights: Ints  # [kind of group]


def fill_fractionally(
    sets: GroupSets, domains: Ints, waiting: Ints, costs: Floats, budget: Budget
) -> Pausing[FractionalFilling | None]:
    """The fractional filling of least cost, each of which is between 0 and 1; None if the budget ends.

    Every open kind of domain must have a set.
    """
    if not budget.spend_cells(4 * sets.counts.size):
        return None
    kinds = np.flatnonzero(waiting > 0)
    search = _Smoothed(sets, domains, waiting[kinds], kinds, costs)
    for level in LEVELS:
        if not search.minimise(0.5**level, budget):
            return None
        if budget.pause_due():
            yield
        if not search.bounded or (level >= SURE_LEVEL and search.error > MOST_ERROR):
            break
    weights = np.zeros(len(waiting), dtype=np.int64)
    weights[kinds] = np.rint(search.point * (DEAREST / max(1e-12, float(np.abs(search.point).max()))))
    return FractionalFilling(search.bounded and search.error <= MOST_ERROR, search.all_shares(), weights)


class _Smoothed:
    """The smoothed dual at one point, with the sets that are near the dearest of their domain."""

    def __init__(self, sets: GroupSets, domains: Ints, need: Ints, kinds: Ints, costs: Floats) -> None:
        open_kinds = np.flatnonzero(domains > 0)
        self.need = need.astype(np.float64)
        self.sizes = domains[open_kinds].astype(np.float64)
        self.columns = SparseColumns.of(
            np.ascontiguousarray(sets.counts[:, kinds]), np.ones(len(kinds), dtype=np.int64)
        )
        self.class_of = np.searchsorted(open_kinds, sets.domain)
        self.costs = costs
        self.point: Floats = np.zeros(len(kinds))
        self.value, self.error, self.bounded = 0.0, 0.0, True
        self.shares: Floats = np.zeros(0)
        # No filling costs more than one for each domain, and none costs less than the dual says.
        self._least = -float(self.sizes.sum()) - 1.0
        self._select(np.arange(len(sets)))

    def _select(self, near: Ints) -> None:
        self._near = near
        self._columns = self.columns.only(near)
        self._class_of = self.class_of[near]
        self._starts = np.searchsorted(self._class_of, np.arange(len(self.sizes)))
        self._costs = self.costs[near]

    def all_shares(self) -> Floats:
        found = np.zeros(len(self.costs))
        found[self._near] = self.shares
        return found

    def minimise(self, smoothing: float, budget: Budget) -> bool:
        """One level of smoothing, from the point of the one before; False if the budget ends."""
        if not self._look_at_all(smoothing, budget):
            return False
        for _ in range(MOST_NEWTON_STEPS):
            if not budget.spend(STEP_COST) or not budget.spend_cells(self._columns.cells * PASSES_PER_STEP):
                return False
            if self._step(smoothing) < CLOSE_ENOUGH * smoothing:
                break
            if self.value < self._least:
                # The sets that are far from the dearest do not count: they may be near by now.
                if not self._look_at_all(smoothing, budget):
                    return False
                if self.value < self._least:
                    self.bounded = False
                    break
        return True

    def _look_at_all(self, smoothing: float, budget: Budget) -> bool:
        """Select anew which sets are near the dearest; False if the budget ends."""
        if not budget.spend_cells(2 * self.columns.members.size):
            return False
        worth = self.columns.values(self.point) - self.costs
        dearest = np.maximum.reduceat(worth, np.searchsorted(self.class_of, np.arange(len(self.sizes))))
        self._select(np.flatnonzero(dearest[self.class_of] - worth <= FAR_BELOW * smoothing))
        self.value, self.shares = self._evaluate(self.point, smoothing)
        return True

    def _evaluate(self, point: Floats, smoothing: float) -> tuple[float, Floats]:
        worth = self._columns.values(point) - self._costs
        dearest = np.maximum.reduceat(worth, self._starts)
        shares = np.exp((worth - dearest[self._class_of]) / smoothing)
        sums = np.add.reduceat(shares, self._starts)
        shares /= sums[self._class_of]
        return float(self.sizes @ (dearest + smoothing * np.log(sums)) - self.need @ point), shares

    def _step(self, smoothing: float) -> float:
        """One damped step; how much the quadratic model promised."""
        means = self._columns.means(self.shares, self._class_of, self._starts)
        gradient = self.sizes @ means - self.need
        self.error = float(np.abs(gradient).max())
        some = np.flatnonzero(self.shares > NO_SHARE)
        products = self._columns.only(some).products(self.shares[some] * self.sizes[self._class_of[some]])
        hessian = (products - means.T @ (means * self.sizes[:, None])) / smoothing
        hessian.ravel()[:: len(gradient) + 1] += RIDGE / smoothing
        direction = np.linalg.solve(hessian, -gradient)
        slope = float(gradient @ direction)
        length = 1.0
        for _ in range(MOST_HALVINGS):
            there = self.point + length * direction
            value, shares = self._evaluate(there, smoothing)
            if value <= self.value + 1e-4 * length * slope:
                self.point, self.value, self.shares = there, value, shares
                return -slope
            length /= 2
        return 0.0
