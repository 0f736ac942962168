"""A volume with a zone or region label can be used only by nodes there."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_LABELS, STORAGE

# Each stable key with the name it had before; a volume may carry either.
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
        for stable, older in _KEYS.items():
            zoned |= (cluster.labels(stable)[slots] > 0) | (cluster.labels(older)[slots] > 0)
        for key, values in _zones(shape, cluster):
            older = _KEYS.get(key, key)
            here = _matches_label(cluster, slots, key, values)
            if older != key:
                # A node may still carry only the older name.
                here |= (cluster.labels(key)[slots] == 0) & _matches_label(cluster, slots, older, values)
            ok &= here
        # A cluster without zones has no say in this.
        return ok | ~zoned


def _matches_label(cluster: Cluster, slots: Slots, key: str, values: tuple[str, ...]) -> Bools:
    return cluster.label_column(key).matching(key, "In", values)[cluster.labels(key)[slots]]


def _zones(shape: Shape, cluster: Cluster) -> list[tuple[str, tuple[str, ...]]]:
    """The labels that bind the pod's volumes; a value may list several zones."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for name in shape.footprint.claims:
        claim = cluster.volumes.claims.get((shape.pod.metadata.namespace, name))
        volume = cluster.volumes.volume_of(claim) if claim is not None else None
        labels = (volume.metadata.labels or {}) if volume is not None else {}
        keys = [key for pair in _KEYS.items() for key in pair if key in labels]
        found += [(key, tuple(labels[key].split("__"))) for key in keys]
    return found
