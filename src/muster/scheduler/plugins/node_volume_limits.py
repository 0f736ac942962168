"""A node attaches only so many volumes of a driver; those it has attached already cost nothing."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, POD_GONE, STORAGE


class NodeVolumeLimits(Plugin):
    name = "NodeVolumeLimits"
    filter_depends_on = DependsOn.PODS
    couples_pods = True
    message = "node(s) exceed max volume count"
    watches = frozenset(("storage",))
    requeue_on = frozenset((NODE_ADDED, POD_GONE, STORAGE))

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.footprint.claims)

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(cluster.volumes.csi_nodes)

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        volumes, namespace = cluster.volumes, shape.pod.metadata.namespace
        wanted = {volumes.attachment((namespace, name)) for name in shape.footprint.claims}
        ok = np.ones(cluster.size, dtype=np.bool_)
        for driver in sorted({what.driver for what in wanted if what.driver}):
            more: Ints = np.zeros(cluster.size, dtype=np.int64)
            for what in wanted:
                if what.driver == driver:
                    more += 1 - volumes.attached_at(what)
            limits = volumes.limits(driver)
            ok &= (limits < 0) | (more == 0) | (volumes.attached(driver) + more <= limits)
        return ok[slots]
