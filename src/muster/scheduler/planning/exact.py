"""Exact answers to a packing instance: prices first, then a complete search (pattern formulation of bin packing).

Equal nodes form a class. A pattern is a maximal set of pods that one node of a class can take; every packing is
covered by a choice of one pattern per node. Three things follow:

- For any weights of the item types, the pods that fit weigh at most as much as the best patterns of all nodes
  together. Weights for which the needed pods weigh more are a dual certificate of infeasibility. `prices` finds them.
- At the same prices most nodes have one best pattern; `pattern_search` decides the others together.
- Trying, class by class, every number of nodes for every pattern is a complete search. Failed states are remembered,
  and a state that needs no less than a failed one fails too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.packing_instance import PackingInstance
from muster.scheduler.planning.pattern_search import PatternSearch
from muster.scheduler.planning.patterns import PatternTable, pattern_table
from muster.scheduler.planning.prices import LAST_LEVEL, ROUNDING_LEVEL, PriceSearch

SEARCH_COST = 2  # steps for one state of the complete search, which are about 40 microseconds of work each


FEW_OPTIONS = (3, 2)  # numbers of each type that are tried where there are too many patterns


MAX_DEPTH = 200


MOST_REMEMBERED = 64  # failed states for one class, pattern and number of nodes


@dataclass(frozen=True, slots=True)
class DualCertificate:
    """Weights per item type under which the needed pods weigh `required` and the nodes hold at most `available`."""

    weights: tuple[int, ...]
    available: int
    required: int


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The complete search found nothing."""

    classes: int
    steps: int


@dataclass(slots=True)
class BudgetSpent:
    """The budget, or the limit on patterns, was reached first."""


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """An instance that prices do not refute."""

    instance: PackingInstance
    patterns: PatternTable
    weights: Ints


Answer = NDArray[np.int64] | DualCertificate | Exhausted | BudgetSpent


Counts = tuple[int, ...]  # of each type, still to be covered


State = tuple[int, int, int]  # class, first pattern that may be used, nodes left in the class


Bound = tuple[tuple[int, ...], list[int], list[int]]  # weights, best of each class, sum over this class and later ones


def decide(instance: PackingInstance, budget: Budget) -> Pausing[Answer]:
    """Counts per type and node; or a dual certificate; or the record of a complete search; or that the budget ended."""
    before = budget.spent
    patterns = yield from pattern_table(instance, budget)
    if patterns is None:
        certificate = _coarse(instance)
        if certificate is not None:
            return certificate
        found = yield from _with_some_patterns(instance, budget)
        return BudgetSpent() if found is None else found
    cover = _Cover(instance, patterns, budget)
    certificate = cover.certificate()
    if certificate is not None:
        return certificate
    if budget.pause_due():
        yield
    need = np.asarray(instance.preferred, dtype=np.int64)  # where a PodGroup may choose, those that it prefers
    answer = yield from _by_prices(cover, PriceSearch(patterns, need, budget))
    if answer is not None:
        return answer
    found = yield from cover.search(0, 0, int(patterns.sizes[0]) if patterns.classes else 0, tuple(instance.counts), 0)
    if found:
        return cover.placement(cover.taken())
    return BudgetSpent() if cover.gave_up else Exhausted(patterns.classes, budget.spent - before)


def _by_prices(cover: _Cover, search: PriceSearch) -> Pausing[Ints | DualCertificate | None]:
    """A packing, or a certificate, from prices: first from rough ones, which are enough where there is room."""
    for last, thorough in ((ROUNDING_LEVEL, False), (LAST_LEVEL, True)):
        prices = yield from search.run(last)
        if prices is None:
            return None
        certificate = cover.weigh(prices.weights)
        if certificate is not None:
            return certificate
        taken = yield from PatternSearch(cover.patterns, search.need, prices, cover.budget).run(thorough=thorough)
        if taken is not None:
            return cover.placement(taken)
    return None


def _with_some_patterns(instance: PackingInstance, budget: Budget) -> Pausing[Ints | None]:
    """A packing in some of too many patterns; that there is none proves nothing."""
    need = np.asarray(instance.preferred, dtype=np.int64)
    for options in FEW_OPTIONS:
        patterns = yield from pattern_table(instance, budget, options)
        if budget.pause_due():
            yield
        prices = None
        if patterns is not None:
            prices = yield from PriceSearch(patterns, need, budget).run(ROUNDING_LEVEL)
        if patterns is None or prices is None:
            continue
        taken = yield from PatternSearch(patterns, need, prices, budget).run()
        if taken is not None:
            return _Cover(instance, patterns, budget).placement(taken)
    return None


def relax(instance: PackingInstance, budget: Budget) -> Pausing[Relaxed | DualCertificate | None]:
    """The patterns and prices of an instance, or the certificate that they are; nothing is packed."""
    patterns = yield from pattern_table(instance, budget)
    if patterns is None:
        return _coarse(instance)
    cover = _Cover(instance, patterns, budget)
    certificate = cover.certificate()
    if certificate is not None:
        return certificate
    if budget.pause_due():
        yield
    prices = yield from PriceSearch(patterns, np.asarray(instance.preferred, dtype=np.int64), budget).run(LAST_LEVEL)
    if prices is None:
        return None
    return cover.weigh(prices.weights) or Relaxed(instance, patterns, prices.weights)


def _coarse(instance: PackingInstance) -> DualCertificate | None:
    """Certificates that need no patterns: each type alone, and each resource as a sum."""
    seats = np.array(
        [instance.seats(instance.free, at).clip(max=instance.counts[at]).sum() for at in range(instance.types)]
    )
    for at in range(instance.types):
        if instance.owner[at] < 0 and seats[at] < instance.counts[at]:
            weights = tuple(int(other == at) for other in range(instance.types))
            return DualCertificate(weights, int(seats[at]), instance.counts[at])
    for row in range(instance.free.shape[0]):
        weights = tuple(int(v) for v in instance.requests[:, row])
        available = int(instance.free[row].sum())
        required = weight_of_need(instance, weights, instance.counts)
        if available < required:
            return DualCertificate(weights, available, required)
    return None


def weight_of_need(instance: PackingInstance, weights: tuple[int, ...], counts: list[int] | tuple[int, ...]) -> int:
    """The least weight of what is still needed; a PodGroup that may choose counts with its lightest pods."""
    total = sum(w * c for w, c, owner in zip(weights, counts, instance.owner, strict=True) if owner < 0)
    for chooser, need in enumerate(instance.needs):
        types = [at for at, owner in enumerate(instance.owner) if owner == chooser]
        missing = need - sum(instance.counts[at] - counts[at] for at in types)
        for at in sorted(types, key=lambda at: weights[at]):
            count = min(max(missing, 0), counts[at])
            total += weights[at] * count
            missing -= count
    return total


@dataclass(slots=True)
class _Cover:
    """The covering problem: how many nodes of each class take which pattern, so that together they cover the need."""

    instance: PackingInstance
    patterns: PatternTable
    budget: Budget
    gave_up: bool = False
    chosen: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # class, pattern, nodes
    failed: dict[State, list[Counts]] = field(default_factory=dict[State, list[Counts]])
    bounds: list[Bound] = field(default_factory=list[Bound])

    def certificate(self) -> DualCertificate | None:
        """Simple weights under which the need weighs more than the nodes hold: each type alone, each resource."""
        types = self.instance.types
        for weights in np.vstack((np.eye(types, dtype=np.int64), self.instance.requests.T)):
            certificate = self.weigh(weights)
            if certificate is not None:
                return certificate
        return None

    def weigh(self, weights: Ints) -> DualCertificate | None:
        """The certificate that weights are; else they are one more bound for the complete search."""
        self.budget.spend_cells(3 * self.patterns.cells)
        best: list[int] = self.patterns.best(self.patterns.table @ weights).tolist()
        sizes: list[int] = self.patterns.sizes.tolist()
        # Amounts of thousands of nodes can exceed 64 bits together.
        suffix = list(
            accumulate((value * size for value, size in zip(best[::-1], sizes[::-1], strict=True)), initial=0)
        )
        suffix.reverse()
        plain = tuple(int(weight) for weight in weights)
        required = weight_of_need(self.instance, plain, self.instance.counts)
        if suffix[0] < required:
            return DualCertificate(plain, suffix[0], required)
        self.bounds.append((plain, best, suffix))
        return None

    def search(self, at: int, first: int, left: int, counts: tuple[int, ...], depth: int) -> Pausing[bool]:
        """Whether the nodes from this one on can cover the counts; patterns before `first` are not used again."""
        if self._done(counts):
            return True
        while left == 0 and at + 1 < self.patterns.classes:
            at, first = at + 1, 0
            left = int(self.patterns.sizes[at])
        if left == 0 or self.gave_up:
            return False
        if depth > MAX_DEPTH or not self.budget.spend(SEARCH_COST):
            self.gave_up = True
            return False
        if self.budget.pause_due():
            yield
        known = self.failed.setdefault((at, first, left), [])
        if any(all(f <= c for f, c in zip(old, counts, strict=True)) for old in known):
            return False
        if self._too_heavy(at, left, counts):
            return False
        found = yield from self._branch(at, first, left, counts, depth)
        if found:
            return True
        if not self.gave_up and len(known) < MOST_REMEMBERED:
            known.append(counts)
        return False

    def _branch(self, at: int, first: int, left: int, counts: tuple[int, ...], depth: int) -> Pausing[bool]:
        """Every next pattern and every number of nodes for it, the most first; the last pattern takes the rest."""
        found: list[list[int]] = self.patterns.of_class(at).tolist()
        for index in range(first, len(found)):
            pattern, last = found[index], index == len(found) - 1
            useful = max((-(-have // take) for have, take in zip(counts, pattern, strict=True) if take), default=0)
            most = left if last else min(left, useful)
            for nodes in range(most, most - 1 if last else 0, -1):
                rest = tuple(max(0, have - nodes * take) for have, take in zip(counts, pattern, strict=True))
                self.chosen.append((at, index, nodes))
                covered = yield from self.search(at, index + 1, 0 if last else left - nodes, rest, depth + 1)
                if covered:
                    return True
                self.chosen.pop()
                if self.gave_up:
                    return False
        return False

    def _done(self, counts: tuple[int, ...]) -> bool:
        instance = self.instance
        spare = [-need for need in instance.needs]
        for at, (left, owner) in enumerate(zip(counts, instance.owner, strict=True)):
            if owner < 0:
                if left:
                    return False
            else:
                spare[owner] += instance.counts[at] - left
        return all(value >= 0 for value in spare)

    def _too_heavy(self, at: int, left: int, counts: tuple[int, ...]) -> bool:
        for weights, best, suffix in self.bounds:
            if left * best[at] + suffix[at + 1] < weight_of_need(self.instance, weights, counts):
                return True
        return False

    def taken(self) -> Ints:
        """How many nodes take each pattern, as chosen by the complete search; the first pattern where it chose none."""
        found = np.zeros(len(self.patterns.table), dtype=np.int64)
        for at, index, nodes in self.chosen:
            found[int(self.patterns.starts[at]) + index] += nodes
        idle = self.patterns.sizes - np.add.reduceat(found, self.patterns.starts)
        found[self.patterns.starts] += idle
        return found

    def placement(self, taken: Ints) -> Ints:
        """From patterns to counts per type and node, cut down to what is needed."""
        instance, patterns = self.instance, self.patterns
        in_classes = np.argsort(patterns.member_of, kind="stable")
        pattern_of = np.empty(len(instance.nodes), dtype=np.int64)
        pattern_of[in_classes] = np.repeat(np.arange(len(taken)), taken)
        placed = np.ascontiguousarray(patterns.table[pattern_of].T)
        missing = list(instance.needs)
        for at, owner in enumerate(instance.owner):
            wanted = instance.counts[at] if owner < 0 else min(instance.counts[at], missing[owner])
            before = np.cumsum(placed[at]) - placed[at]
            placed[at] = np.clip(wanted - before, 0, placed[at])
            if owner >= 0:
                missing[owner] -= int(placed[at].sum())
        return placed
