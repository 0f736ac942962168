"""Free volumes kept for claims whose pods have a place but whose volumes are not bound yet.

Without this, two pods of one plan could both count on the only free volume of a node. A claim keeps
the smallest volume that fits it there, until it is bound or its pod is taken away again.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api import quantity, selectors
from muster.api.types import Node, PersistentVolume, PersistentVolumeClaim

ClaimKey = tuple[str, str]


class Reservations:
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
