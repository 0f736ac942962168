"""A disk that only one pod may write, and a claim that only one pod may use, keep others away."""

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
        for held in _conflicting(shape, cluster):
            free &= held.column[: cluster.size][slots] == 0
        return free


def _one_pod_claims(shape: Shape, cluster: Cluster) -> list[tuple[str, str]]:
    namespace = shape.pod.metadata.namespace
    keys = [(namespace, name) for name in shape.footprint.claims]
    claims = cluster.volumes.claims
    return [key for key in keys if key in claims and "ReadWriteOncePod" in (claims[key].spec.access_modes or ())]


def _conflicting(shape: Shape, cluster: Cluster) -> list[PodCount]:
    def find() -> list[PodCount]:
        wanted = shape.footprint.requirements.disks
        held = [(what, pod_count) for what, pod_count in cluster.pod_counts.carried() if isinstance(what, InlineDisk)]
        return [pod_count for what, pod_count in held if any(what.conflicts(disk) for disk in wanted)]

    return shape.memo_at("clashing disks", cluster.pod_counts.version, find)
