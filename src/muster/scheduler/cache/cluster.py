"""The cluster as the scheduler sees it: nodes as columns, pods as counts on them, kept up to date by events.

Bound pods, and pods assumed to be bound, count on their node until they are gone or have finished; a
pod that is being deleted still counts. Of pods without a node only the label keys that their rules
mention are noted. A pod whose node is not
known (yet, or any more) waits aside and counts when the node comes.

Nothing may change the cluster while a trial is open, except the trial.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from muster.api.types import Node, Pod
from muster.scheduler.cache.arrays import ChangeLog, Ints
from muster.scheduler.cache.footprints import Footprint, FootprintIndex, label_keys
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.cache.owner_selectors import OwnerSelectors
from muster.scheduler.cache.pod_counts import PodCounts
from muster.scheduler.cache.volumes import Volumes
from muster.scheduler.interface import cluster_events
from muster.scheduler.interface.cluster_events import ClusterEvents

_FINISHED = ("Succeeded", "Failed")


_PLACED: ClusterEvents = frozenset((cluster_events.POD_PLACED,))


_GONE: ClusterEvents = frozenset((cluster_events.POD_GONE,))


_CHANGED: ClusterEvents = frozenset((cluster_events.POD_CHANGED,))


_MOVED: ClusterEvents = frozenset((cluster_events.POD_GONE, cluster_events.POD_PLACED, cluster_events.POD_CHANGED))


class PlacedPod:
    """A pod that counts on a node. `slot` is -1 while its node is unknown."""

    __slots__ = ("assumed", "footprint", "node", "pod", "slot", "terminating")

    def __init__(self, pod: Pod, footprint: Footprint, node: str, slot: int, *, assumed: bool) -> None:
        self.pod = pod
        self.footprint = footprint
        self.node = node
        self.slot = slot
        self.terminating = pod.metadata.deletion_timestamp is not None
        self.assumed = assumed


class Cluster(NodeColumns):
    """Nodes, pods on them and volumes; `change` and `remove` take events, `assume` and `forget` take binds."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.pod_counts = PodCounts(self)
        self.owner_selectors = OwnerSelectors()
        self.volumes = Volumes(self)
        self.usage_log = ChangeLog()
        self.node_log = ChangeLog()
        self.versions: dict[str, int] = {}
        self.pods: dict[str, PlacedPod] = {}
        self.pods_by_slot: dict[int, dict[str, PlacedPod]] = {}
        self.locked = False  # a trial is open: only the trial may change anything
        self._on_unknown_nodes: dict[str, dict[str, PlacedPod]] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._footprints = FootprintIndex(self, self.pod_counts, self.add_label_keys)

    # --- events ------------------------------------------------------------------------------------

    def change(self, kind: str, obj: Any) -> ClusterEvents:
        """Take in an object as it is now; says what that changed for the scheduler."""
        self._check_unlocked()
        match kind:
            case "Pod":
                return self._pod(obj)
            case "Node":
                return self._node(obj)
            case "Namespace":
                return self._namespace(obj.metadata.name, obj.metadata.labels or {})
            case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet":
                return self._selector(self.owner_selectors.put(kind, obj))
            case "PersistentVolume" | "PersistentVolumeClaim" | "StorageClass" | "CSINode":
                return self._stored(self.volumes.put(obj))
            case _:
                return cluster_events.NOTHING

    def remove(self, kind: str, namespace: str, name: str, uid: str = "") -> ClusterEvents:
        """Take note that an object is gone; with a uid, that pod and not a later one of the same name."""
        self._check_unlocked()
        match kind:
            case "Pod":
                return self._leave(uid or self._uids.get((namespace, name), ""))
            case "Node":
                return self._node_gone(name)
            case "Namespace":
                return self._namespace(name, None)
            case "Service" | "ReplicationController" | "ReplicaSet" | "StatefulSet":
                return self._selector(frozenset() if self.owner_selectors.drop(kind, namespace, name) else None)
            case "PersistentVolume" | "PersistentVolumeClaim" | "StorageClass" | "CSINode":
                return self._stored(self.volumes.drop(kind, namespace, name))
            case _:
                return cluster_events.NOTHING

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on a node before the API has confirmed it."""
        self._check_unlocked()
        self._enter(pod, node, assumed=True)

    def assume_many(self, seated: Iterable[tuple[Pod, Footprint, str]]) -> None:
        """`assume` in turn for pods whose footprints are known; what a node gains is added up first."""
        self._check_unlocked()
        gained: dict[Footprint, dict[int, int]] = {}
        for pod, footprint, node in seated:
            slot = self.index.get(node, -1)
            if slot < 0 or footprint.claims or pod.metadata.deletion_timestamp is not None:
                self.assume(pod, node)  # claims take free volumes in turn; the others do not count like the rest
                continue
            entry = self._note(pod, footprint, node, slot, assumed=True)
            self.pods_by_slot.setdefault(slot, {})[pod.metadata.uid] = entry
            counts = gained.setdefault(footprint, {})
            counts[slot] = counts.get(slot, 0) + 1
        for footprint, counts in gained.items():
            self.add_usage_many(footprint, np.array(list(counts)), np.array(list(counts.values())))

    def forget(self, uid: str) -> None:
        """Take back an assumption that did not come true. A pod that the API shows as bound stays."""
        self._check_unlocked()
        entry = self.pods.get(uid)
        if entry is not None and entry.assumed:
            self._leave(uid)

    # --- questions ---------------------------------------------------------------------------------

    def footprint(self, pod: Pod) -> Footprint:
        return self._footprints.footprint(pod)

    def pods_on(self, slot: int) -> Iterable[PlacedPod]:
        return self.pods_by_slot.get(slot, {}).values()

    # --- pods --------------------------------------------------------------------------------------

    def _pod(self, pod: Pod) -> ClusterEvents:
        uid = pod.metadata.uid
        entry = self.pods.get(uid)
        node = pod.spec.node_name
        if not node:
            if pod.spec.affinity is not None or pod.spec.topology_spread_constraints:
                # Its selectors must be known before any shape is asked for that they could tell apart.
                self.add_label_keys(label_keys(pod.spec))
            # While a bind is in flight the watch may still show the pod without a node.
            return cluster_events.NOTHING if entry is None or entry.assumed else self._leave(uid)
        if pod.status.phase in _FINISHED:
            return cluster_events.NOTHING if entry is None else self._leave(uid)
        if entry is None:
            return self._enter(pod, node, assumed=False)
        if entry.node == node and _counts_alike(entry.pod, pod):
            entry.pod = pod
            entry.assumed = False
            return cluster_events.NOTHING
        left = self._leave(uid)
        self._enter(pod, node, assumed=False)
        return _MOVED if left else _PLACED

    def _enter(self, pod: Pod, node: str, *, assumed: bool) -> ClusterEvents:
        slot = self.index.get(node, -1)
        entry = self._note(pod, self._footprints.footprint(pod), node, slot, assumed=assumed)
        if slot < 0:
            self._on_unknown_nodes.setdefault(node, {})[pod.metadata.uid] = entry
            return cluster_events.NOTHING
        self._settle(entry)
        return _PLACED

    def _note(self, pod: Pod, footprint: Footprint, node: str, slot: int, *, assumed: bool) -> PlacedPod:
        """Into the register; what was there under its uid or its name leaves."""
        uid, name = pod.metadata.uid, (pod.metadata.namespace, pod.metadata.name)
        if uid in self.pods:
            self._leave(uid)
        # There is one pod of a name at a time: a new one means that the old one is gone.
        if name in self._uids:
            self._leave(self._uids[name])
        entry = self.pods[uid] = PlacedPod(pod, footprint, node, slot, assumed=assumed)
        self._uids[name] = uid
        return entry

    def _leave(self, uid: str) -> ClusterEvents:
        entry = self.pods.pop(uid, None)
        if entry is None:
            return cluster_events.NOTHING
        meta = entry.pod.metadata
        if self._uids.get((meta.namespace, meta.name)) == uid:
            del self._uids[(meta.namespace, meta.name)]
        if entry.slot < 0:
            _drop(self._on_unknown_nodes, entry.node, uid)
            return cluster_events.NOTHING
        self.add_usage(entry.footprint, entry.slot, -1, dying=entry.terminating)
        _drop(self.pods_by_slot, entry.slot, uid)
        return _GONE

    def _settle(self, entry: PlacedPod) -> None:
        self.add_usage(entry.footprint, entry.slot, 1, dying=entry.terminating)
        self.pods_by_slot.setdefault(entry.slot, {})[entry.pod.metadata.uid] = entry

    def add_usage(self, footprint: Footprint, slot: int, count: int, *, dying: bool = False) -> None:
        """Put so many pods more (or fewer, below 0) on a slot. Its exact inverse is the same with -count."""
        vector, nonzero = footprint.vector, footprint.nonzero
        if count != 1:
            vector, nonzero = vector * count, nonzero * count
        self._all_used[: len(vector), slot] += vector
        self._all_nonzero[:, slot] += nonzero
        footprint.label_class.add(slot, count, dying)
        for tally in footprint.carried:
            tally.add(slot, count)
        if footprint.claims:
            self._use_claims(footprint, slot, count)
        self.usage_log.add(slot)

    def add_usage_many(self, footprint: Footprint, slots: Ints, counts: Ints, *, dying: bool = False) -> None:
        """`load` on distinct slots at once."""
        vector = footprint.vector
        self._all_used[: len(vector), slots] += vector[:, None] * counts
        self._all_nonzero[:, slots] += footprint.nonzero[:, None] * counts
        for slot, count in zip(slots.tolist(), counts.tolist(), strict=True):
            footprint.label_class.add(slot, count, dying)
            for tally in footprint.carried:
                tally.add(slot, count)
            if footprint.claims:
                self._use_claims(footprint, slot, count)
        self.usage_log.add_many(slots)

    def restore_promised(self, state: dict[tuple[str, str], str]) -> None:
        """Who kept which free volume before; a claim that comes back might choose another one."""
        self.volumes.promised.restore(state)
        self.versions["reservations"] = self.volumes.promised.version

    def _use_claims(self, footprint: Footprint, slot: int, count: int) -> None:
        self.volumes.use(footprint.label_class.namespace, footprint.claims, slot, count)
        self.versions["reservations"] = self.volumes.promised.version

    # --- nodes -------------------------------------------------------------------------------------

    def _node(self, node: Node) -> ClusterEvents:
        found = self.put_node(node)
        if found:
            slot = self.index[node.metadata.name]
            self.versions["images"] = self.images_version
            self.node_log.add(slot)
            self.usage_log.add(slot)
            if cluster_events.NODE_ADDED in found:
                self._move_in(node.metadata.name, slot)
        return found

    def _move_in(self, name: str, slot: int) -> None:
        for entry in self._on_unknown_nodes.pop(name, {}).values():
            entry.slot = slot
            self._settle(entry)

    def _node_gone(self, name: str) -> ClusterEvents:
        slot = self.index.get(name)
        if slot is None:
            return cluster_events.NOTHING
        for uid, entry in self.pods_by_slot.pop(slot, {}).items():
            self.add_usage(entry.footprint, slot, -1, dying=entry.terminating)
            entry.slot = -1
            self._on_unknown_nodes.setdefault(name, {})[uid] = entry
        self.drop_node(name)
        self.versions["images"] = self.images_version
        self.node_log.add(slot)
        self.usage_log.add(slot)
        return frozenset((cluster_events.NODE_REMOVED,))

    def _grow(self) -> None:
        super()._grow()
        self.pod_counts.grow(self._capacity)

    # --- the rest ----------------------------------------------------------------------------------

    def _namespace(self, name: str, labels: dict[str, str] | None) -> ClusterEvents:
        return (
            frozenset((cluster_events.NAMESPACE,))
            if self.pod_counts.put_namespace(name, labels)
            else cluster_events.NOTHING
        )

    def _selector(self, keys: frozenset[str] | None) -> ClusterEvents:
        if keys is None:
            return cluster_events.NOTHING
        self.versions["selectors"] = self.versions.get("selectors", 0) + 1
        self.add_label_keys(keys)
        return frozenset((cluster_events.SELECTORS,))

    def _stored(self, changed: bool) -> ClusterEvents:
        if not changed:
            return cluster_events.NOTHING
        self.versions["storage"] = self.versions.get("storage", 0) + 1
        self.versions["reservations"] = self.volumes.promised.version
        return frozenset((cluster_events.STORAGE,))

    def add_label_keys(self, keys: Iterable[str]) -> None:
        """A selector looks at these label keys: tell pods apart by them from now on."""
        fresh = frozenset(keys) - self.pod_counts.keys
        if not fresh:
            return
        self._check_unlocked()
        self.pod_counts.add_label_keys(fresh)
        for entry in self.pods.values():
            labels = entry.pod.metadata.labels
            if labels and not fresh.isdisjoint(labels):
                self._relabel(entry)

    def _relabel(self, entry: PlacedPod) -> None:
        if entry.slot >= 0:
            self.add_usage(entry.footprint, entry.slot, -1, dying=entry.terminating)
        entry.footprint = self._footprints.footprint(entry.pod)
        if entry.slot >= 0:
            self.add_usage(entry.footprint, entry.slot, 1, dying=entry.terminating)

    def _check_unlocked(self) -> None:
        if self.locked:
            raise RuntimeError("the cluster cannot change while a trial is open")


def _counts_alike(old: Pod, new: Pod) -> bool:
    """Whether nothing that a bound pod counts with is different."""
    return (
        (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and (old.metadata.labels or {}) == (new.metadata.labels or {})
        and (old.spec == new.spec or _spec_alike(old, new))
    )


def _spec_alike(old: Pod, new: Pod) -> bool:
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


def _drop(homes: dict[Any, dict[str, PlacedPod]], key: object, uid: str) -> None:
    home = homes.get(key)
    if home is not None:
        home.pop(uid, None)
        if not home:
            del homes[key]
