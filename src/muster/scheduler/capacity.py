"""What nodes could hold if nothing ran on them: for telling a full place from one that is too small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from muster.scheduler.arrays import Ints
from muster.scheduler.planning.demand import Branch, Demand, leaves

if TYPE_CHECKING:
    from muster.scheduler.cluster import Cluster
    from muster.scheduler.shapes import Shape


def seats_when_empty(cluster: Cluster, shape: Shape) -> Ints:
    """Seats of a shape on every node by its size alone, nought where the rules of the node keep the shape away."""
    asks = shape.request_vector(cluster)
    rows = np.flatnonzero(asks)
    seats = (cluster.alloc[rows, : cluster.size] // asks[rows][:, None]).min(axis=0)
    usable = cluster.standing(shape).node_ok[: cluster.size] & cluster.alive[: cluster.size]
    return np.where(usable, np.maximum(seats, 0), 0)


def could_ever_hold(cluster: Cluster, demand: Demand) -> bool:
    """Whether the demand would have a chance if nothing ran at all. False is certain; True is only a hope."""
    empty: dict[int, Ints] = {}
    for leaf in leaves(demand):
        for member in leaf.members:
            if member.shape.id not in empty:
                empty[member.shape.id] = seats_when_empty(cluster, member.shape)
    return any(seats.any() for seats in empty.values()) and _could_hold(cluster, demand, empty)


def _could_hold(cluster: Cluster, demand: Demand, empty: Mapping[int, Ints]) -> bool:
    if isinstance(demand, Branch):
        return sum(_could_hold(cluster, child, empty) for child in demand.children) >= demand.minimum
    if not demand.need:
        return True
    wanted = Counter(member.shape.id for member in demand.members)
    if demand.topology is None:
        return sum(min(count, int(empty[shape].sum())) for shape, count in wanted.items()) >= demand.need
    domain_of = cluster.labels(demand.topology)[: cluster.size]
    best = np.zeros(int(domain_of.max(initial=0)) + 1, dtype=np.int64)
    for shape, count in wanted.items():
        best += np.minimum(np.bincount(domain_of, weights=empty[shape]).astype(np.int64), count)
    return bool((best[1:] >= demand.need).any())  # nodes without the label are in no domain
