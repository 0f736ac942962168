"""A host port is held by one pod on a node: same protocol and number clash when the addresses overlap."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import HostPort
from muster.scheduler.cache.pod_counts import PodCount
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, POD_GONE


class NodePorts(Plugin):
    name = "NodePorts"
    filter_depends_on = DependsOn.USAGE
    couples_pods = True
    message = "node(s) didn't have free ports for the requested pod ports"
    requeue_on = frozenset((NODE_ADDED, POD_GONE))

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(shape.footprint.requirements.ports)

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        free = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        for held in _conflicting(shape, cluster):
            free &= held.column[: cluster.size][slots] == 0
        return free

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        return self.filter(shape, cluster, slots).astype(np.int64)


def _conflicting(shape: Shape, cluster: Cluster) -> list[PodCount]:
    wanted = shape.footprint.requirements.ports

    def find() -> list[PodCount]:
        known = [(what, pod_count) for what, pod_count in cluster.pod_counts.carried() if isinstance(what, HostPort)]
        return [pod_count for what, pod_count in known if any(what.conflicts(port) for port in wanted)]

    return shape.memo_at("clashing ports", cluster.pod_counts.version, find)
