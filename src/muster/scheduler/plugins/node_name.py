"""A pod that names its node goes there or nowhere."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED


class NodeName(Plugin):
    name = "NodeName"
    filters = DependsOn.NODE
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
