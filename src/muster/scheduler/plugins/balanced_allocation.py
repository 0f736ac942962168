"""NodeResourcesBalancedAllocation: scores nodes by how much the pod balances the used shares of cpu and memory.

The score is from 50 to 100; 75 means that the balance stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.plugins.resource_args import rows_of, weighted_resources

Floats = npt.NDArray[np.float64]


class NodeResourcesBalancedAllocation(Plugin):
    name = "NodeResourcesBalancedAllocation"
    weight = 1
    score_depends_on = DependsOn.USAGE
    known_args = frozenset(("resources",))

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        super().__init__(args)
        self.resources = weighted_resources(self.args.get("resources"))

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return any(shape.amounts.get(name) for name, _ in self.resources)

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        return self._score(shape, cluster, slots, 0)

    def score_after(self, shape: Shape, cluster: Cluster, slots: Ints, ahead: Ints) -> Ints:
        return self._score(shape, cluster, slots, ahead)

    def _score(self, shape: Shape, cluster: Cluster, slots: Slots, ahead: int | Ints) -> Ints:
        shares: list[Floats] = []
        present: list[Bools] = []
        for row, size, _ in rows_of(self, self.resources, shape, cluster):
            alloc = cluster.alloc[row][slots]
            used = cluster.used[row][slots] + size * ahead
            # Two rows: the node as it is, and with the pod.
            both = np.stack((used, used + size))
            present.append(alloc > 0)
            shares.append(np.minimum(1.0, both / np.maximum(alloc, 1)))
        before, after = _balance(shares, present)
        return 50 + (50 + after - before) // 2

    def score_one(self, shape: Shape, cluster: Cluster, slot: int) -> int:
        before: list[float] = []
        after: list[float] = []
        alloc_of, used_of = cluster.alloc.item, cluster.used.item
        for row, size, _ in rows_of(self, self.resources, shape, cluster):
            alloc = alloc_of(row, slot)
            if alloc:
                used = used_of(row, slot)
                before.append(min(1.0, used / alloc))
                after.append(min(1.0, (used + size) / alloc))
        return 50 + (50 + _balance_of(after) - _balance_of(before)) // 2


def _balance(shares: list[Floats], present: list[Bools]) -> Ints:
    """100 where all used shares are equal, less the more they deviate."""
    return ((1 - _deviation(shares, present)) * 100).astype(np.int64)


def _deviation(shares: list[Floats], present: list[Bools]) -> Floats:
    if len(shares) < 2:
        return np.zeros((2, 1))
    if len(shares) == 2:
        return np.where(present[0] & present[1], np.abs((shares[0] - shares[1]) / 2), 0.0)
    count = np.maximum(sum(there.astype(np.int64) for there in present), 1)
    mean = sum(shares) / count
    squares = sum(np.where(there, (s - mean) * (s - mean), 0.0) for s, there in zip(shares, present, strict=True))
    highest = np.max([np.where(there, s, -1.0) for s, there in zip(shares, present, strict=True)], axis=0)
    lowest = np.min([np.where(there, s, 2.0) for s, there in zip(shares, present, strict=True)], axis=0)
    return np.where(count > 2, np.sqrt(squares / count), np.where(count == 2, (highest - lowest) / 2, 0.0))


def _balance_of(shares: list[float]) -> int:
    match shares:
        case [first, second]:
            deviation = abs((first - second) / 2)
        case [_, _, *_]:
            mean = sum(shares) / len(shares)
            total = 0.0
            for share in shares:
                total += (share - mean) * (share - mean)
            deviation = sqrt(total / len(shares))
        case _:
            deviation = 0.0
    return int((1 - deviation) * 100)
