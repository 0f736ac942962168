"""A packing instance: pods of several PodGroups, each restricted to a set of nodes, to be placed together.

The second and last form of a request: item types with counts against nodes, as arrays. Pods are pooled before
anything is searched: identical pods with equal node sets that must all be placed are one item type. A PodGroup that
may choose among its pods keeps a type for each of its shapes, and a number of which may stay unplaced. Amounts are
divided by their common divisor and cut at the whole request, so that nodes which differ in nothing that matters are
equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import IdenticalPods, PodGroupRequest
from muster.scheduler.planning.node_matrix import Ints, Mask, NodeMatrix, NodeSet, count_seats


@dataclass(frozen=True, slots=True)
class ScopedRequest:
    """A PodGroup and the nodes of its domains: `need` of its pods must be placed there. Both count by identity."""

    request: PodGroupRequest
    nodes: NodeSet


@dataclass(frozen=True, slots=True)
class PackedPods:
    """So many of identical pods on each of these nodes."""

    pods: IdenticalPods
    nodes: Ints
    counts: Ints


class PackingInstance:
    """Item types with counts against nodes. `owner` is -1 for a type of which all must be placed."""

    def __init__(self, matrix: NodeMatrix, requests: Sequence[ScopedRequest]) -> None:
        self.matrix = matrix
        self.shapes: list[Shape] = []
        self.node_sets: list[NodeSet] = []
        self.counts: list[int] = []
        self.preferred: list[int] = []
        self.owner: list[int] = []
        self._shares: list[list[tuple[IdenticalPods, int]]] = []  # the pods of each type, and how many of them
        self.needs: list[int] = []  # per PodGroup that may choose
        self._pool(requests)
        self._reduce()

    def _pool(self, requests: Sequence[ScopedRequest]) -> None:
        pooled: dict[tuple[Shape, NodeSet], int] = {}
        for scoped in requests:
            leaf = scoped.request
            if len(leaf.identical) == 1 or leaf.need == leaf.pending:
                for pods in leaf.identical:
                    self._add_fixed(pooled, scoped.nodes, pods, min(leaf.need, pods.count))
                continue
            for pods in leaf.identical:
                self._add(scoped.nodes, pods.shape, pods.count, pods.preferred, len(self.needs))
                self._shares[-1].append((pods, pods.count))
            self.needs.append(leaf.need)

    def _add_fixed(
        self, pooled: dict[tuple[Shape, NodeSet], int], nodes: NodeSet, pods: IdenticalPods, count: int
    ) -> None:
        at = pooled.get((pods.shape, nodes))
        if at is None:
            at = pooled[(pods.shape, nodes)] = len(self.shapes)
            self._add(nodes, pods.shape, 0, 0, -1)
        self.counts[at] += count
        self.preferred[at] += count
        self._shares[at].append((pods, count))

    def _add(self, nodes: NodeSet, shape: Shape, count: int, preferred: int, owner: int) -> None:
        self.shapes.append(shape)
        self.node_sets.append(nodes)
        self.counts.append(count)
        self.preferred.append(preferred)
        self.owner.append(owner)
        self._shares.append([])

    def _reduce(self) -> None:
        matrix = self.matrix
        fits = np.zeros((len(self.shapes), matrix.size), dtype=bool)
        for at, (shape, nodes) in enumerate(zip(self.shapes, self.node_sets, strict=True)):
            fits[at, nodes.nodes] = matrix.seats(shape)[nodes.nodes] > 0
        usable = np.flatnonzero(fits.any(axis=0))
        # In the order of rank, so that no answer depends on how nodes arrived.
        self.nodes: Ints = usable[np.argsort(matrix.rank[usable])]
        self.fits: Mask = fits[:, self.nodes]
        wanted = matrix.requests[[matrix.index(shape) for shape in self.shapes]]
        rows = np.flatnonzero(wanted.any(axis=0))
        self.rows = rows
        divisors = np.gcd.reduce(wanted[:, rows], axis=0)
        self.requests: Ints = wanted[:, rows] // divisors
        total = (self.requests * np.asarray(self.counts, dtype=np.int64)[:, None]).sum(axis=0)
        free = matrix.free[np.ix_(rows, self.nodes)] // divisors[:, None]
        self.free: Ints = np.clip(free, 0, total[:, None])

    @property
    def types(self) -> int:
        return len(self.shapes)

    def seats(self, free: Ints, at: int) -> Ints:
        """How many pods of a type each node takes alone, with so much free."""
        return count_seats(free, self.requests[at], self.fits[at])

    def packed(self, placed: Ints) -> list[PackedPods]:
        """The counts of each type given to the pods that share it. `placed` is [type, node]."""
        found: list[PackedPods] = []
        for at, shares in enumerate(self._shares):
            used = np.flatnonzero(placed[at])
            nodes, counts = self.nodes[used], placed[at, used]
            ends = np.cumsum(counts)
            start = 0
            for pods, share in shares:
                stop = min(start + share, int(ends[-1]) if len(ends) else 0)
                part = np.clip(np.minimum(ends, stop) - np.maximum(ends - counts, start), 0, None)
                keep = part > 0
                if keep.any():
                    found.append(PackedPods(pods, nodes[keep], part[keep]))
                start = stop
        return found
