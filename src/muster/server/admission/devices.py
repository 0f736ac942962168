"""Devices: who may administer them, and since when a taint is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from muster.api import errors
from muster.api.devices import ADMIN_ACCESS_LABEL
from muster.api.errors import FieldError
from muster.server.resources.kind import Obj, Write

_NO_ACCESS = f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"


async def admit_admin_access(write: Write, new: Obj, old: Obj | None) -> None:
    """Only in a namespace with the label may claims ask for devices that others use, and get them."""
    wanted = list(_wanted(write, new, old))
    if not wanted:
        return
    namespace = write.reader.get("namespaces", "", "", write.namespace) or {}
    if ((namespace.get("metadata") or {}).get("labels") or {}).get(ADMIN_ACCESS_LABEL) == "true":
        return
    found = [FieldError(errors.FORBIDDEN, path, "", _NO_ACCESS) for path in wanted]
    raise errors.invalid(write.kind.group, write.kind.kind, write.name, found)


def _wanted(write: Write, new: Obj, old: Obj | None) -> Iterator[str]:
    """The paths at which a write asks for access for administration."""
    if write.subresource == "status":
        allocation: Obj | None = (new.get("status") or {}).get("allocation")
        if allocation is None or ((old or {}).get("status") or {}).get("allocation") is not None:
            return
        for position, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
            if result.get("adminAccess"):
                yield f"status.allocation.devices.results[{position}].adminAccess"
    elif old is None:
        spec: Obj = new.get("spec") or {}
        path = "spec"
        if write.kind.plural == "resourceclaimtemplates":
            spec, path = spec.get("spec") or {}, "spec.spec"
        for position, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
            if (request.get("exactly") or {}).get("adminAccess"):
                yield f"{path}.devices.requests[{position}].adminAccess"


async def admit_slice_taints(write: Write, new: Obj, old: Obj | None) -> None:
    """A taint without a time is there since now."""
    for device in (new.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            _set_time(taint, write.now)


async def admit_taint_rule(write: Write, new: Obj, old: Obj | None) -> None:
    """The same for the taint of a rule; one with another effect is new."""
    if not write.subresource:
        taint: Obj | None = (new.get("spec") or {}).get("taint")
        if taint is not None:
            _set_time(taint, write.now)


def _set_time(taint: Obj, now: float) -> None:
    if not taint.get("timeAdded"):
        taint["timeAdded"] = datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
