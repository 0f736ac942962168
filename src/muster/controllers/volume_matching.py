"""Which volume a claim may be bound to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api import quantity
from muster.api.selectors import matches
from muster.api.types import LabelSelector
from muster.controllers.objects import UnstructuredObject
from muster.controllers.status import JSON


def best_volume(claim: UnstructuredObject, volumes: Iterable[UnstructuredObject]) -> UnstructuredObject | None:
    """The volume that is kept for the claim, or else the smallest free one that suffices."""
    found = [each for each in volumes if each.metadata.deletion_timestamp is None and can_bind(each, claim)]
    return min(found, key=lambda each: (claim_of(each) is None, size_of(each), each.metadata.name), default=None)


def can_bind(volume: UnstructuredObject, claim: UnstructuredObject) -> bool:
    """Whether a volume is free, or kept for this claim, and is what the claim asks for."""
    kept = claim_of(volume)
    if kept is not None:
        if (kept.get("namespace"), kept.get("name")) != (claim.metadata.namespace, claim.metadata.name):
            return False
        return kept.get("uid") in (None, "", claim.metadata.uid)
    wanted: str = claim.spec.get("volumeName") or ""
    if wanted and wanted != volume.metadata.name:
        return False
    selector: Any = claim.spec.get("selector")
    if selector is not None and not matches(msgspec.convert(selector, LabelSelector), volume.metadata.labels):
        return False
    return (
        (volume.spec.get("storageClassName") or "") == (claim.spec.get("storageClassName") or "")
        and _mode(volume) == _mode(claim)
        and set(claim.spec.get("accessModes") or ()) <= set(volume.spec.get("accessModes") or ())
        and size_of(volume) >= asked_by(claim)
    )


def claim_of(volume: UnstructuredObject) -> JSON | None:
    return volume.spec.get("claimRef")


def size_of(volume: UnstructuredObject) -> int:
    return quantity.value((volume.spec.get("capacity") or {}).get("storage", 0))


def asked_by(claim: UnstructuredObject) -> int:
    requests: JSON = (claim.spec.get("resources") or {}).get("requests") or {}
    return quantity.value(requests.get("storage", 0))


def _mode(obj: UnstructuredObject) -> str:
    return obj.spec.get("volumeMode") or "Filesystem"
