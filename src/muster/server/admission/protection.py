"""Adds the protection finalizer to new groups, so that they outlive their pods and their children."""

from __future__ import annotations

from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.server.resources.kind import Obj, Write

_FINALIZERS = {"podgroups": POD_GROUP_PROTECTION, "compositepodgroups": COMPOSITE_PROTECTION}


async def admit_protection(write: Write, new: Obj, old: Obj | None) -> None:
    """A new PodGroup or CompositePodGroup carries its protection finalizer."""
    if write.operation != "CREATE" or write.subresource:
        return
    finalizer = _FINALIZERS[write.kind.plural]
    metadata: Obj = new["metadata"]
    present: list[str] = metadata.get("finalizers") or []
    if finalizer not in present:
        metadata["finalizers"] = [*present, finalizer]
