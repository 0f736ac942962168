"""Claims, volumes, storage classes and attach limits, and which claims are in use on which node.

Use is counted per claim and node. A claim stands for one attachment (driver and handle); several
claims of one volume on a node attach once. When a claim turns out to be another volume than before,
its uses are counted over. A claim in use that is not bound yet keeps a free volume, if there is one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.api.types import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.scheduler.arrays import Ints
from muster.scheduler.columns import NodeColumns
from muster.scheduler.reservations import ClaimKey, Reservations, wanted_by

KINDS = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode")
WAITS = "WaitForFirstConsumer"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"

Stored = PersistentVolume | PersistentVolumeClaim | StorageClass | CSINode


class Attachment(NamedTuple):
    driver: str
    handle: str


class Storage:
    """What is known of volumes, and the counts of their use."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self.claims: dict[ClaimKey, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.reservations = Reservations(self.volumes)
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
        keeper = self.reservations.keeper(name)
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
            self.reservations.release(key)
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
                self.reservations.release(key)

    def _smallest_first(self, namespace: str, names: tuple[str, ...]) -> list[ClaimKey]:
        keys = [(namespace, name) for name in names]
        if len(keys) == 1:
            return keys
        return sorted(keys, key=lambda key: (wanted_by(self.claims[key]) if key in self.claims else 0, key))

    def _reserve(self, key: ClaimKey, slot: int) -> None:
        claim = self.claims.get(key)
        if claim is not None and not bound(claim) and not selected_node(claim):
            self.reservations.reserve(claim, self._columns.node_objects[self._columns.names[slot]])

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
