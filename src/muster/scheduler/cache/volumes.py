"""Volumes: claims, volumes, storage classes and attach limits, and which node uses which claim.

Uses are counted by claim and node. A claim stands for one attachment (CSI driver and volume handle), so several claims
of one volume on a node attach it once; when a claim turns out to be another volume, its uses are counted again.

Two pods of one plan must not both rely on the only available volume of a node. So a claim that is in use but not bound
has an available volume promised to it: the smallest that it can be bound to there, until the claim is bound or its
pod is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from muster.api import quantity, selectors
from muster.api.types import CSINode, Node, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.node_columns import NodeColumns

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"

ClaimKey = tuple[str, str]  # namespace and name
StorageObject = PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode


class Attachment(NamedTuple):
    """A volume as a CSI driver attaches it. No driver: nothing is attached."""

    driver: str
    handle: str


class PromisedVolumes:
    """Available volumes promised to unbound claims in use; at most one volume for each claim."""

    def __init__(self, volumes: Mapping[str, PersistentVolume]) -> None:
        self._volumes = volumes
        self._by_claim: dict[ClaimKey, str] = {}
        self._by_volume: dict[str, ClaimKey] = {}
        self.version = 0

    def promise(self, claim: PersistentVolumeClaim, node: Node) -> None:
        """Promise the smallest available volume that the node can use to a claim, if there is one."""
        key = (claim.metadata.namespace, claim.metadata.name)
        suitable = [v for v in self._volumes.values() if can_bind(v, claim) and accessible_from(v, node)]
        for volume in sorted(suitable, key=lambda volume: (volume_size(volume), volume.metadata.name)):
            if self.free_for(volume, key):
                self._by_claim[key] = volume.metadata.name
                self._by_volume[volume.metadata.name] = key
                self.version += 1
                return

    def release(self, key: ClaimKey) -> None:
        volume = self._by_claim.pop(key, None)
        if volume is not None:
            del self._by_volume[volume]
            self.version += 1

    def state(self) -> dict[ClaimKey, str]:
        """A copy of all promises, for `restore`."""
        return dict(self._by_claim)

    def restore(self, state: dict[ClaimKey, str]) -> None:
        if state != self._by_claim:
            self._by_claim = dict(state)
            self._by_volume = {volume: key for key, volume in state.items()}
            self.version += 1

    def free_for(self, volume: PersistentVolume, key: ClaimKey) -> bool:
        """Whether the volume is not promised to another claim."""
        return self._by_volume.get(volume.metadata.name, key) == key

    def volume_of(self, key: ClaimKey) -> str:
        """The name of the volume that is promised to a claim, or empty."""
        return self._by_claim.get(key, "")

    def claim_of(self, volume: str) -> ClaimKey | None:
        """The claim that a volume is promised to."""
        return self._by_volume.get(volume)


class Volumes:
    """Storage objects of the cluster, and how many pods use each claim on each node."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self.claims: dict[ClaimKey, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.promised = PromisedVolumes(self.volumes)
        self._uses: dict[ClaimKey, dict[int, int]] = {}  # claim -> slot -> pods
        self._counted: dict[ClaimKey, Attachment] = {}  # what a claim in use is counted as in `_attached`
        self._attached: dict[Attachment, dict[int, int]] = {}  # attachment -> slot -> claims in use

    # --- objects -----------------------------------------------------------------------------------

    def set(self, obj: StorageObject) -> bool:
        """Add or update an object; False if nothing that scheduling reads is different."""
        name = obj.metadata.name
        match obj:
            case PersistentVolumeClaim():
                key = (obj.metadata.namespace, name)
                old, self.claims[key] = self.claims.get(key), obj
                return (old is None or not _same_claim(old, obj)) and self._recount([key])
            case PersistentVolume():
                before, self.volumes[name] = self.volumes.get(name), obj
                return (before is None or not _same_volume(before, obj)) and self._recount_volume(name)
            case StorageClass():
                known, self.classes[name] = self.classes.get(name), obj
                return (known is None or not _same_class(known, obj)) and self._recount(list(self._counted))
            case CSINode():
                had, self.csi_nodes[name] = self.csi_nodes.get(name), obj
                return had is None or had.spec != obj.spec

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """Remove an object; False if it was not known."""
        match kind:
            case "PersistentVolumeClaim":
                gone = self.claims.pop((namespace, name), None)
                return gone is not None and self._recount([(namespace, name)])
            case "PersistentVolume":
                return self.volumes.pop(name, None) is not None and self._recount_volume(name)
            case "StorageClass":
                return self.classes.pop(name, None) is not None and self._recount(list(self._counted))
            case _:
                return self.csi_nodes.pop(name, None) is not None

    def _recount_volume(self, name: str) -> bool:
        promised_to = self.promised.claim_of(name)
        keys = [key for key in self._counted if key == promised_to or self._volume_name(key) == name]
        return self._recount(keys)

    def _volume_name(self, key: ClaimKey) -> str:
        claim = self.claims.get(key)
        return claim.spec.volume_name if claim is not None else ""

    def _recount(self, keys: list[ClaimKey]) -> bool:
        """Count the uses of claims again that stand for another attachment now, and renew their promises."""
        for key in keys:
            old, now = self._counted.get(key), self.attachment(key)
            if old is not None and now != old:
                for slot in self._uses[key]:
                    self._add_attachment(old, slot, -1)
                    self._add_attachment(now, slot, 1)
                self._counted[key] = now
            self.promised.release(key)
            for slot in self._uses.get(key, ()):
                self._promise(key, slot)
                break
        return True

    # --- use ---------------------------------------------------------------------------------------

    def add_users(self, namespace: str, names: tuple[str, ...], slot: int, count: int) -> None:
        """Add pods (remove, below 0) that use these claims on a slot."""
        for key in self._smallest_first(namespace, names):
            uses = self._uses.setdefault(key, {})
            before = uses.get(slot, 0)
            now = before + count
            if not uses:
                self._promise(key, slot)
            if now:
                uses[slot] = now
            else:
                uses.pop(slot, None)
            if (before == 0) != (now == 0):
                self._add_attachment(self._counted.setdefault(key, self.attachment(key)), slot, 1 if now else -1)
            if not uses:
                del self._uses[key], self._counted[key]
                self.promised.release(key)

    def _smallest_first(self, namespace: str, names: tuple[str, ...]) -> list[ClaimKey]:
        keys = [(namespace, name) for name in names]
        if len(keys) == 1:
            return keys
        return sorted(keys, key=lambda key: (claim_size(self.claims[key]) if key in self.claims else 0, key))

    def _promise(self, key: ClaimKey, slot: int) -> None:
        claim = self.claims.get(key)
        if claim is not None and not bound(claim) and not selected_node(claim):
            self.promised.promise(claim, self._columns.node_objects[self._columns.names[slot]])

    def node_of_first_user(self, key: ClaimKey) -> str:
        """The node on which the claim was used first, empty if it is not in use."""
        slot = next(iter(self._uses.get(key, ())), None)
        return self._columns.names[slot] if slot is not None else ""

    def in_use(self, key: ClaimKey) -> bool:
        """Whether a pod on any node uses the claim."""
        return key in self._uses

    def _add_attachment(self, what: Attachment, slot: int, count: int) -> None:
        slots = self._attached.setdefault(what, {})
        slots[slot] = slots.get(slot, 0) + count
        if not slots[slot]:
            del slots[slot]
        if not slots:
            del self._attached[what]

    # --- reading -----------------------------------------------------------------------------------

    def volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        return self.volumes.get(claim.spec.volume_name)

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self.classes.get(claim.spec.storage_class_name or "")

    def attachment(self, key: ClaimKey) -> Attachment:
        """The attachment of a claim; without a driver if its volume is not a CSI volume."""
        claim = self.claims.get(key)
        if claim is None:
            return Attachment("", "")
        if claim.spec.volume_name:
            volume = self.volume_of(claim)
            csi = volume.spec.csi if volume is not None else None
            return Attachment(csi.driver, csi.volume_handle) if csi is not None else Attachment("", "")
        # Not bound yet: it will be a new volume of its class.
        provisioned_by = self.class_of(claim)
        return Attachment(provisioned_by.provisioner if provisioned_by else "", f"{key[0]}/{key[1]}")

    def attached(self, driver: str) -> Ints:
        """Per slot, the number of distinct volumes of a driver that are attached."""
        counts = np.zeros(self._columns.size, dtype=np.int64)
        for what, slots in self._attached.items():
            if what.driver == driver:
                counts[list(slots)] += 1
        return counts

    def attached_at(self, what: Attachment) -> Ints:
        """Per slot, 1 where the volume is attached, else 0."""
        there = np.zeros(self._columns.size, dtype=np.int64)
        there[list(self._attached.get(what, {}))] = 1
        return there

    def limits(self, driver: str) -> Ints:
        """Per slot, how many volumes of a driver can be attached; -1 for no limit (CSINode `allocatable.count`)."""
        limits = np.full(self._columns.size, -1, dtype=np.int64)
        for name, csi in self.csi_nodes.items():
            slot = self._columns.index.get(name)
            for found in csi.spec.drivers or ():
                if slot is not None and found.name == driver and found.allocatable is not None:
                    count = found.allocatable.count
                    limits[slot] = -1 if count is None else count
        return limits


# --- claims and volumes -----------------------------------------------------------------------------


def can_bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether an unbound claim could be bound to the volume: size, class, access modes, selector, claimRef."""
    spec, requested, ref = volume.spec, claim.spec, volume.spec.claim_ref
    owner = (claim.metadata.namespace, claim.metadata.name)
    if ref is not None and ((ref.namespace, ref.name) != owner or ref.uid not in ("", claim.metadata.uid)):
        return False
    if ref is None and volume.status.phase not in ("", "Available"):
        return False
    if requested.selector is not None and not selectors.matches(requested.selector, volume.metadata.labels):
        return False
    enough = volume_size(volume) >= claim_size(claim)
    modes = set(requested.access_modes or ()) <= set(spec.access_modes or ())
    return enough and modes and spec.storage_class_name == (requested.storage_class_name or "")


def accessible_from(volume: PersistentVolume, node: Node) -> bool:
    """Whether the volume's node affinity allows the node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return selectors.node_matches(affinity.required, node.metadata.name, node.metadata.labels)


def volume_size(volume: PersistentVolume) -> int:
    return quantity.value((volume.spec.capacity or {}).get("storage", 0))


def claim_size(claim: PersistentVolumeClaim) -> int:
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    return quantity.value(requests.get("storage", 0))


def bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is bound to its volume and the binding is complete."""
    done = BIND_COMPLETED in (claim.metadata.annotations or {}) or claim.status.phase == "Bound"
    return bool(claim.spec.volume_name) and done


def selected_node(claim: PersistentVolumeClaim) -> str:
    """The node for which a volume of the claim is being provisioned, or empty."""
    return (claim.metadata.annotations or {}).get(SELECTED_NODE, "")


# --- changes that matter ----------------------------------------------------------------------------


def _same_claim(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    return (
        old.spec == new.spec
        and old.status.phase == new.status.phase
        and old.metadata.uid == new.metadata.uid
        and (old.metadata.annotations or {}) == (new.metadata.annotations or {})
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
    )


def _same_volume(old: PersistentVolume, new: PersistentVolume) -> bool:
    same = old.spec == new.spec and old.status == new.status
    return same and (old.metadata.labels or {}) == (new.metadata.labels or {})


def _same_class(old: StorageClass, new: StorageClass) -> bool:
    return (old.provisioner, old.volume_binding_mode, old.allowed_topologies) == (
        new.provisioner,
        new.volume_binding_mode,
        new.allowed_topologies,
    )
