"""The cluster: nodes and volumes, and the pods that use them, kept current by events.

Bound and assumed pods are counted on their node until they are deleted or have finished; a terminating pod is still
counted. Of a pending pod only the label keys of its selectors are recorded. A pod whose node is not known (yet, or any
more) is kept apart and counted when the node is added.

While a trial is open (`locked`), only the trial may change the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from muster.api.types import Node, Pod
from muster.scheduler.cache.arrays import ChangeLog, Ints
from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.cache.device_room import DeviceRoom
from muster.scheduler.cache.devices import Devices, Promise, TrialState
from muster.scheduler.cache.footprints import Footprint, FootprintIndex, label_keys
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.cache.owner_selectors import OwnerSelectors
from muster.scheduler.cache.pod_counts import PodCounts
from muster.scheduler.cache.volumes import Volumes
from muster.scheduler.devices.selectors import DeviceSelectors
from muster.scheduler.interface import cluster_events
from muster.scheduler.interface.cluster_events import ClusterEvents

MIN_BULK = 4  # from so many slots of one footprint on, one addition changes all of them

_FINISHED = ("Succeeded", "Failed")

_PLACED: ClusterEvents = frozenset((cluster_events.POD_PLACED,))
_GONE: ClusterEvents = frozenset((cluster_events.POD_GONE,))
_MOVED: ClusterEvents = frozenset((cluster_events.POD_GONE, cluster_events.POD_PLACED, cluster_events.POD_CHANGED))


class PlacedPod:
    """A bound or assumed pod. `slot` is -1 while its node is unknown."""

    __slots__ = ("assumed", "footprint", "node", "pod", "slot", "terminating")

    def __init__(self, pod: Pod, footprint: Footprint, node: str, slot: int, *, assumed: bool) -> None:
        self.pod = pod
        self.footprint = footprint
        self.node = node
        self.slot = slot
        self.terminating = pod.metadata.deletion_timestamp is not None
        self.assumed = assumed


class Cluster(NodeColumns):
    """Nodes, bound and assumed pods, volumes. `change` and `remove` apply events, `assume` and `forget` decisions.

    `usage_log` and `node_log` name the slots whose usage or node changed; `versions` count changes of other inputs
    that plugins read (`Plugin.watches`).
    """

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.pod_counts = PodCounts(self)
        self.owner_selectors = OwnerSelectors()
        self.volumes = Volumes(self)
        self.devices = Devices(self, DeviceSelectors())
        self.device_room = DeviceRoom(self.devices)
        self.usage_log = ChangeLog()
        self.node_log = ChangeLog()
        self.versions: dict[str, int] = {}
        self.pods: dict[str, PlacedPod] = {}
        self.pods_by_slot: dict[int, dict[str, PlacedPod]] = {}
        self.locked = False  # a trial is open
        self._on_unknown_nodes: dict[str, dict[str, PlacedPod]] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._footprints = FootprintIndex(self, self.pod_counts, self.add_label_keys, self.devices.claims.needs)

    # --- events ------------------------------------------------------------------------------------

    def change(self, kind: str, obj: Any) -> ClusterEvents:
        """Add or update an object; returns the cluster events that this means."""
        self._check_unlocked()
        match kind:
            case "Pod":
                return self._update_pod(obj)
            case "Node":
                return self._update_node(obj)
            case "Namespace":
                return self._update_namespace(obj.metadata.name, obj.metadata.labels or {})
            case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet":
                return self._selectors_changed(self.owner_selectors.set(kind, obj))
            case "PersistentVolume" | "PersistentVolumeClaim" | "StorageClass" | "CSINode":
                return self._volumes_changed(self.volumes.set(obj))
            case "ResourceSlice" | "ResourceClaim" | "DeviceClass" | "DeviceTaintRule":
                return self._devices_changed(self.devices.set(obj))
            case _:
                return cluster_events.NOTHING

    def remove(self, kind: str, namespace: str, name: str, uid: str = "") -> ClusterEvents:
        """Remove an object; with a uid, that pod and not a later one of the same name."""
        self._check_unlocked()
        match kind:
            case "Pod":
                return self._remove_pod(uid or self._uids.get((namespace, name), ""))
            case "Node":
                return self._delete_node(name)
            case "Namespace":
                return self._update_namespace(name, None)
            case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet":
                return self._selectors_changed(
                    frozenset() if self.owner_selectors.remove(kind, namespace, name) else None
                )
            case "PersistentVolume" | "PersistentVolumeClaim" | "StorageClass" | "CSINode":
                return self._volumes_changed(self.volumes.remove(kind, namespace, name))
            case "ResourceSlice" | "ResourceClaim" | "DeviceClass" | "DeviceTaintRule":
                return self._devices_changed(self.devices.remove(kind, namespace, name))
            case _:
                return cluster_events.NOTHING

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on a node before its binding is confirmed."""
        self._check_unlocked()
        self._add_pod(pod, node, assumed=True)

    def assume_many(self, placements: Iterable[tuple[Pod, Footprint, str]]) -> None:
        """`assume` for pods whose footprints are known: one addition for all pods of a footprint on a node."""
        self._check_unlocked()
        added: dict[Footprint, list[int]] = {}
        for pod, footprint, node in placements:
            slot = self.index.get(node, -1)
            if slot < 0 or footprint.claims or pod.metadata.deletion_timestamp is not None:
                self.assume(pod, node)  # claims are promised volumes in turn; the others are counted differently
                continue
            placed = self._register(pod, footprint, node, slot, assumed=True)
            if slot in self.pods_by_slot:
                self.pods_by_slot[slot][pod.metadata.uid] = placed
            else:
                self.pods_by_slot[slot] = {pod.metadata.uid: placed}
            if footprint in added:
                added[footprint].append(slot)
            else:
                added[footprint] = [slot]
        for footprint, slots in added.items():
            counts = Counter(slots)
            if len(counts) < MIN_BULK:
                for slot, count in counts.items():
                    self.add_usage(footprint, slot, count)
                continue
            self.add_usage_many(footprint, np.array(list(counts)), np.array(list(counts.values())))

    def forget(self, uid: str) -> None:
        """Remove an assumed pod whose binding failed. A pod that the API server shows as bound stays."""
        self._check_unlocked()
        placed = self.pods.get(uid)
        if placed is not None and placed.assumed:
            self._remove_pod(uid)

    # --- reading -----------------------------------------------------------------------------------

    def footprint(self, pod: Pod) -> Footprint:
        """What the pod adds to a node; equal pods get the same object."""
        return self._footprints.footprint(pod)

    def pods_on(self, slot: int) -> Iterable[PlacedPod]:
        """The bound and assumed pods of a node."""
        return self.pods_by_slot.get(slot, {}).values()

    # --- pods --------------------------------------------------------------------------------------

    def _update_pod(self, pod: Pod) -> ClusterEvents:
        uid = pod.metadata.uid
        placed = self.pods.get(uid)
        node = pod.spec.node_name
        if not node:
            if pod.spec.affinity is not None or pod.spec.topology_spread_constraints:
                # Its selectors may split shapes, so their keys must be known before the next shape is looked up.
                self.add_label_keys(label_keys(pod.spec))
            # While a bind is in flight the watch may still show the pod without a node.
            return cluster_events.NOTHING if placed is None or placed.assumed else self._remove_pod(uid)
        if pod.status.phase in _FINISHED:
            return cluster_events.NOTHING if placed is None else self._remove_pod(uid)
        if placed is None:
            return self._add_pod(pod, node, assumed=False)
        if placed.node == node and _same_usage(placed.pod, pod):
            placed.pod = pod
            placed.assumed = False
            return cluster_events.NOTHING
        left = self._remove_pod(uid)
        self._add_pod(pod, node, assumed=False)
        return _MOVED if left else _PLACED

    def _add_pod(self, pod: Pod, node: str, *, assumed: bool) -> ClusterEvents:
        slot = self.index.get(node, -1)
        placed = self._register(pod, self._footprints.footprint(pod), node, slot, assumed=assumed)
        if slot < 0:
            self._on_unknown_nodes.setdefault(node, {})[pod.metadata.uid] = placed
            return cluster_events.NOTHING
        self._add_to_slot(placed)
        return _PLACED

    def _register(self, pod: Pod, footprint: Footprint, node: str, slot: int, *, assumed: bool) -> PlacedPod:
        """Add a pod to the index by uid and name; a pod with the same uid or name is removed first."""
        uid, name = pod.metadata.uid, (pod.metadata.namespace, pod.metadata.name)
        if uid in self.pods:
            self._remove_pod(uid)
        # There is one pod of a name at a time: a new one means that the old one was deleted.
        if name in self._uids:
            self._remove_pod(self._uids[name])
        placed = self.pods[uid] = PlacedPod(pod, footprint, node, slot, assumed=assumed)
        self._uids[name] = uid
        return placed

    def _remove_pod(self, uid: str) -> ClusterEvents:
        placed = self.pods.pop(uid, None)
        if placed is None:
            return cluster_events.NOTHING
        meta = placed.pod.metadata
        if self._uids.get((meta.namespace, meta.name)) == uid:
            del self._uids[(meta.namespace, meta.name)]
        if placed.pod.spec.resource_claims:
            self.devices.forget(placed.pod)
            self.versions["devices"] = self.devices.version
        if placed.slot < 0:
            _remove_from(self._on_unknown_nodes, placed.node, uid)
            return cluster_events.NOTHING
        self.add_usage(placed.footprint, placed.slot, -1, terminating=placed.terminating)
        _remove_from(self.pods_by_slot, placed.slot, uid)
        return _GONE

    def _add_to_slot(self, placed: PlacedPod) -> None:
        self.add_usage(placed.footprint, placed.slot, 1, terminating=placed.terminating)
        self.pods_by_slot.setdefault(placed.slot, {})[placed.pod.metadata.uid] = placed

    def add_usage(self, footprint: Footprint, slot: int, count: int, *, terminating: bool = False) -> None:
        """Add pods of a footprint to a slot (remove, below 0). The same with -count undoes it exactly."""
        vector, nonzero = footprint.vector, footprint.nonzero
        if count != 1:
            vector, nonzero = vector * count, nonzero * count
        self._all_used[: len(vector), slot] += vector
        self._all_nonzero[:, slot] += nonzero
        footprint.label_class.add(slot, count, terminating)
        for pod_count in footprint.carried:
            pod_count.add(slot, count)
        if footprint.claims:
            self._use_claims(footprint, slot, count)
        self.usage_log.add(slot)

    def add_room(self, footprint: Footprint, slot: int, count: int) -> None:
        """Take the room of pods of a footprint on a slot (give it back, below 0); they do not count as pods there."""
        self._all_used[: len(footprint.vector), slot] += footprint.vector * count
        self._all_nonzero[:, slot] += footprint.nonzero * count
        self.usage_log.add(slot)

    def add_usage_many(self, footprint: Footprint, slots: Ints, counts: Ints, *, terminating: bool = False) -> None:
        """`add_usage` on several distinct slots."""
        vector = footprint.vector
        self._all_used[: len(vector), slots] += vector[:, None] * counts
        self._all_nonzero[:, slots] += footprint.nonzero[:, None] * counts
        for slot, count in zip(slots.tolist(), counts.tolist(), strict=True):
            footprint.label_class.add(slot, count, terminating)
            for pod_count in footprint.carried:
                pod_count.add(slot, count)
            if footprint.claims:
                self._use_claims(footprint, slot, count)
        self.usage_log.add_many(slots)

    def restore_promised(self, state: dict[tuple[str, str], str]) -> None:
        """Set the promised volumes to an earlier state; promising them again might choose other volumes."""
        self.volumes.promised.restore(state)
        self.versions["promised volumes"] = self.volumes.promised.version

    def promise_devices(self, chosen: Mapping[tuple[str, str], Promise]) -> None:
        """Count on devices that were chosen for claims."""
        self.devices.promise(chosen)
        for promise in chosen.values():
            if promise.node in self.index:
                self.usage_log.add(self.index[promise.node])
        self.versions["devices"] = self.devices.version

    def try_devices(self, needs: Needs, slot: int, count: int) -> None:
        """Count on devices for pods that are tried on a node (no longer, below 0)."""
        self.devices.try_on(needs, slot, count)
        self.versions["devices"] = self.devices.version

    def hold_devices(self, claim: tuple[str, str], promise: Promise) -> TrialState:
        """Try to give a claim these devices; what was promised before."""
        before = self.devices.hold(claim, promise)
        self.versions["devices"] = self.devices.version
        return before

    def restore_devices(self, state: TrialState) -> None:
        """Set the devices that are counted on to an earlier state."""
        self.devices.restore(state)
        self.versions["devices"] = self.devices.version

    def evict_devices(self, placed: PlacedPod, count: int) -> None:
        """Take the devices of a pod away that a trial evicts (give them back, above 0)."""
        self.devices.evict(placed.pod, count)
        self.versions["devices"] = self.devices.version

    def _use_claims(self, footprint: Footprint, slot: int, count: int) -> None:
        self.volumes.add_users(footprint.label_class.namespace, footprint.claims, slot, count)
        self.versions["promised volumes"] = self.volumes.promised.version

    # --- nodes -------------------------------------------------------------------------------------

    def _update_node(self, node: Node) -> ClusterEvents:
        found = self.set_node(node)
        if found:
            slot = self.index[node.metadata.name]
            self.versions["images"] = self.images_version
            self.devices.nodes.forget(slot)
            self.node_log.add(slot)
            self.usage_log.add(slot)
            if cluster_events.NODE_ADDED in found:
                self._add_pods_of_new_node(node.metadata.name, slot)
        return found

    def _add_pods_of_new_node(self, name: str, slot: int) -> None:
        for placed in self._on_unknown_nodes.pop(name, {}).values():
            placed.slot = slot
            self._add_to_slot(placed)

    def _delete_node(self, name: str) -> ClusterEvents:
        slot = self.index.get(name)
        if slot is None:
            return cluster_events.NOTHING
        for uid, placed in self.pods_by_slot.pop(slot, {}).items():
            self.add_usage(placed.footprint, slot, -1, terminating=placed.terminating)
            placed.slot = -1
            self._on_unknown_nodes.setdefault(name, {})[uid] = placed
        self.remove_node(name)
        self.versions["images"] = self.images_version
        self.node_log.add(slot)
        self.usage_log.add(slot)
        return frozenset((cluster_events.NODE_REMOVED,))

    def _grow(self) -> None:
        super()._grow()
        self.pod_counts.grow(self._capacity)

    # --- namespaces, selectors, volumes, label keys ----------------------------------------------------

    def _update_namespace(self, name: str, labels: dict[str, str] | None) -> ClusterEvents:
        return (
            frozenset((cluster_events.NAMESPACE,))
            if self.pod_counts.set_namespace(name, labels)
            else cluster_events.NOTHING
        )

    def _selectors_changed(self, keys: frozenset[str] | None) -> ClusterEvents:
        if keys is None:
            return cluster_events.NOTHING
        self.versions["selectors"] = self.versions.get("selectors", 0) + 1
        self.add_label_keys(keys)
        return frozenset((cluster_events.SELECTORS,))

    def _volumes_changed(self, changed: bool) -> ClusterEvents:
        if not changed:
            return cluster_events.NOTHING
        self.versions["storage"] = self.versions.get("storage", 0) + 1
        self.versions["promised volumes"] = self.volumes.promised.version
        return frozenset((cluster_events.STORAGE,))

    def _devices_changed(self, slots: set[int] | None) -> ClusterEvents:
        """Devices of these nodes changed, or of all."""
        if slots is None:
            self.devices.version += 1
        for slot in slots or ():
            self.usage_log.add(slot)
        self.versions["devices"] = self.devices.version
        return frozenset((cluster_events.DEVICES,)) if slots is None or slots else cluster_events.NOTHING

    def add_label_keys(self, keys: Iterable[str]) -> None:
        """Distinguish pods by these label keys from now on, because a selector reads them."""
        new = frozenset(keys) - self.pod_counts.keys
        if not new:
            return
        self._check_unlocked()
        self.pod_counts.add_label_keys(new)
        for placed in self.pods.values():
            labels = placed.pod.metadata.labels
            if labels and not new.isdisjoint(labels):
                self._relabel(placed)

    def _relabel(self, placed: PlacedPod) -> None:
        """Count a pod in its new label class; whatever else it adds to its node is the same as before."""
        old = placed.footprint
        placed.footprint = self._footprints.relabelled(old, placed.pod)
        if placed.slot >= 0:
            old.label_class.add(placed.slot, -1, placed.terminating)
            placed.footprint.label_class.add(placed.slot, 1, placed.terminating)

    def _check_unlocked(self) -> None:
        if self.locked:
            raise RuntimeError("the cluster cannot change while a trial is open")


def _same_usage(old: Pod, new: Pod) -> bool:
    """Whether a bound pod is counted as before."""
    return (
        (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and (old.metadata.labels or {}) == (new.metadata.labels or {})
        and (old.spec == new.spec or _same_spec(old, new))
    )


def _same_spec(old: Pod, new: Pod) -> bool:
    a, b = old.spec, new.spec
    return (
        a.containers == b.containers
        and a.init_containers == b.init_containers
        and a.resources == b.resources
        and a.overhead == b.overhead
        and a.affinity == b.affinity
        and a.volumes == b.volumes
        and a.host_network == b.host_network
    )


def _remove_from(pods: dict[Any, dict[str, PlacedPod]], key: object, uid: str) -> None:
    found = pods.get(key)
    if found is not None:
        found.pop(uid, None)
        if not found:
            del pods[key]
