"""A pod that names its node goes there or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.scheduler.arrays import Bools, Slots
from muster.scheduler.changes import NODE_ADDED
from muster.scheduler.constraints.base import Constraint, Reach

if TYPE_CHECKING:
    from muster.scheduler.cluster import Cluster
    from muster.scheduler.shapes import Shape


class NodeName(Constraint):
    name = "NodeName"
    filters = Reach.NODE
    text = "node(s) didn't match the requested node name"
    final = True
    cures = frozenset((NODE_ADDED,))

    def filters_for(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(shape.pod.spec.node_name)

    def narrows(self, shape: Shape, cluster: Cluster) -> frozenset[str] | None:
        wanted = shape.pod.spec.node_name
        return frozenset((wanted,)) if wanted else None

    def allows(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        only = np.zeros(cluster.size, dtype=np.bool_)
        slot = cluster.index.get(shape.pod.spec.node_name)
        if slot is not None:
            only[slot] = True
        return only[slots]
