"""From prices to a packing: which pattern each node takes, so that together they cover the need.

At the right prices most nodes have one dearest pattern and take it. The others, and some of which another pattern is
nearly as dear, are decided together: node after node, every pattern of it is added to every state kept so far. A state
is what is still needed; what it is worth at the prices tells how much was wasted on the way, and the states that wasted
least are kept. Everything here is computed in integers. A search that never had to drop a state, with every pattern
that the waste allows, has tried everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.patterns import PatternTable
from muster.scheduler.planning.prices import DEAREST, Prices

FEW_STATES = 16


# Nodes beside those that the fractional packing leaves open, and how many states are kept.
ATTEMPTS = ((0, FEW_STATES), (0, 512), (12, 512), (40, 512), (120, 512))


DECIDED_WELL = 40  # of the nodes that are decided together, the last: with all states


MOST_CHOICES = 12  # patterns of one node


NEARLY = 0.05  # what a share may lack of the whole and count as whole


PARTS = 64  # of a pod, in which targets are counted


@dataclass(slots=True, eq=False)
class _Layer:
    """The states after one node: which state each came from, and by which pattern."""

    parent: Ints
    pattern: Ints


class PatternSearch:
    """Chooses patterns for one need at given prices."""

    def __init__(self, patterns: PatternTable, need: Ints, prices: Prices, budget: Budget) -> None:
        self.patterns = patterns
        self.need = need
        self.weights = prices.weights
        self.shares = prices.shares
        self.budget = budget
        values = patterns.table @ prices.weights
        self.dearest = patterns.best(values)
        self.loss: Ints = self.dearest[patterns.class_of] - values
        self.second_loss = self._second_losses()
        self.lag_weights: Ints = np.maximum(self.weights, DEAREST // 8) * (need > 0)
        self.spare = int(self.dearest @ patterns.sizes) - int(need @ prices.weights)

    def run(self, *, thorough: bool = True) -> Pausing[Ints | None]:
        """How many nodes take each pattern, or None if that was not found."""
        patterns, (taken, loose) = self.patterns, self._rounded()
        whole = int(patterns.sizes.sum()) - int(loose.sum())  # nodes that could be opened
        tried: set[tuple[int, int]] = set()
        for more, states in ATTEMPTS if thorough else ATTEMPTS[:1]:
            if (min(more, whole), states) in tried:
                continue
            tried.add((min(more, whole), states))
            chosen = yield from self._decide(taken.copy(), loose, more, states)
            if chosen is not None or self.budget.exhausted:
                return chosen
        return None

    def _rounded(self) -> tuple[Ints, Ints]:
        """The whole part of the fractional packing, and how many nodes of each class it leaves open."""
        patterns = self.patterns
        taken = np.floor(self.shares * patterns.sizes[patterns.class_of] + NEARLY).astype(np.int64)
        used = np.add.reduceat(taken, patterns.starts)
        return taken, patterns.sizes - used

    def _decide(self, taken: Ints, loose: Ints, more: int, most: int) -> Pausing[Ints | None]:
        """Decide the open nodes together with so many others whose other patterns lose least."""
        patterns, loose = self.patterns, loose.copy()
        for at in self._most_flexible(taken, more):
            taken[at] -= 1
            loose[patterns.class_of[at]] += 1
        missing = np.maximum(self.need - taken @ patterns.table, 0)
        if not missing.any():
            return self._filled(taken, loose)
        if not loose.any():
            return None
        open_classes = np.repeat(np.arange(len(loose)), loose)
        order = np.argsort(-self.second_loss[open_classes], kind="stable")
        picked = yield from self._beam(missing, open_classes[order], most)
        if picked is None:
            return None
        np.add.at(taken, picked, 1)
        np.subtract.at(loose, patterns.class_of[picked], 1)
        return self._filled(taken, loose)

    def _filled(self, taken: Ints, loose: Ints) -> Ints:
        """Nodes that nothing is asked of any more take any pattern."""
        taken[self.patterns.starts] += loose
        return taken

    def _targets(self, missing: Ints, classes: Ints) -> Ints:
        """What should be missing after each node, if all went as in the fractional packing; in parts of `PARTS`."""
        patterns = self.patterns
        means = np.add.reduceat(self.shares[:, None] * patterns.table, patterns.starts)[classes]
        tails = np.cumsum(means[::-1], axis=0)[::-1]
        shares = np.vstack((tails[1:], np.zeros(len(missing)))) / np.maximum(tails[0], 1e-9)
        return np.rint(missing * shares * PARTS).astype(np.int64)

    def _second_losses(self) -> Ints:
        """Per class, what the least dear alternative loses."""
        patterns = self.patterns
        order = np.lexsort((self.loss, patterns.class_of))
        following = patterns.starts + 1
        ends = np.append(patterns.starts[1:], len(self.loss))
        found = np.full(patterns.classes, np.iinfo(np.int64).max)
        has = following < ends
        found[has] = self.loss[order[following[has]]]
        return found

    def _most_flexible(self, taken: Ints, more: int) -> Ints:
        """Patterns in use whose nodes lose least by taking another one, as often as nodes are to be opened."""
        if not more:
            return np.zeros(0, dtype=np.int64)
        used = np.flatnonzero(taken)
        used = used[np.argsort(self.second_loss[self.patterns.class_of[used]], kind="stable")][:more]
        return np.repeat(used, np.minimum(taken[used], 4))[:more]

    def _beam(self, missing: Ints, classes: Ints, most: int) -> Pausing[Ints | None]:
        """Patterns for some nodes, one each, that cover what is missing."""
        states, layers = missing[None, :], list[_Layer]()
        behind = np.concatenate((np.cumsum(self.dearest[classes][::-1])[::-1], [0]))
        targets = self._targets(missing, classes)
        for position, at in enumerate(classes.tolist()):
            if self.budget.pause_due():
                yield
            rows = self._choices(at)
            table = self.patterns.table[rows]
            if not self.budget.spend_cells(6 * len(states) * table.size):
                return None
            after = np.maximum(states[:, None, :] - table[None], 0).reshape(-1, states.shape[1])
            worth = after @ self.weights
            kept = np.flatnonzero(worth <= behind[position + 1])
            if not len(kept):
                return None
            lag = np.maximum(after[kept] * PARTS - targets[position], 0) @ self.lag_weights
            count = most if len(classes) - position <= DECIDED_WELL else FEW_STATES
            kept = kept[_distinct(after[kept], worth[kept], lag)[:count]]
            layers.append(_Layer(kept // len(rows), rows[kept % len(rows)]))
            states = after[kept]
            done = np.flatnonzero(~states.any(axis=1))
            if len(done):
                return _trace(layers, int(done[0]))
        return None

    def _choices(self, at: int) -> Ints:
        start = int(self.patterns.starts[at])
        loss = self.loss[start : start + len(self.patterns.of_class(at))]
        order = np.argsort(loss, kind="stable")[:MOST_CHOICES]
        return start + order[loss[order] <= self.spare] if self.spare > 0 else start + order


def _distinct(states: Ints, worth: Ints, lag: Ints) -> Ints:
    """One of each distinct state, those that lag least first."""
    order = np.lexsort((*states.T, worth, lag))
    ordered = states[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[fresh]


def _trace(layers: list[_Layer], at: int) -> Ints:
    """The patterns on the way to a state of the last layer."""
    found: list[int] = []
    for layer in reversed(layers):
        found.append(int(layer.pattern[at]))
        at = int(layer.parent[at])
    return np.array(found[::-1], dtype=np.int64)
