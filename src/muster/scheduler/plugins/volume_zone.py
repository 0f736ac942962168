"""VolumeZone: a volume with a zone or region label can be used only by nodes with the same label."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_LABELS, STORAGE

# Each stable key with its deprecated name; a volume may have either.
_KEYS = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}


class VolumeZone(Plugin):
    name = "VolumeZone"
    filter_depends_on = DependsOn.NODE
    message = "node(s) had no available volume zone"
    unresolvable = True
    watches = frozenset(("storage",))
    requeue_on = frozenset((NODE_ADDED, NODE_LABELS, STORAGE))

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.footprint.claims)

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        zoned = ~ok
        for stable, deprecated in _KEYS.items():
            zoned |= (cluster.labels(stable)[slots] > 0) | (cluster.labels(deprecated)[slots] > 0)
        for key, values in _zones(shape, cluster):
            deprecated = _KEYS.get(key, key)
            here = _matches_label(cluster, slots, key, values)
            if deprecated != key:
                # A node may have only the deprecated label.
                here |= (cluster.labels(key)[slots] == 0) & _matches_label(cluster, slots, deprecated, values)
            ok &= here
        # Nodes without any zone or region label pass.
        return ok | ~zoned


def _matches_label(cluster: Cluster, slots: Slots, key: str, values: tuple[str, ...]) -> Bools:
    return cluster.label_column(key).matching(key, "In", values)[cluster.labels(key)[slots]]


def _zones(shape: Shape, cluster: Cluster) -> list[tuple[str, tuple[str, ...]]]:
    """The zone and region labels of the pod's volumes with their values; a value may list several zones."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in shape.footprint.claims:
        claim = cluster.volumes.claims.get((shape.pod.metadata.namespace, name))
        volume = cluster.volumes.volume_of(claim) if claim is not None else None
        labels = (volume.metadata.labels or {}) if volume is not None else {}
        keys = [key for pair in _KEYS.items() for key in pair if key in labels]
        found += [(key, tuple(labels[key].split("__"))) for key in keys]
    return found
