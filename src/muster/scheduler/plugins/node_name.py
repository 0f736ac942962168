"""NodeName: a pod with `spec.nodeName` fits only that node."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED


class NodeName(Plugin):
    name = "NodeName"
    filter_depends_on = DependsOn.NODE
    message = "node(s) didn't match the requested node name"
    unresolvable = True
    requeue_on = frozenset((NODE_ADDED,))

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(shape.pod.spec.node_name)

    def pre_filter_nodes(self, shape: Shape, cluster: Cluster) -> frozenset[str] | None:
        name = shape.pod.spec.node_name
        return frozenset((name,)) if name else None

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        only = np.zeros(cluster.size, dtype=np.bool_)
        slot = cluster.index.get(shape.pod.spec.node_name)
        if slot is not None:
            only[slot] = True
        return only[slots]
