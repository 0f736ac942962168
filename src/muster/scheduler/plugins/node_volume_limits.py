"""NodeVolumeLimits: the number of attached volumes of a CSI driver stays within the limit of the node's CSINode."""

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
        attachments = {volumes.attachment((namespace, name)) for name in shape.footprint.claims}
        ok = np.ones(cluster.size, dtype=np.bool_)
        for driver in sorted({attachment.driver for attachment in attachments if attachment.driver}):
            added: Ints = np.zeros(cluster.size, dtype=np.int64)
            for attachment in attachments:
                if attachment.driver == driver:
                    added += 1 - volumes.attached_at(attachment)
            limits = volumes.limits(driver)
            ok &= (limits < 0) | (added == 0) | (volumes.attached(driver) + added <= limits)
        return ok[slots]
