"""VolumeBinding: the volumes of a pod must be accessible from the node.

For a bound claim the node affinity of its volume decides. For an unbound claim (`WaitForFirstConsumer`) an available
volume must match it, or its storage class must be able to provision one there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muster.api.types import PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    bound,
    can_bind,
    claim_size,
    selected_node,
    volume_size,
)
from muster.scheduler.framework.plugin import DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_LABELS, STORAGE
from muster.scheduler.plugins.node_affinity import matches_selector

_NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
_NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinding(Plugin):
    name = "VolumeBinding"
    filter_depends_on = DependsOn.NODE
    unresolvable = True
    known_args = frozenset(("bindTimeoutSeconds", "shape"))
    watches = frozenset(("storage", "promised volumes"))
    requeue_on = frozenset((NODE_ADDED, NODE_LABELS, STORAGE))

    def concerns(self, shape: Shape) -> bool:
        return bool(shape.footprint.claims)

    def couples_pods_of(self, shape: Shape, cluster: Cluster) -> bool:
        # An available volume that is promised to one pod's claim is not available to the next.
        return any(not bound(claim) for claim in _claims(shape, cluster))

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        namespace, volumes = shape.pod.metadata.namespace, cluster.volumes
        for name in shape.footprint.claims:
            claim = volumes.claims.get((namespace, name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if claim.status.phase == "Lost":
                return (
                    f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
                )
        if any(
            not bound(claim) and not _waits_for_consumer(cluster.volumes.class_of(claim))
            for claim in _claims(shape, cluster)
        ):
            return "pod has unbound immediate PersistentVolumeClaims"
        return None

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        for _, mask in self._masks(shape, cluster, slots):
            ok &= mask
        return ok

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        for message in (_NO_VOLUME, _NODE_CONFLICT, _NONE_TO_BIND):
            ok = np.ones(slots.shape, dtype=np.bool_)
            for reason, mask in self._masks(shape, cluster, slots):
                if reason == message:
                    ok &= mask
            yield FilterStatus(message, slots[~ok], True, self.name)
            slots = slots[ok]

    def _masks(self, shape: Shape, cluster: Cluster, slots: Slots) -> Iterable[tuple[str, Bools]]:
        """Masks of slots that suit a bound claim, or all unbound ones, each with the message for the other slots."""
        unbound: list[PersistentVolumeClaim] = []
        for claim in _claims(shape, cluster):
            if not bound(claim):
                unbound.append(claim)
                continue
            volume = cluster.volumes.volume_of(claim)
            if volume is None:
                yield _NO_VOLUME, np.zeros(cluster.alive[slots].shape, dtype=np.bool_)
            else:
                yield _NODE_CONFLICT, _accessible(volume, cluster, slots)
        if unbound:
            yield _NONE_TO_BIND, _all_satisfied(unbound, cluster, slots)


def _claims(shape: Shape, cluster: Cluster) -> list[PersistentVolumeClaim]:
    claims, namespace = cluster.volumes.claims, shape.pod.metadata.namespace
    return [claims[(namespace, name)] for name in shape.footprint.claims if (namespace, name) in claims]


def _waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _accessible(volume: PersistentVolume, cluster: Cluster, slots: Slots) -> Bools:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return np.ones(cluster.alive[slots].shape, dtype=np.bool_)
    return matches_selector(affinity.required, cluster, slots)


def _all_satisfied(claims: list[PersistentVolumeClaim], cluster: Cluster, slots: Slots) -> Bools:
    """Per slot, whether each claim can be bound to an available volume of its own or provisioned a new one."""
    ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
    taken: dict[str, Bools] = {}
    for claim in sorted(claims, key=lambda claim: (claim_size(claim), claim.metadata.name)):
        satisfied = np.zeros(ok.shape, dtype=np.bool_)
        node = selected_node(claim)
        if not node:
            _match(claim, cluster, slots, satisfied, taken)
        storage_class = cluster.volumes.class_of(claim)
        if storage_class is not None and storage_class.provisioner not in ("", _NO_PROVISIONER):
            satisfied |= _provisionable(storage_class, cluster, slots)
        if node:
            # Its volume is being provisioned for that node.
            only = np.zeros(cluster.size, dtype=np.bool_)
            if node in cluster.index:
                only[cluster.index[node]] = True
            satisfied &= only[slots]
        ok &= satisfied
    return ok


def _match(
    claim: PersistentVolumeClaim, cluster: Cluster, slots: Slots, satisfied: Bools, taken: dict[str, Bools]
) -> None:
    """On each slot, match the claim with the smallest available volume that no earlier claim was matched with.

    Sets `satisfied` where there is one, and adds it to `taken` (slots by volume name).
    """
    volumes, key = cluster.volumes, (claim.metadata.namespace, claim.metadata.name)
    suitable = [v for v in volumes.volumes.values() if can_bind(v, claim) and volumes.promised.free_for(v, key)]
    for volume in sorted(suitable, key=lambda volume: (volume_size(volume), volume.metadata.name)):
        here = _accessible(volume, cluster, slots) & ~satisfied
        before = taken.get(volume.metadata.name)
        if before is not None:
            here &= ~before
        satisfied |= here
        taken[volume.metadata.name] = here if before is None else before | here


def _provisionable(storage_class: StorageClass, cluster: Cluster, slots: Slots) -> Bools:
    terms = storage_class.allowed_topologies
    ok = np.full(cluster.alive[slots].shape, not terms, dtype=np.bool_)
    for term in terms or ():
        here = np.ones(ok.shape, dtype=np.bool_)
        for required in term.match_label_expressions or ():
            table = cluster.label_column(required.key).matching(required.key, "In", required.values or ())
            here &= table[cluster.labels(required.key)[slots]]
        ok |= here
    return ok
