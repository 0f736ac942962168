"""Prices of item types: the dual of "each node takes one of its maximal patterns, and the needs are met".

With prices for the types, every node takes its dearest pattern; the prices under which all nodes together are worth the
least, relative to what is needed, are the dual solution. If they are worth less than the need, no packing exists, and
the prices are the certificate. Otherwise the dearest patterns are nearly a packing, and how often each pattern is
taken at these prices is the fractional packing that rounding starts from.

The function to minimise is the sum over the nodes of a maximum. It is smoothed (a maximum becomes a logarithm of a sum
of exponentials) and minimised by Newton's method while the smoothing goes to zero: a fixed number of small array
passes. Floating point only proposes: prices leave this module as integers, and whatever is decided with them is
computed in integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.pattern_columns import DenseColumns, Floats, PatternColumns
from muster.scheduler.planning.patterns import PatternTable

# A power of two, so that simple fractions are far from where rounding changes.
DEAREST = 1 << 17


FIRST_LEVEL, SELECTION_LEVEL, ROUNDING_LEVEL, LAST_LEVEL = 2, 6, 10, 16


LEVEL_STEP = 2  # each level has a quarter of the smoothing of the one before


MANY_PATTERNS = 8_000  # from so many on, a selection of them is enough for the first levels


REFUTED = 1.0 - 1e-4  # the worth of all nodes, of which 1 is needed: rounding the prices cannot hide that


MOST_NEWTON_STEPS = 10  # at one level


CLOSE_ENOUGH, ON_THE_WAY = 1e-3, 0.5  # what a step may still gain, relative to the smoothing


NEAR, FAR_BELOW = 10.0, 40.0  # patterns that lose so many times the smoothing have no share


PASSES_PER_STEP = 5  # over the table, roughly


STEP_COST = 1  # of one of Newton's steps beside its passes


MOST_HALVINGS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Integer prices, and the fractional packing: the share of its class that each pattern gets."""

    weights: Ints  # [type]
    shares: Floats  # [pattern]


class PriceSearch:
    """The way to the prices for a need, from level to level of smoothing."""

    def __init__(
        self, patterns: PatternTable, need: Ints, budget: Budget, columns: PatternColumns | None = None
    ) -> None:
        self.patterns = patterns
        self.need = need
        self.budget = budget
        self.wanted = np.flatnonzero(need > 0)
        self.columns = columns or DenseColumns(patterns.table[:, self.wanted] / need[self.wanted])
        self.shares: Floats = np.zeros(len(patterns.table))
        self._nodes = float(patterns.sizes.sum())
        self._level = FIRST_LEVEL
        self._least = np.inf
        self._point: Floats = np.full(len(self.wanted), 1.0 / max(1, len(self.wanted)))
        self._before: Floats = self._point
        self._many = len(patterns.table) > MANY_PATTERNS
        self._near: Ints = (
            _extreme(patterns, self.columns, len(self.wanted), budget)
            if self._many
            else np.arange(len(patterns.table), dtype=np.int64)
        )

    def run(self, last: int) -> Pausing[Prices | None]:
        """The prices after some level; None if nothing is needed or the budget ends."""
        if not len(self.wanted) or not len(self.shares):
            return None
        if self.budget.pause_due():
            yield
        while self._level <= last and self._least >= REFUTED:
            if not self._minimise():
                return None
            if self.budget.pause_due():
                yield
        prices = np.zeros(len(self.need))
        prices[self.wanted] = self._point / self.need[self.wanted]
        return Prices(rounded(prices), self.shares)

    def _minimise(self) -> bool:
        """One level; False if the budget ends."""
        patterns, level, columns = self.patterns, self._level, self.columns
        smoothing = 0.5**level / self._nodes
        problem = _Smoothed(patterns, self._near, columns.only(self._near), smoothing)
        close = CLOSE_ENOUGH if level in (ROUNDING_LEVEL, LAST_LEVEL) else ON_THE_WAY
        if not problem.minimise(self._start(), close, self.budget) or not self.budget.spend_cells(2 * columns.cells):
            return False
        values = columns.values(problem.point)
        dearest = patterns.best(values)
        loss = dearest[patterns.class_of] - values
        dear = loss <= NEAR * smoothing
        if level > SELECTION_LEVEL and np.count_nonzero(dear) > np.count_nonzero(dear[self._near]):
            self._near = np.arange(len(values))  # the point moved further than expected: this level again
            self._before = self._point
            return True
        worth = float(patterns.sizes @ dearest)
        if worth <= self._least or level < SELECTION_LEVEL:
            self._least, self._before, self._point = worth, self._point, problem.point
        if level == ROUNDING_LEVEL:
            self.shares[self._near] = problem.shares
        if not self._many or level >= SELECTION_LEVEL:
            self._near = np.flatnonzero(loss <= FAR_BELOW * smoothing)
        self._level += LEVEL_STEP
        return True

    def _start(self) -> Floats:
        """Further on by what is left of the way, which is nearly straight in the smoothing."""
        if self._level <= FIRST_LEVEL + LEVEL_STEP:
            return self._point
        ahead = np.maximum(self._point + (self._point - self._before) / (1 << LEVEL_STEP), self._point / 4)
        return ahead / ahead.sum()


def rounded(prices: Floats) -> Ints:
    """Prices as integers, the dearest of which is `DEAREST`."""
    return np.rint(prices * (DEAREST / prices.max())).astype(np.int64)


def _extreme(patterns: PatternTable, columns: PatternColumns, types: int, budget: Budget) -> Ints:
    """Of many patterns, those that are dearest in their class at some simple prices: enough to begin with."""
    units = np.eye(types)
    points = np.vstack((np.ones(types), units, 1 - units, *(units[at] + units[at + 1 :] for at in range(types - 1))))
    budget.spend_cells((columns.cells + 3 * len(patterns.table)) * len(points))
    extreme = np.zeros(len(patterns.table), dtype=bool)
    for point in points:
        values = columns.values(point)
        extreme |= values >= patterns.best(values)[patterns.class_of]
    return np.flatnonzero(extreme)


class _Smoothed:
    """The smoothed worth of all nodes on the simplex of prices, at one level of smoothing, and its minimum."""

    def __init__(self, patterns: PatternTable, near: Ints, columns: PatternColumns, smoothing: float) -> None:
        self.columns = columns  # of the patterns that are near the dearest
        self.class_of = patterns.class_of[near]
        self.starts = np.searchsorted(self.class_of, np.arange(patterns.classes))
        self.sizes = patterns.sizes.astype(np.float64)
        self.smoothing = smoothing
        self.point: Floats = np.zeros(0)
        self.shares: Floats = np.zeros(0)
        self.value = 0.0

    def minimise(self, point: Floats, close: float, budget: Budget) -> bool:
        """Newton's method from a point; False if the budget ends."""
        self._move_to(point)
        for _ in range(MOST_NEWTON_STEPS):
            if not budget.spend(STEP_COST) or not budget.spend_cells(self.columns.cells * PASSES_PER_STEP):
                return False
            if self._step() < close * self.smoothing:
                break
        return True

    def _evaluate(self, point: Floats) -> tuple[float, Floats]:
        """The value with its barrier, and the share of each pattern."""
        values = self.columns.values(point)
        dearest = np.maximum.reduceat(values, self.starts)
        shares = np.exp((values - dearest[self.class_of]) / self.smoothing)
        sums = np.add.reduceat(shares, self.starts)
        shares /= sums[self.class_of]
        barrier = self.smoothing * float(np.log(point).sum())
        return float(self.sizes @ (dearest + self.smoothing * np.log(sums))) - barrier, shares

    def _move_to(self, point: Floats) -> None:
        self.point = point
        self.value, self.shares = self._evaluate(point)

    def _step(self) -> float:
        """One damped step; how much the quadratic model promised."""
        point, smoothing = self.point, self.smoothing
        means = self.columns.means(self.shares, self.class_of, self.starts)
        taken = self.shares * self.sizes[self.class_of]
        gradient = self.sizes @ means - smoothing / point
        hessian = (self.columns.products(taken) - means.T @ (means * self.sizes[:, None])) / smoothing
        hessian.ravel()[:: len(point) + 1] += smoothing / point**2 + 1e-9
        direction = _descent(gradient, hessian)
        falling = direction < 0
        length = min(1.0, 0.9 * float((point[falling] / -direction[falling]).min(initial=np.inf)))
        slope = float(gradient @ direction)
        for _ in range(MOST_HALVINGS):
            there = point + length * direction
            value, shares = self._evaluate(there)
            if value <= self.value + 1e-4 * length * slope:
                self.point, self.value, self.shares = there / there.sum(), value, shares
                return -slope
            length /= 2
        return 0.0


def _descent(gradient: Floats, hessian: Floats) -> Floats:
    """Newton's direction among those that keep the sum of the point."""
    size = len(gradient)
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = hessian
    system[:size, size] = system[size, :size] = 1.0
    try:
        return np.asarray(np.linalg.solve(system, np.append(-gradient, 0.0))[:size], dtype=np.float64)
    except np.linalg.LinAlgError:
        return gradient.mean() - gradient
