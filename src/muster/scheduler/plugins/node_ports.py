"""NodePorts: a host port is used by one pod on a node; equal protocol and number conflict if the addresses overlap."""

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
        for pods in _conflicting(shape, cluster):
            free &= pods.column[: cluster.size][slots] == 0
        return free

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        return self.filter(shape, cluster, slots).astype(np.int64)


def _conflicting(shape: Shape, cluster: Cluster) -> list[PodCount]:
    """The counts of pods that use a host port with which a port of the shape conflicts."""
    ports = shape.footprint.requirements.ports

    def find() -> list[PodCount]:
        used = [(port, pods) for port, pods in cluster.pod_counts.carried() if isinstance(port, HostPort)]
        return [pods for other, pods in used if any(other.conflicts(port) for port in ports)]

    return shape.memo_at("conflicting ports", cluster.pod_counts.version, find)
