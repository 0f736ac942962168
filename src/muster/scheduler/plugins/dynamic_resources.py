"""DynamicResources: the node must have the devices that the pod's resource claims ask for.

Claims that have their devices allow the nodes that can use them; the devices of all others are searched on each node,
together with those of the pods that are tried there. Nodes whose devices are equal are asked once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.devices.allocator import NotAllocated
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
        # No resource row of the cluster counts devices, so arithmetic with resources alone does not decide.
        return self.concerns(shape)

    def counts_exactly(self, shape: Shape, cluster: Cluster) -> bool:
        needs = shape.footprint.needs
        return needs is None or cluster.devices.is_local(needs)

    def affected_by_own_shape(self, shape: Shape, cluster: Cluster) -> bool:
        needs = shape.footprint.needs
        return needs is not None and not cluster.devices.is_local(needs)

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        needs = shape.footprint.needs
        return needs.fault or None if needs is not None else None

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        needs = shape.footprint.needs
        if needs is None:
            return np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        return self._most(shape, cluster, slots, 1) > 0

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        return self._most(shape, cluster, slots, _MOST_PODS) if self.concerns(shape) else None

    def _most(self, shape: Shape, cluster: Cluster, slots: Slots, limit: int) -> Ints:
        needs = shape.footprint.needs
        assert needs is not None
        alive = cluster.alive[slots]
        most = np.zeros(alive.shape, dtype=np.int64)
        up: list[int] = np.arange(cluster.size)[slots][alive].tolist()
        most[alive] = cluster.device_room.most_each(needs, up, limit)
        return most

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        needs = shape.footprint.needs
        if needs is None:
            return
        by_message: dict[str, list[tuple[int, bool]]] = {}
        known: dict[object, tuple[NotAllocated, bool]] = {}
        room, devices = cluster.device_room, cluster.devices
        for slot in slots.tolist():
            key = (devices.signature(slot), devices.tried(slot), devices.in_reach(needs, slot))
            if key not in known:
                known[key] = room.refusal(needs, slot), room.fits_unused(needs, slot)
            found, fits_unused = known[key]
            unresolvable = found.error or not fits_unused
            message = _with_claim(shape, cluster, needs, found)
            by_message.setdefault(message, []).append((slot, unresolvable))
        for message, found in by_message.items():
            rejected = np.array([slot for slot, _ in found], dtype=np.int64)
            never = np.array([unresolvable for _, unresolvable in found], dtype=np.bool_)
            yield FilterStatus(message, rejected, never, self.name)


def _with_claim(shape: Shape, cluster: Cluster, needs: Needs, found: NotAllocated) -> str:
    """The message, with the claim that it is about: by its name, or by the pod's entry that it was made for."""
    if not found.error or found.claim < 0:
        return found.message
    shared = [f"claim {namespace}/{name}" for namespace, name in cluster.devices.open_keys(needs)]
    own = [f'claim "{entry.name}"' for entry in cluster.devices.claims.own_entries(shape.pod)]
    names = [*shared, *own]
    return f"{names[found.claim]}: {found.message}" if found.claim < len(names) else found.message
