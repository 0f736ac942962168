"""Arguments of the plugins that score resources: the resources and their weights, the shape of the ratio function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import is_scalar
from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.framework.shape import Shape

Weights = tuple[tuple[str, int], ...]


def weighted_resources(found: Sequence[Mapping[str, Any]] | None) -> Weights:
    """The scored resources and their weights; cpu and memory with weight 1 by default."""
    weights = tuple((str(entry["name"]), int(entry.get("weight") or 1)) for entry in found or ())
    for name, weight in weights:
        if not 1 <= weight <= 100:
            raise ValueError(f"weight of resource {name} is {weight}; it must be from 1 to 100")
    return weights or (("cpu", 1), ("memory", 1))


def rows_of(plugin: Plugin, resources: Weights, shape: Shape, cluster: Cluster) -> list[tuple[int, int, int]]:
    """Resource row, the pod's request and weight of each resource that is scored for this shape."""

    def find() -> list[tuple[int, int, int]]:
        amounts = shape.amounts
        scored = [(name, weight) for name, weight in resources if not is_scalar(name) or amounts.get(name)]
        return [(cluster.row[name], amounts.get(name, 0), weight) for name, weight in scored if name in cluster.row]

    return shape.memo_at((plugin, "scored rows"), len(cluster.resources), find)


def curve(ratio: Mapping[str, Any] | None) -> Ints:
    """The score (0 to 100) at each utilization from 0 to 100, linear between the given points."""
    points = [(int(p.get("utilization") or 0), int(p.get("score") or 0) * 10) for p in (ratio or {}).get("shape") or ()]
    if not points:
        raise ValueError("RequestedToCapacityRatio needs requestedToCapacityRatio.shape with at least one point")
    for (before, _), (after, _) in pairwise(points):
        if before >= after:
            raise ValueError("utilization of the shape's points must rise from point to point")
    if any(not 0 <= at <= 100 or not 0 <= score <= 100 for at, score in points):
        raise ValueError("a shape's utilization must be from 0 to 100 and its score from 0 to 10")
    return np.array([_score_at(points, at) for at in range(101)], dtype=np.int64)


def _score_at(points: list[tuple[int, int]], at: int) -> int:
    for i, (right, score) in enumerate(points):
        if at <= right:
            if i == 0:
                return score
            left, before = points[i - 1]
            # Rounded towards zero, also where the line falls.
            return before + int((score - before) * (at - left) / (right - left))
    return points[-1][1]
