"""Exact answers to a packing instance: bounds first, then a complete search (pattern formulation of bin packing).

Equal nodes form a class. A pattern is a maximal set of pods that one node of a class can take; every packing is
covered by a choice of one pattern per node. Two things follow:

- For any weights of the item types, the pods that fit weigh at most as much as the best patterns of all nodes
  together. Weights for which the needed pods weigh more are a dual certificate of infeasibility.
- Trying, class by class, every number of nodes for every pattern is a complete search. Failed states are remembered,
  and a state that needs no less than a failed one fails too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.first_fit import finish
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.packing_instance import PackingInstance

Floats = NDArray[np.float64]

# A step is about 40 microseconds of work: so many patterns are generated, or classes evaluated, in one.
PATTERNS_PER_STEP = 8


CLASSES_PER_STEP = 8


SEARCH_COST = 2  # steps for one state of the complete search


MAX_PATTERNS = 4000


MAX_DEPTH = 200


ROUNDS = 60  # of the weight update


WARM_UP = 20  # rounds whose patterns are not averaged into the fractional packing


KEPT_PARTS = (1.0, 0.8, 0.5)  # of the fractional packing that rounding starts from


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


Answer = NDArray[np.int64] | DualCertificate | Exhausted | BudgetSpent


Counts = tuple[int, ...]  # of each type, still to be covered


State = tuple[int, int, int]  # class, first pattern that may be used, nodes left in the class


Bound = tuple[tuple[int, ...], list[int], list[int]]  # weights, best of each class, sum over this class and later ones


def decide(instance: PackingInstance, budget: Budget) -> Pausing[Answer]:
    """Counts per type and node; or a dual certificate; or the record of a complete search; or that the budget ended."""
    before = budget.spent
    classes, member_of, sizes = _classes(instance)
    patterns = _patterns(instance, classes, budget)
    if patterns is None:
        certificate = _coarse(instance)
        return certificate or BudgetSpent()
    cover = _Cover(instance, patterns, sizes, budget)
    certificate = cover.certificate()
    if certificate is not None:
        return certificate
    rounded = cover.round(member_of)
    if rounded is not None:
        return rounded
    found = yield from cover.search(0, 0, int(sizes[0]) if len(sizes) else 0, tuple(instance.counts), 0)
    if found:
        return cover.placement(member_of)
    return BudgetSpent() if cover.gave_up else Exhausted(len(sizes), budget.spent - before)


def _classes(instance: PackingInstance) -> tuple[Ints, Ints, Ints]:
    """One representative node per class, the class of each node, and the size of each class."""
    columns = np.vstack((instance.free, instance.fits.astype(np.int64)))
    order = np.lexsort(columns[::-1])
    ordered = columns[:, order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    member_of = np.zeros(len(order), dtype=np.int64)
    member_of[order] = np.cumsum(fresh) - 1
    return order[fresh], member_of, np.bincount(member_of)


def _patterns(instance: PackingInstance, classes: Ints, budget: Budget) -> list[Ints] | None:
    """The maximal patterns of every class, or None when there are too many."""
    requests = [tuple(int(v) for v in row) for row in instance.requests]
    limits = instance.counts
    found: list[Ints] = []
    total = 0
    for node in classes:
        free = [int(v) for v in instance.free[:, node]]
        usable = [at for at in range(instance.types) if instance.fits[at, node]]
        usable.sort(key=lambda at: -sum(requests[at]))
        generator = _PatternGenerator(requests, limits, usable, instance.types)
        generator.fill(0, free, [0] * instance.types)
        if generator.overflow:
            return None
        total += len(generator.found)
        if not budget.spend(1 + len(generator.found) // PATTERNS_PER_STEP) or total > MAX_PATTERNS:
            return None
        found.append(np.array(generator.found, dtype=np.int64).reshape(len(generator.found), instance.types))
    return found


class _PatternGenerator:
    """Generates the maximal patterns of one node."""

    def __init__(self, requests: list[tuple[int, ...]], limits: list[int], usable: list[int], types: int) -> None:
        self.requests, self.limits, self.usable, self.types = requests, limits, usable, types
        self.found: list[tuple[int, ...]] = []
        self.visits = 0
        self.overflow = False

    def fill(self, position: int, free: list[int], pattern: list[int]) -> None:
        """Extend a pattern by every count of the types from `position` on."""
        self.visits += 1
        if self.visits > MAX_PATTERNS:
            self.overflow = True
        if self.overflow:
            return
        if position == len(self.usable):
            if not self._can_grow(free, pattern):
                self.found.append(tuple(pattern))
            return
        at = self.usable[position]
        most = self._most(at, free)
        # The last type takes all it can: fewer would not be maximal.
        least = most if position == len(self.usable) - 1 else 0
        request = self.requests[at]
        for count in range(most, least - 1, -1):
            pattern[at] = count
            self.fill(position + 1, [f - count * r for f, r in zip(free, request, strict=True)], pattern)
        pattern[at] = 0

    def _most(self, at: int, free: list[int]) -> int:
        most = self.limits[at]
        for have, take in zip(free, self.requests[at], strict=True):
            if take:
                most = min(most, have // take)
        return max(most, 0)

    def _can_grow(self, free: list[int], pattern: list[int]) -> bool:
        return any(pattern[at] < self.limits[at] and self._most(at, free) > 0 for at in self.usable)


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
    patterns: list[Ints]
    sizes: Ints
    budget: Budget
    gave_up: bool = False
    chosen: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # class, pattern, nodes
    failed: dict[State, list[Counts]] = field(default_factory=dict[State, list[Counts]])
    bounds: list[Bound] = field(default_factory=list[Bound])
    usage: list[Floats] = field(default_factory=list[Floats])  # nodes per pattern, averaged over the rounds

    def certificate(self) -> DualCertificate | None:
        """Weights under which the need weighs more than the nodes hold, if any are found."""
        instance = self.instance
        types = instance.types
        candidates = [tuple(int(at == other) for other in range(types)) for at in range(types)]
        candidates += [tuple(int(v) for v in instance.requests[:, row]) for row in range(instance.free.shape[0])]
        for weights in candidates:
            certificate = self._weigh(weights)
            if certificate is not None:
                return certificate
        return self._update_weights()

    def _weigh(self, weights: tuple[int, ...]) -> DualCertificate | None:
        best = [int((found @ np.array(weights, dtype=np.int64)).max(initial=0)) for found in self.patterns]
        suffix = [0]
        for value, size in zip(reversed(best), reversed(self.sizes.tolist()), strict=True):
            suffix.append(suffix[-1] + value * size)
        suffix.reverse()
        required = weight_of_need(self.instance, weights, self.instance.counts)
        if suffix[0] < required:
            return DualCertificate(weights, suffix[0], required)
        self.bounds.append((weights, best, suffix))
        return None

    def _update_weights(self) -> DualCertificate | None:
        """Multiplicative weights: raise the weight of what the best patterns leave uncovered, and evaluate again."""
        instance = self.instance
        if not self.patterns or instance.types < 2:
            return None
        stacked = np.vstack(self.patterns)
        starts = np.concatenate(([0], np.cumsum([len(found) for found in self.patterns])[:-1]))
        need = np.maximum(np.asarray(instance.preferred, dtype=np.float64), 0.5)
        weights = 1.0 / need
        self.usage = [np.zeros(len(found)) for found in self.patterns]
        tightest, kept = np.inf, None
        for turn in range(ROUNDS):
            if not self.budget.spend(1 + len(self.patterns) // CLASSES_PER_STEP):
                return None
            values = stacked @ weights
            best = np.maximum.reduceat(values, starts)
            ratio = float(best @ self.sizes) / float(weights @ need)
            if ratio < tightest:
                tightest, kept = ratio, weights
            cover = np.zeros(instance.types)
            for at, (start, found) in enumerate(zip(starts, self.patterns, strict=True)):
                best_here = int(np.argmax(values[start : start + len(found)]))
                cover += self.sizes[at] * found[best_here]
                if turn >= WARM_UP:
                    self.usage[at][best_here] += self.sizes[at] / (ROUNDS - WARM_UP)
            weights = weights * np.exp((1.0 - cover / need).clip(-2, 1) * (2.0 / (2 + turn)))
            weights /= weights.max()
        scaled = tuple(round(float(w) * 100_000) for w in kept / kept.max()) if kept is not None else ()
        return self._weigh(scaled) if scaled else None

    def round(self, member_of: Ints) -> Ints | None:
        """Round the fractional packing: keep the whole parts and place the rest by first fit."""
        for keep in KEPT_PARTS if self.usage else ():
            if self.budget.exhausted:
                return None
            self.chosen = []
            for at, used in enumerate(self.usage):
                whole = np.floor(used * keep + 1e-9).astype(np.int64)
                self.chosen += [(at, int(index), int(whole[index])) for index in np.flatnonzero(whole)]
            start = self.placement(member_of)
            self.chosen = []
            placed = finish(self.instance, start, self.instance.counts, self.budget)
            if placed is not None:
                return placed
        return None

    def search(self, at: int, first: int, left: int, counts: tuple[int, ...], depth: int) -> Pausing[bool]:
        """Whether the nodes from this one on can cover the counts; patterns before `first` are not used again."""
        if self._done(counts):
            return True
        while left == 0 and at + 1 < len(self.patterns):
            at, first = at + 1, 0
            left = int(self.sizes[at])
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
        found: list[list[int]] = self.patterns[at].tolist()
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

    def placement(self, member_of: Ints) -> Ints:
        """From chosen patterns to counts per type and node, cut down to what is needed."""
        instance = self.instance
        placed = np.zeros((instance.types, len(instance.nodes)), dtype=np.int64)
        left = list(instance.counts)
        missing = list(instance.needs)
        queues = {at: list(np.flatnonzero(member_of == at)) for at in {entry[0] for entry in self.chosen}}
        for at, index, nodes in self.chosen:
            pattern = self.patterns[at][index].tolist()
            for _ in range(nodes):
                node = queues[at].pop()
                for kind, amount in enumerate(pattern):
                    owner = instance.owner[kind]
                    count = min(amount, left[kind], missing[owner] if owner >= 0 else amount)
                    placed[kind, node] = count
                    left[kind] -= count
                    if owner >= 0:
                        missing[owner] -= count
        return placed
