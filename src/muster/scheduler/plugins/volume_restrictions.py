"""VolumeRestrictions: disks that pods cannot share, and claims with access mode ReadWriteOncePod."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import InlineDisk
from muster.scheduler.cache.pod_counts import PodCount
from muster.scheduler.framework.plugin import DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_REMOVED, POD_GONE, STORAGE

_ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


class VolumeRestrictions(Plugin):
    name = "VolumeRestrictions"
    filter_depends_on = DependsOn.PODS
    couples_pods = True
    message = "node(s) had no available disk"
    watches = frozenset(("storage",))
    requeue_on = frozenset((NODE_ADDED, NODE_REMOVED, POD_GONE, STORAGE))

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.footprint.requirements.disks or shape.footprint.claims)

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(shape.footprint.requirements.disks or _one_pod_claims(shape, cluster))

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        ok = self._disks_free(shape, cluster, slots)
        if any(cluster.volumes.in_use(key) for key in _one_pod_claims(shape, cluster)):
            ok[:] = False
        return ok

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        free = self._disks_free(shape, cluster, slots)
        yield FilterStatus(self.message, slots[~free], False, self.name)
        yield FilterStatus(_ONE_POD, slots[free], False, self.name)

    def _disks_free(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        free = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        for pods in _conflicting(shape, cluster):
            free &= pods.column[: cluster.size][slots] == 0
        return free


def _one_pod_claims(shape: Shape, cluster: Cluster) -> list[tuple[str, str]]:
    namespace = shape.pod.metadata.namespace
    keys = [(namespace, name) for name in shape.footprint.claims]
    claims = cluster.volumes.claims
    return [key for key in keys if key in claims and "ReadWriteOncePod" in (claims[key].spec.access_modes or ())]


def _conflicting(shape: Shape, cluster: Cluster) -> list[PodCount]:
    """The counts of pods that use a disk with which a disk of the shape conflicts."""

    def find() -> list[PodCount]:
        disks = shape.footprint.requirements.disks
        used = [(disk, pods) for disk, pods in cluster.pod_counts.carried() if isinstance(disk, InlineDisk)]
        return [pods for other, pods in used if any(other.conflicts(disk) for disk in disks)]

    return shape.memo_at("conflicting disks", cluster.pod_counts.version, find)
