"""NodeResourcesFit: the pod's requests must fit the node's free resources; the score is how full the node would be.

Scoring strategies: LeastAllocated, MostAllocated, RequestedToCapacityRatio. Scores count cpu and memory with default
requests for containers without any (`nonzero`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import CPU, MEMORY, PODS
from muster.scheduler.framework.plugin import MAX_SCORE, DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_ALLOCATABLE, POD_CHANGED, POD_GONE
from muster.scheduler.plugins.resource_args import curve, rows_of, weighted_resources

LEAST, MOST, RATIO = "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"


class NodeResourcesFit(Plugin):
    name = "NodeResourcesFit"
    weight = 1
    filter_depends_on = score_depends_on = DependsOn.USAGE
    known_args = frozenset(("scoringStrategy", "ignoredResources", "ignoredResourceGroups"))
    requeue_on = frozenset((NODE_ADDED, NODE_ALLOCATABLE, POD_GONE, POD_CHANGED))

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        super().__init__(args)
        strategy: Mapping[str, Any] = self.args.get("scoringStrategy") or {}
        self.strategy: str = strategy.get("type") or LEAST
        if self.strategy not in (LEAST, MOST, RATIO):
            raise ValueError(f"unknown scoring strategy {self.strategy!r}; known are {LEAST}, {MOST}, {RATIO}")
        self.resources = weighted_resources(strategy.get("resources"))
        self.curve: Ints | None = curve(strategy.get("requestedToCapacityRatio")) if self.strategy == RATIO else None
        self.ignored: frozenset[str] = frozenset(self.args.get("ignoredResources") or ())
        self.ignored_groups: frozenset[str] = frozenset(self.args.get("ignoredResourceGroups") or ())

    @property
    def counts_all_resources(self) -> bool:
        return not self.ignored and not self.ignored_groups

    # --- filtering --------------------------------------------------------------------------------------

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        ok = cluster.used[PODS][slots] < cluster.alloc[PODS][slots]
        for row, size in self._request_rows(shape, cluster):
            ok &= cluster.alloc[row][slots] - cluster.used[row][slots] >= size
        return ok

    def filter_one(self, shape: Shape, cluster: Cluster, slot: int) -> bool:
        used, alloc = cluster.used.item, cluster.alloc.item
        if used(PODS, slot) >= alloc(PODS, slot):
            return False
        return all(alloc(row, slot) - used(row, slot) >= size for row, size in self._request_rows(shape, cluster))

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        seats = cluster.alloc[PODS][slots] - cluster.used[PODS][slots]
        for row, size in self._request_rows(shape, cluster):
            seats = np.minimum(seats, (cluster.alloc[row][slots] - cluster.used[row][slots]) // size)
        return np.maximum(seats, 0)

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        requests = self._request_rows(shape, cluster)
        # A request above the allocatable of a node makes all of its statuses unresolvable.
        unresolvable = np.zeros(slots.shape, dtype=np.bool_)
        for row, size in requests:
            unresolvable |= cluster.alloc[row][slots] < size
        full = cluster.used[PODS][slots] >= cluster.alloc[PODS][slots]
        yield FilterStatus("Too many pods", slots[full], unresolvable[full], (self.name, "pods"))
        for row, size in requests:
            short = cluster.alloc[row][slots] - cluster.used[row][slots] < size
            resource = cluster.resources[row]
            yield FilterStatus(f"Insufficient {resource}", slots[short], unresolvable[short], (self.name, resource))

    def _request_rows(self, shape: Shape, cluster: Cluster) -> tuple[tuple[int, int], ...]:
        if not self.ignored and not self.ignored_groups:
            return shape.request_rows
        names = cluster.resources
        return tuple((row, size) for row, size in shape.request_rows if not self.ignores(names[row]))

    def ignores(self, resource: str) -> bool:
        return resource in self.ignored or resource.partition("/")[0] in self.ignored_groups

    # --- scoring ------------------------------------------------------------------------------------

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        return self._score(shape, cluster, slots, 1)

    def score_after(self, shape: Shape, cluster: Cluster, slots: Ints, ahead: Ints) -> Ints:
        return self._score(shape, cluster, slots, ahead + 1)

    def _score(self, shape: Shape, cluster: Cluster, slots: Slots, pods: int | Ints) -> Ints:
        total = weights = np.zeros(1, dtype=np.int64)
        for row, size, weight in self._rows(shape, cluster):
            alloc = cluster.alloc[row][slots]
            used = (cluster.nonzero if row <= MEMORY else cluster.used)[row][slots]
            if self.curve is None and alloc.all():
                total = total + self._score_resource(used + size * pods, alloc, alloc) * weight
                weights = weights + weight
                continue
            rate = self._score_resource(used + size * pods, alloc, np.maximum(alloc, 1))
            # A resource that a node does not have is left out of its score.
            present = (alloc > 0) & (rate > 0) if self.curve is not None else alloc > 0
            total = total + np.where(present, rate * weight, 0)
            weights = weights + present * weight
        least = np.maximum(weights, 1)
        if self.curve is not None:
            return np.floor(total / least + 0.5).astype(np.int64)
        return total // least

    def _score_resource(self, requested: Ints, alloc: Ints, whole: Ints) -> Ints:
        match self.strategy:
            case "LeastAllocated":
                return np.maximum((alloc - requested) * MAX_SCORE // whole, 0)
            case "MostAllocated":
                return np.minimum(requested, alloc) * MAX_SCORE // whole
            case _:
                assert self.curve is not None
                return self.curve[np.where(requested > alloc, MAX_SCORE, requested * MAX_SCORE // whole)]

    def score_one(self, shape: Shape, cluster: Cluster, slot: int) -> int:
        if self.strategy != LEAST:
            return super().score_one(shape, cluster, slot)
        total = weights = 0
        alloc_of, nonzero, used = cluster.alloc.item, cluster.nonzero.item, cluster.used.item
        for row, size, weight in self._rows(shape, cluster):
            alloc = alloc_of(row, slot)
            if alloc > 0:
                requested = (nonzero if row <= MEMORY else used)(row, slot) + size
                if requested <= alloc:
                    total += (alloc - requested) * MAX_SCORE // alloc * weight
                weights += weight
        return total // weights if weights else 0

    def _rows(self, shape: Shape, cluster: Cluster) -> list[tuple[int, int, int]]:
        """Resource row, the pod's amount and weight of each scored resource; cpu and memory with default requests."""

        def find() -> list[tuple[int, int, int]]:
            cpu, memory = shape.footprint.requirements.nonzero
            nonzero: dict[int, int] = {CPU: cpu, MEMORY: memory}
            rows = rows_of(self, self.resources, shape, cluster)
            return [(row, nonzero.get(row, size), weight) for row, size, weight in rows]

        return shape.memo_at((self, "rows"), len(cluster.resources), find)
