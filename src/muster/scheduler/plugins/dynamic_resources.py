"""DynamicResources: the node must have the devices that the pod's resource claims ask for.

Claims that have their devices allow the nodes that can use them; the devices of all others are searched on each node,
together with those of the pods that are tried there. Nodes whose devices are equal are asked once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import DEVICES, NODE_ADDED, NODE_LABELS

_MOST_PODS = 256  # as many consumers as a claim can have; no node takes more pods


class DynamicResources(Plugin):
    name = "DynamicResources"
    filter_depends_on = DependsOn.USAGE
    known_args = frozenset(("filterTimeout", "bindingTimeout"))
    watches = frozenset(("devices",))
    beyond_its_node = True
    requeue_on = frozenset((NODE_ADDED, NODE_LABELS, DEVICES))

    def concerns(self, shape: Shape) -> bool:
        return shape.footprint.needs is not None

    def couples_pods_of(self, shape: Shape, cluster: Cluster) -> bool:
        # Pods of different shapes choose among the same devices, which no resource row counts.
        return self.concerns(shape)

    def affected_by_own_shape(self, shape: Shape, cluster: Cluster) -> bool:
        needs = shape.footprint.needs
        return needs is not None and (bool(needs.claims) or cluster.devices.pools.shared_between_nodes)

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        needs = shape.footprint.needs
        return needs.fault or None if needs is not None else None

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        needs = shape.footprint.needs
        alive = cluster.alive[slots]
        if needs is None:
            return np.ones(alive.shape, dtype=np.bool_)
        numbers = np.arange(cluster.size)[slots]
        fits = (
            bool(up) and cluster.devices.fits(needs, slot) for slot, up in zip(numbers.tolist(), alive, strict=True)
        )
        return np.fromiter(fits, dtype=np.bool_, count=len(numbers))

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        needs = shape.footprint.needs
        if needs is None:
            return None
        numbers = np.arange(cluster.size)[slots]
        alive = cluster.alive[slots]
        most = (
            cluster.devices.most(needs, slot, _MOST_PODS) if up else 0
            for slot, up in zip(numbers.tolist(), alive, strict=True)
        )
        return np.fromiter(most, dtype=np.int64, count=len(numbers))

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        needs = shape.footprint.needs
        if needs is None:
            return
        by_message: dict[str, list[tuple[int, bool]]] = {}
        for slot in slots.tolist():
            found = cluster.devices.refusal(needs, slot)
            unresolvable = found.error or not cluster.devices.fits_unused(needs, slot)
            by_message.setdefault(found.message, []).append((slot, unresolvable))
        for message, found in by_message.items():
            rejected = np.array([slot for slot, _ in found], dtype=np.int64)
            never = np.array([unresolvable for _, unresolvable in found], dtype=np.bool_)
            yield FilterStatus(message, rejected, never, self.name)
