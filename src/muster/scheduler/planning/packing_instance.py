"""One packing question: these loads, each inside its scope, on these nodes, all at once.

Loads are pooled before anyone searches: lots of equal shape and scope that must be placed in full are
one type. A load that may choose among its lots keeps a type per lot and a slack: how many of its
members may stay behind. Amounts are divided by their common divisor and cut at the whole demand, so
that nodes which differ in nothing that matters look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.scheduler.planning.goal import LeafGoal
from muster.scheduler.planning.node_matrix import Ints, Mask, NodeMatrix, NodeSet, count_seats


@dataclass(frozen=True, slots=True, eq=False)
class ScopedRequest:
    """A leaf that has its scope: `need` of its members must sit there."""

    leaf: LeafGoal
    nodes: NodeSet


@dataclass(frozen=True, slots=True)
class PackedPods:
    """So many members of one lot of a leaf on each of these nodes."""

    leaf: LeafGoal
    lot: int
    nodes: Ints
    counts: Ints


class PackingInstance:
    """Types with counts against nodes. `owner` is -1 for a type that must be placed in full."""

    def __init__(self, board: NodeMatrix, loads: Sequence[ScopedRequest]) -> None:
        self.board = board
        self._shares: list[list[tuple[LeafGoal, int, int]]] = []
        self.shapes: list[int] = []
        self.scopes: list[NodeSet] = []
        self.counts: list[int] = []
        self.preferred: list[int] = []
        self.owner: list[int] = []
        self.needs: list[int] = []  # per choosing load
        self._pool(loads)
        self._reduce()

    def _pool(self, loads: Sequence[ScopedRequest]) -> None:
        pooled: dict[tuple[int, NodeSet], int] = {}
        for load in loads:
            leaf = load.leaf
            if len(leaf.lots) == 1 or leaf.need == leaf.pending:
                for index, lot in enumerate(leaf.lots):
                    self._add_fixed(pooled, load, index, lot.shape, min(leaf.need, lot.count))
                continue
            for index, lot in enumerate(leaf.lots):
                self._add(load.nodes, lot.shape, lot.count, lot.preferred, len(self.needs))
                self._shares[-1].append((leaf, index, lot.count))
            self.needs.append(leaf.need)

    def _add_fixed(
        self, pooled: dict[tuple[int, NodeSet], int], load: ScopedRequest, index: int, shape: int, count: int
    ) -> None:
        at = pooled.get((shape, load.nodes))
        if at is None:
            at = pooled[(shape, load.nodes)] = len(self.shapes)
            self._add(load.nodes, shape, 0, 0, -1)
        self.counts[at] += count
        self.preferred[at] += count
        self._shares[at].append((load.leaf, index, count))

    def _add(self, scope: NodeSet, shape: int, count: int, preferred: int, owner: int) -> None:
        self.shapes.append(shape)
        self.scopes.append(scope)
        self.counts.append(count)
        self.preferred.append(preferred)
        self.owner.append(owner)
        self._shares.append([])

    def _reduce(self) -> None:
        board = self.board
        fits = np.zeros((len(self.shapes), board.size), dtype=bool)
        for at, (shape, scope) in enumerate(zip(self.shapes, self.scopes, strict=True)):
            fits[at, scope.nodes] = board.seats(shape)[scope.nodes] > 0
        usable = np.flatnonzero(fits.any(axis=0))
        # In the order of rank, so that no answer depends on how nodes arrived.
        self.nodes: Ints = usable[np.argsort(board.rank[usable])]
        self.fits: Mask = fits[:, self.nodes]
        wanted = board.requests[self.shapes]
        rows = np.flatnonzero(wanted.any(axis=0))
        self.rows = rows
        divisors = np.gcd.reduce(wanted[:, rows], axis=0)
        self.requests: Ints = wanted[:, rows] // divisors
        request = (self.requests * np.asarray(self.counts, dtype=np.int64)[:, None]).sum(axis=0)
        free = board.free[np.ix_(rows, self.nodes)] // divisors[:, None]
        self.free: Ints = np.clip(free, 0, request[:, None])

    @property
    def types(self) -> int:
        return len(self.shapes)

    def seats(self, free: Ints, at: int) -> Ints:
        return count_seats(free, self.requests[at], self.fits[at])

    def seated(self, placed: Ints) -> list[PackedPods]:
        """Hand the seats of each type back to the loads that share it. `placed` is [type, node]."""
        found: list[PackedPods] = []
        for at, shares in enumerate(self._shares):
            used = np.flatnonzero(placed[at])
            nodes, counts = self.nodes[used], placed[at, used]
            ends = np.cumsum(counts)
            start = 0
            for leaf, lot, share in shares:
                stop = min(start + share, int(ends[-1]) if len(ends) else 0)
                part = np.clip(np.minimum(ends, stop) - np.maximum(ends - counts, start), 0, None)
                keep = part > 0
                if keep.any():
                    found.append(PackedPods(leaf, lot, nodes[keep], part[keep]))
                start = stop
        return found
