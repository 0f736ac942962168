"""The patterns as the prices see them: each a vector of what it gives of every need, dense or sparse.

A node's patterns have counts of nearly every type: a plain matrix. A domain's sets have few of many groups: of each set
only its members are kept. Either way the sums that Newton's method asks for are a few array passes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.planning.node_matrix import Ints

Floats = NDArray[np.float64]


class PatternColumns(Protocol):
    """[pattern, type], as a share of the need."""

    @property
    def cells(self) -> int:
        """The size of one pass."""
        ...

    def only(self, patterns: Ints) -> PatternColumns:
        """Some of the patterns."""
        ...

    def values(self, points: Floats) -> Floats:
        """What each pattern is worth at prices, or at several."""
        ...

    def means(self, shares: Floats, class_of: Ints, starts: Ints) -> Floats:
        """[class, type]: the patterns of each class, weighed by their shares."""
        ...

    def products(self, weights: Floats) -> Floats:
        """[type, type]: the products of each pattern with itself, weighed."""
        ...


class DenseColumns:
    """A matrix."""

    def __init__(self, table: Floats) -> None:
        self.table = table

    @property
    def cells(self) -> int:
        return self.table.size

    def only(self, patterns: Ints) -> DenseColumns:
        return DenseColumns(self.table[patterns])

    def values(self, points: Floats) -> Floats:
        return self.table @ points

    def means(self, shares: Floats, class_of: Ints, starts: Ints) -> Floats:
        return np.add.reduceat(shares[:, None] * self.table, starts)

    def products(self, weights: Floats) -> Floats:
        return self.table.T @ (weights[:, None] * self.table)


class SparseColumns:
    """The members of each pattern, as often as they occur; `types` stands for none."""

    def __init__(self, members: Ints, share: Floats) -> None:
        self.members = members  # [pattern, place]
        self.share = share  # [type], and 0 for none: what one gives of the need
        self.types = len(share) - 1

    @classmethod
    def of(cls, counts: Ints, need: Ints) -> SparseColumns:
        width, (sets, types) = int(counts.sum(axis=1).max(initial=1)), counts.shape
        rows, kinds = np.nonzero(counts)
        often = counts[rows, kinds]
        rows, kinds = np.repeat(rows, often), np.repeat(kinds, often)
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        members = np.full((sets, width), types, dtype=np.int64)
        members[rows, place] = kinds
        return cls(members, np.append(1.0 / need, 0.0))

    @property
    def cells(self) -> int:
        return self.members.size * (2 + self.members.shape[1])

    def only(self, patterns: Ints) -> SparseColumns:
        return SparseColumns(self.members[patterns], self.share)

    def values(self, points: Floats) -> Floats:
        prices = np.vstack((points.reshape(self.types, -1), np.zeros((1, points.size // self.types))))
        found = (prices * self.share[:, None])[self.members].sum(axis=1)
        return found if points.ndim > 1 else found[:, 0]

    def means(self, shares: Floats, class_of: Ints, starts: Ints) -> Floats:
        size = self.types + 1
        where = (class_of[:, None] * size + self.members).ravel()
        weights = (shares[:, None] * self.share[self.members]).ravel()
        sums: Floats = np.bincount(where, weights, minlength=len(starts) * size).astype(np.float64)
        return sums.reshape(-1, size)[:, :-1]

    def products(self, weights: Floats) -> Floats:
        size, members, share = self.types + 1, self.members, self.share[self.members]
        where = (members[:, :, None] * size + members[:, None, :]).ravel()
        each = (weights[:, None, None] * share[:, :, None] * share[:, None, :]).ravel()
        sums: Floats = np.bincount(where, each, minlength=size * size).astype(np.float64)
        return sums.reshape(size, size)[:-1, :-1]
