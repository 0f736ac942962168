"""Exact answers to a packing question: counting first, then every distinct way.

Nodes that are alike form a class. A pattern is a largest set of pods that one node of a class can
take; every packing is covered by a choice of one pattern per node. Two things follow:

- For any weights of the types, the demand weighs at most as much as the best patterns of all nodes
  together. Weights for which it weighs more are a certificate of infeasibility.
- Trying, class by class, every number of nodes for every pattern is a complete search. States that
  failed are remembered, and one that asks for no less than a failed one fails too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.verdict import Budget
from muster.scheduler.planning.first_fit import finish
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.packing_instance import PackingInstance

PATTERNS_PER_STEP = 8


CLASSES_PER_STEP = 8


SEARCH_COST = 2


MAX_PATTERNS = 4000


MAX_DEPTH = 200


ROUNDS = 60


WARM_UP = 20


KEPT_PARTS = (1.0, 0.8, 0.5)


MEMORY = 64


@dataclass(frozen=True, slots=True)
class DualCertificate:
    """A certificate: the demand weighs `required`, the nodes hold at most `available`."""

    weights: tuple[int, ...]
    available: int
    required: int


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing was left to try."""

    classes: int
    steps: int


@dataclass(slots=True)
class BudgetSpent:
    """The budget, or the number of patterns, ended first."""


Answer = NDArray[np.int64] | DualCertificate | Exhausted | BudgetSpent


def decide(question: PackingInstance, budget: Budget) -> Answer:
    """Counts per type and node; or a certificate; or the record of a complete search; or nothing."""
    before = budget.spent
    classes, member_of, sizes = _classes(question)
    patterns = _patterns(question, classes, budget)
    if patterns is None:
        weighed = _coarse(question)
        return weighed or BudgetSpent()
    cover = _Cover(question, patterns, sizes, budget)
    weighed = cover.certificate()
    if weighed is not None:
        return weighed
    rounded = cover.round(member_of)
    if rounded is not None:
        return rounded
    if cover.search(0, 0, int(sizes[0]) if len(sizes) else 0, tuple(question.counts), 0):
        return cover.placement(member_of)
    return BudgetSpent() if cover.gave_up else Exhausted(len(sizes), budget.spent - before)


def _classes(question: PackingInstance) -> tuple[Ints, Ints, Ints]:
    """One representative node per class, the class of each node, and the size of each class."""
    columns = np.vstack((question.free, question.fits.astype(np.int64)))
    order = np.lexsort(columns[::-1])
    ordered = columns[:, order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    member_of = np.zeros(len(order), dtype=np.int64)
    member_of[order] = np.cumsum(fresh) - 1
    return order[fresh], member_of, np.bincount(member_of)


def _patterns(question: PackingInstance, classes: Ints, budget: Budget) -> list[Ints] | None:
    """The maximal patterns of every class, or None when there are too many."""
    requests = [tuple(int(v) for v in row) for row in question.requests]
    limits = question.counts
    found: list[Ints] = []
    total = 0
    for node in classes:
        free = [int(v) for v in question.free[:, node]]
        usable = [at for at in range(question.types) if question.fits[at, node]]
        usable.sort(key=lambda at: -sum(requests[at]))
        maker = _PatternMaker(requests, limits, usable, question.types)
        maker.fill(0, free, [0] * question.types)
        if maker.overflow:
            return None
        total += len(maker.found)
        if not budget.spend(1 + len(maker.found) // PATTERNS_PER_STEP) or total > MAX_PATTERNS:
            return None
        found.append(np.array(maker.found, dtype=np.int64).reshape(len(maker.found), question.types))
    return found


class _PatternMaker:
    def __init__(self, requests: list[tuple[int, ...]], limits: list[int], usable: list[int], types: int) -> None:
        self.requests, self.limits, self.usable, self.types = requests, limits, usable, types
        self.found: list[tuple[int, ...]] = []
        self.visits = 0
        self.overflow = False

    def fill(self, position: int, free: list[int], pattern: list[int]) -> None:
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


def _coarse(question: PackingInstance) -> DualCertificate | None:
    """Certificates that need no patterns: each type alone, and each resource as a sum."""
    seats = np.array(
        [question.seats(question.free, at).clip(max=question.counts[at]).sum() for at in range(question.types)]
    )
    for at in range(question.types):
        if question.owner[at] < 0 and seats[at] < question.counts[at]:
            weights = tuple(int(other == at) for other in range(question.types))
            return DualCertificate(weights, int(seats[at]), question.counts[at])
    for row in range(question.free.shape[0]):
        weights = tuple(int(v) for v in question.requests[:, row])
        available = int(question.free[row].sum())
        required = weight_of_need(question, weights, question.counts)
        if available < required:
            return DualCertificate(weights, available, required)
    return None


def weight_of_need(question: PackingInstance, weights: tuple[int, ...], counts: list[int] | tuple[int, ...]) -> int:
    """The least that what is still needed can weigh; a load that may choose takes its lightest members."""
    total = sum(w * c for w, c, owner in zip(weights, counts, question.owner, strict=True) if owner < 0)
    for load, need in enumerate(question.needs):
        types = [at for at, owner in enumerate(question.owner) if owner == load]
        missing = need - sum(question.counts[at] - counts[at] for at in types)
        for at in sorted(types, key=lambda at: weights[at]):
            took = min(max(missing, 0), counts[at])
            total += weights[at] * took
            missing -= took
    return total


@dataclass(slots=True)
class _Cover:
    """Choose how many nodes of each class take which pattern, so that the patterns cover the need."""

    question: PackingInstance
    patterns: list[Ints]
    sizes: Ints
    budget: Budget
    gave_up: bool = False
    chosen: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])  # class, pattern, nodes
    failed: dict[tuple[int, int, int], list[tuple[int, ...]]] = field(
        default_factory=dict[tuple[int, int, int], list[tuple[int, ...]]]
    )
    bounds: list[tuple[tuple[int, ...], list[int], list[int]]] = field(
        default_factory=list[tuple[tuple[int, ...], list[int], list[int]]]
    )
    usage: list[NDArray[np.float64]] = field(
        default_factory=list[NDArray[np.float64]]
    )  # how often the rounds chose each pattern

    def certificate(self) -> DualCertificate | None:
        """Weights under which the need weighs more than the nodes hold, if the rounds find some."""
        question = self.question
        types = question.types
        candidates = [tuple(int(at == other) for other in range(types)) for at in range(types)]
        candidates += [tuple(int(v) for v in question.requests[:, row]) for row in range(question.free.shape[0])]
        for weights in candidates:
            weighed = self._weigh(weights)
            if weighed is not None:
                return weighed
        return self._rounds()

    def _weigh(self, weights: tuple[int, ...]) -> DualCertificate | None:
        best = [int((found @ np.array(weights, dtype=np.int64)).max(initial=0)) for found in self.patterns]
        suffix = [0]
        for value, size in zip(reversed(best), reversed(self.sizes.tolist()), strict=True):
            suffix.append(suffix[-1] + value * size)
        suffix.reverse()
        required = weight_of_need(self.question, weights, self.question.counts)
        if suffix[0] < required:
            return DualCertificate(weights, suffix[0], required)
        self.bounds.append((weights, best, suffix))
        return None

    def _rounds(self) -> DualCertificate | None:
        """Raise the weight of what the best patterns leave uncovered, and look again."""
        question = self.question
        if not self.patterns or question.types < 2:
            return None
        stacked = np.vstack(self.patterns)
        starts = np.concatenate(([0], np.cumsum([len(found) for found in self.patterns])[:-1]))
        need = np.maximum(np.asarray(question.preferred, dtype=np.float64), 0.5)
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
            cover = np.zeros(question.types)
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
        """The rounds share the nodes out in fractions: keep the whole parts and seat the rest quickly."""
        for keep in KEPT_PARTS if self.usage else ():
            if self.budget.exhausted:
                return None
            self.chosen = []
            for at, used in enumerate(self.usage):
                whole = np.floor(used * keep + 1e-9).astype(np.int64)
                self.chosen += [(at, int(index), int(whole[index])) for index in np.flatnonzero(whole)]
            start = self.placement(member_of)
            self.chosen = []
            placed = finish(self.question, start, self.question.counts, self.budget)
            if placed is not None:
                return placed
        return None

    def search(self, at: int, first: int, left: int, counts: tuple[int, ...], depth: int) -> bool:
        """Whether the nodes from this one on can cover the counts; patterns before `first` are done with."""
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
        known = self.failed.setdefault((at, first, left), [])
        if any(all(f <= c for f, c in zip(old, counts, strict=True)) for old in known):
            return False
        if self._too_heavy(at, left, counts):
            return False
        if self._branch(at, first, left, counts, depth):
            return True
        if not self.gave_up and len(known) < MEMORY:
            known.append(counts)
        return False

    def _branch(self, at: int, first: int, left: int, counts: tuple[int, ...], depth: int) -> bool:
        """Every next pattern and every number of nodes for it, the most first; the last pattern takes the rest."""
        found: list[list[int]] = self.patterns[at].tolist()
        for index in range(first, len(found)):
            pattern, last = found[index], index == len(found) - 1
            useful = max((-(-have // take) for have, take in zip(counts, pattern, strict=True) if take), default=0)
            most = left if last else min(left, useful)
            for nodes in range(most, most - 1 if last else 0, -1):
                rest = tuple(max(0, have - nodes * take) for have, take in zip(counts, pattern, strict=True))
                self.chosen.append((at, index, nodes))
                if self.search(at, index + 1, 0 if last else left - nodes, rest, depth + 1):
                    return True
                self.chosen.pop()
                if self.gave_up:
                    return False
        return False

    def _done(self, counts: tuple[int, ...]) -> bool:
        question = self.question
        spare = [-need for need in question.needs]
        for at, (left, owner) in enumerate(zip(counts, question.owner, strict=True)):
            if owner < 0:
                if left:
                    return False
            else:
                spare[owner] += question.counts[at] - left
        return all(value >= 0 for value in spare)

    def _too_heavy(self, at: int, left: int, counts: tuple[int, ...]) -> bool:
        for weights, best, suffix in self.bounds:
            if left * best[at] + suffix[at + 1] < weight_of_need(self.question, weights, counts):
                return True
        return False

    def placement(self, member_of: Ints) -> Ints:
        """From chosen patterns to counts per type and node, cut down to what is needed."""
        question = self.question
        placed = np.zeros((question.types, len(question.nodes)), dtype=np.int64)
        left = list(question.counts)
        missing = list(question.needs)
        queues = {at: list(np.flatnonzero(member_of == at)) for at in {entry[0] for entry in self.chosen}}
        for at, index, nodes in self.chosen:
            pattern = self.patterns[at][index].tolist()
            for _ in range(nodes):
                node = queues[at].pop()
                for kind, amount in enumerate(pattern):
                    owner = question.owner[kind]
                    took = min(amount, left[kind], missing[owner] if owner >= 0 else amount)
                    placed[kind, node] = took
                    left[kind] -= took
                    if owner >= 0:
                        missing[owner] -= took
        return placed
