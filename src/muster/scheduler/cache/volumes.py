"""Free volumes kept for claims whose pods have a place but whose volumes are not bound yet.

Without this, two pods of one plan could both count on the only free volume of a node. A claim keeps
the smallest volume that fits it there, until it is bound or its pod is taken away again.

Claims, volumes, storage classes and attach limits, and which claims are in use on which node.

Use is counted per claim and node. A claim stands for one attachment (driver and handle); several
claims of one volume on a node attach once. When a claim turns out to be another volume than before,
its uses are counted over. A claim in use that is not bound yet keeps a free volume, if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from muster.api import quantity, selectors
from muster.api.types import CSINode, Node, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.node_columns import NodeColumns

ClaimKey = tuple[str, str]


class PromisedVolumes:
    """Which claim keeps which volume."""

    def __init__(self, volumes: Mapping[str, PersistentVolume]) -> None:
        self._volumes = volumes
        self._kept: dict[ClaimKey, str] = {}
        self._keepers: dict[str, ClaimKey] = {}
        self.version = 0

    def reserve(self, claim: PersistentVolumeClaim, node: Node) -> None:
        """Keep a volume for a claim whose pod is to run on the node, if there is a free one."""
        key = (claim.metadata.namespace, claim.metadata.name)
        fitting = [volume for volume in self._volumes.values() if fits(volume, claim) and reaches(volume, node)]
        for volume in sorted(fitting, key=lambda volume: (size_of(volume), volume.metadata.name)):
            if self.free_for(volume, key):
                self._kept[key] = volume.metadata.name
                self._keepers[volume.metadata.name] = key
                self.version += 1
                return

    def release(self, key: ClaimKey) -> None:
        volume = self._kept.pop(key, None)
        if volume is not None:
            del self._keepers[volume]
            self.version += 1

    def state(self) -> dict[ClaimKey, str]:
        """Who keeps what, as a value to come back to."""
        return dict(self._kept)

    def restore(self, state: dict[ClaimKey, str]) -> None:
        if state != self._kept:
            self._kept = dict(state)
            self._keepers = {volume: key for key, volume in state.items()}
            self.version += 1

    def free_for(self, volume: PersistentVolume, key: ClaimKey) -> bool:
        """Whether no other claim keeps the volume."""
        return self._keepers.get(volume.metadata.name, key) == key

    def kept_for(self, key: ClaimKey) -> str:
        """The volume that a claim keeps, if any."""
        return self._kept.get(key, "")

    def keeper(self, volume: str) -> ClaimKey | None:
        return self._keepers.get(volume)


def fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether an unbound claim could be bound to the volume."""
    spec, wanted, ref = volume.spec, claim.spec, volume.spec.claim_ref
    owner = (claim.metadata.namespace, claim.metadata.name)
    if ref is not None and ((ref.namespace, ref.name) != owner or ref.uid not in ("", claim.metadata.uid)):
        return False
    if ref is None and volume.status.phase not in ("", "Available"):
        return False
    if wanted.selector is not None and not selectors.matches(wanted.selector, volume.metadata.labels):
        return False
    enough = size_of(volume) >= wanted_by(claim)
    modes = set(wanted.access_modes or ()) <= set(spec.access_modes or ())
    return enough and modes and spec.storage_class_name == (wanted.storage_class_name or "")


def reaches(volume: PersistentVolume, node: Node) -> bool:
    """Whether the node can use the volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return selectors.node_matches(affinity.required, node.metadata.name, node.metadata.labels)


def size_of(volume: PersistentVolume) -> int:
    return quantity.value((volume.spec.capacity or {}).get("storage", 0))


def wanted_by(claim: PersistentVolumeClaim) -> int:
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    return quantity.value(requests.get("storage", 0))


KINDS = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode")


WAITS = "WaitForFirstConsumer"


BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


SELECTED_NODE = "volume.kubernetes.io/selected-node"


Stored = PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode


class Attachment(NamedTuple):
    driver: str
    handle: str


class Volumes:
    """What is known of volumes, and the counts of their use."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self.claims: dict[ClaimKey, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.promised = PromisedVolumes(self.volumes)
        self._uses: dict[ClaimKey, dict[int, int]] = {}
        self._counted: dict[ClaimKey, Attachment] = {}
        self._attached: dict[Attachment, dict[int, int]] = {}

    # --- objects -----------------------------------------------------------------------------------

    def put(self, obj: Stored) -> bool:
        """Take an object in; False if nothing that counts is different."""
        name = obj.metadata.name
        match obj:
            case PersistentVolumeClaim():
                key = (obj.metadata.namespace, name)
                old, self.claims[key] = self.claims.get(key), obj
                return (old is None or not _claim_alike(old, obj)) and self._recount([key])
            case PersistentVolume():
                before, self.volumes[name] = self.volumes.get(name), obj
                return (before is None or not _volume_alike(before, obj)) and self._recount_volume(name)
            case StorageClass():
                known, self.classes[name] = self.classes.get(name), obj
                return (known is None or not _class_alike(known, obj)) and self._recount(list(self._counted))
            case CSINode():
                had, self.csi_nodes[name] = self.csi_nodes.get(name), obj
                return had is None or had.spec != obj.spec

    def drop(self, kind: str, namespace: str, name: str) -> bool:
        """Forget an object; False if it was not known."""
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
        keeper = self.promised.keeper(name)
        keys = [key for key in self._counted if key == keeper or self._volume_name(key) == name]
        return self._recount(keys)

    def _volume_name(self, key: ClaimKey) -> str:
        claim = self.claims.get(key)
        return claim.spec.volume_name if claim is not None else ""

    def _recount(self, keys: list[ClaimKey]) -> bool:
        """Count over the uses of claims that stand for another attachment now."""
        for key in keys:
            old, now = self._counted.get(key), self.attachment(key)
            if old is not None and now != old:
                for slot in self._uses[key]:
                    self._attach(old, slot, -1)
                    self._attach(now, slot, 1)
                self._counted[key] = now
            self.promised.release(key)
            for slot in self._uses.get(key, ()):
                self._reserve(key, slot)
                break
        return True

    # --- use ---------------------------------------------------------------------------------------

    def use(self, namespace: str, names: tuple[str, ...], slot: int, count: int) -> None:
        """So many pods more (or fewer) use these claims on a slot."""
        for key in self._smallest_first(namespace, names):
            uses = self._uses.setdefault(key, {})
            before = uses.get(slot, 0)
            now = before + count
            if not uses:
                self._reserve(key, slot)
            if now:
                uses[slot] = now
            else:
                uses.pop(slot, None)
            if (before == 0) != (now == 0):
                self._attach(self._counted.setdefault(key, self.attachment(key)), slot, 1 if now else -1)
            if not uses:
                del self._uses[key], self._counted[key]
                self.promised.release(key)

    def _smallest_first(self, namespace: str, names: tuple[str, ...]) -> list[ClaimKey]:
        keys = [(namespace, name) for name in names]
        if len(keys) == 1:
            return keys
        return sorted(keys, key=lambda key: (wanted_by(self.claims[key]) if key in self.claims else 0, key))

    def _reserve(self, key: ClaimKey, slot: int) -> None:
        claim = self.claims.get(key)
        if claim is not None and not bound(claim) and not selected_node(claim):
            self.promised.reserve(claim, self._columns.node_objects[self._columns.names[slot]])

    def first_user(self, key: ClaimKey) -> str:
        """The node of the first pod that uses the claim, empty if none does."""
        slot = next(iter(self._uses.get(key, ())), None)
        return self._columns.names[slot] if slot is not None else ""

    def in_use(self, key: ClaimKey) -> bool:
        """Whether a pod anywhere uses the claim."""
        return key in self._uses

    def _attach(self, what: Attachment, slot: int, count: int) -> None:
        slots = self._attached.setdefault(what, {})
        slots[slot] = slots.get(slot, 0) + count
        if not slots[slot]:
            del slots[slot]
        if not slots:
            del self._attached[what]

    # --- questions ---------------------------------------------------------------------------------

    def volume_of(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        return self.volumes.get(claim.spec.volume_name)

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self.classes.get(claim.spec.storage_class_name or "")

    def attachment(self, key: ClaimKey) -> Attachment:
        """The driver and handle a claim attaches; no driver where it is not one that attaches."""
        claim = self.claims.get(key)
        if claim is None:
            return Attachment("", "")
        if claim.spec.volume_name:
            volume = self.volume_of(claim)
            csi = volume.spec.csi if volume is not None else None
            return Attachment(csi.driver, csi.volume_handle) if csi is not None else Attachment("", "")
        # It will be a volume of its own once provisioned.
        provisioned_by = self.class_of(claim)
        return Attachment(provisioned_by.provisioner if provisioned_by else "", f"{key[0]}/{key[1]}")

    def attached(self, driver: str) -> Ints:
        """Distinct volumes of a driver per slot."""
        counts = np.zeros(self._columns.size, dtype=np.int64)
        for what, slots in self._attached.items():
            if what.driver == driver:
                counts[list(slots)] += 1
        return counts

    def attached_at(self, what: Attachment) -> Ints:
        """1 per slot where the volume is attached already."""
        there = np.zeros(self._columns.size, dtype=np.int64)
        there[list(self._attached.get(what, {}))] = 1
        return there

    def limits(self, driver: str) -> Ints:
        """How many volumes of a driver each slot can attach; -1 for no limit."""
        limits = np.full(self._columns.size, -1, dtype=np.int64)
        for name, csi in self.csi_nodes.items():
            slot = self._columns.index.get(name)
            for found in csi.spec.drivers or ():
                if slot is not None and found.name == driver and found.allocatable is not None:
                    count = found.allocatable.count
                    limits[slot] = -1 if count is None else count
        return limits


def bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is tied to its volume for good."""
    done = BIND_COMPLETED in (claim.metadata.annotations or {}) or claim.status.phase == "Bound"
    return bool(claim.spec.volume_name) and done


def selected_node(claim: PersistentVolumeClaim) -> str:
    """The node for which a volume is being made for the claim, if any."""
    return (claim.metadata.annotations or {}).get(SELECTED_NODE, "")


def _claim_alike(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    return (
        old.spec == new.spec
        and old.status.phase == new.status.phase
        and old.metadata.uid == new.metadata.uid
        and (old.metadata.annotations or {}) == (new.metadata.annotations or {})
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
    )


def _volume_alike(old: PersistentVolume, new: PersistentVolume) -> bool:
    same = old.spec == new.spec and old.status == new.status
    return same and (old.metadata.labels or {}) == (new.metadata.labels or {})


def _class_alike(old: StorageClass, new: StorageClass) -> bool:
    return (old.provisioner, old.volume_binding_mode, old.allowed_topologies) == (
        new.provisioner,
        new.volume_binding_mode,
        new.allowed_topologies,
    )
