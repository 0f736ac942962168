"""Maximal patterns: what one node of a class of equal nodes can take at most, for all classes at once.

A pattern is a count for each item type; it is maximal if not one more pod of any type fits beside it. Every packing is
covered by a choice of one maximal pattern per node, so nothing is lost by looking at these only. They are enumerated
type by type, as array passes over the partial patterns of all classes together. Where there are too many of them there
is no table at all, or one of some of them on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.packing_instance import PackingInstance

Number = TypeVar("Number", np.int64, np.float64)


MOST_PARTIAL = 400_000  # partial patterns that are held at a time


MOST_PATTERNS = 80_000


PASSES_PER_TYPE = 2  # over the partial patterns, roughly


@dataclass(frozen=True, slots=True, eq=False)
class PatternTable:
    """The maximal patterns of every class, class by class. Every class has at least one, which may be empty."""

    table: Ints  # [pattern, type]
    class_of: Ints  # [pattern]
    starts: Ints  # [class], the first pattern of each
    sizes: Ints  # [class], how many nodes
    member_of: Ints  # [node], its class

    @property
    def classes(self) -> int:
        return len(self.sizes)

    @property
    def cells(self) -> int:
        """The size of one pass over the table."""
        return self.table.size

    def best(self, values: NDArray[Number]) -> NDArray[Number]:
        """The largest value of a pattern in each class."""
        return np.maximum.reduceat(values, self.starts) if len(self.starts) else values[:0]

    def of_class(self, at: int) -> Ints:
        """The patterns of one class."""
        stop = int(self.starts[at + 1]) if at + 1 < len(self.starts) else len(self.table)
        return self.table[int(self.starts[at]) : stop]


def pattern_table(
    instance: PackingInstance, budget: Budget, options: int | None = None
) -> Pausing[PatternTable | None]:
    """The maximal patterns of an instance; None when there are too many or the budget ends.

    With `options`, only patterns that come from so many of the largest numbers of each type: a table that is not
    complete, from which nothing can be proven.
    """
    representatives, member_of, sizes = _classes(instance)
    found = yield from _enumerate(instance, representatives, budget, options)
    if found is None:
        return None
    classes, table = found
    order = np.argsort(classes, kind="stable")
    classes, table = classes[order], table[order]
    starts = np.searchsorted(classes, np.arange(len(sizes)))
    return PatternTable(table, classes, starts, sizes, member_of)


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


def _enumerate(
    instance: PackingInstance, representatives: Ints, budget: Budget, most_options: int | None
) -> Pausing[tuple[Ints, Ints] | None]:
    """The class and the counts of every maximal pattern, the largest item types first."""
    requests, counts = instance.requests, np.asarray(instance.counts, dtype=np.int64)
    fits = instance.fits[:, representatives]
    classes = np.arange(len(representatives))
    left = np.ascontiguousarray(instance.free[:, representatives].T)
    taken = np.zeros((len(representatives), instance.types), dtype=np.int64)
    scale = np.maximum(instance.free.sum(axis=1), 1)
    order: list[int] = np.argsort(-(requests / scale).max(axis=1, initial=0), kind="stable").tolist()
    for position, at in enumerate(order):
        most = _most(left, requests[at], int(counts[at]))
        most[~fits[at, classes]] = 0
        # The last type takes all it can: fewer would not be maximal.
        options = most + 1 if position < len(order) - 1 else np.ones_like(most)
        if most_options is not None:
            options = np.minimum(options, most_options)
        total = int(options.sum())
        if total > MOST_PARTIAL or not budget.spend_cells(PASSES_PER_TYPE * total * (left.shape[1] + 2)):
            return None
        parent = np.repeat(np.arange(len(options)), options)
        first = np.cumsum(options) - options
        count = most[parent] - (np.arange(total) - first[parent])
        classes, left, taken = classes[parent], left[parent] - count[:, None] * requests[at], taken[parent]
        taken[:, at] = count
        if budget.pause_due():
            yield
    maximal = np.ones(len(classes), dtype=bool)
    for at in order:
        if not budget.spend_cells(2 * left.size):
            return None
        if budget.pause_due():
            yield
        maximal &= ~(fits[at, classes] & (taken[:, at] < counts[at]) & (left >= requests[at]).all(axis=1))
    if int(maximal.sum()) > MOST_PATTERNS:
        return None
    return classes[maximal], taken[maximal]


def _most(left: Ints, request: Ints, limit: int) -> Ints:
    """How many pods of one type fit into what each partial pattern leaves."""
    most = np.full(len(left), limit, dtype=np.int64)
    for row in np.flatnonzero(request):
        np.minimum(most, left[:, row] // request[row], out=most)
    return most
