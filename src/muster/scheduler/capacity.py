"""What nodes could hold if nothing ran on them: for telling a full place from one that is too small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.scheduler.arrays import Ints

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
