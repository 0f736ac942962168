"""Assigns cluster IPs: every service that needs one gets its own out of one range."""

from __future__ import annotations

import zlib

from muster.api.errors import INVALID, FieldError, invalid
from muster.server.resources.kind import Obj, Write

RANGE = "10.96"
_RESERVED = frozenset((f"{RANGE}.0.0", f"{RANGE}.0.1", f"{RANGE}.0.10", f"{RANGE}.255.255"))


async def admit_cluster_ip(write: Write, new: Obj, old: Obj | None) -> None:
    """A service without an address gets a free one; one that asks for a taken address is refused."""
    if write.operation == "DELETE" or write.subresource:
        return
    spec: Obj = new.get("spec") or {}
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        if spec.get("clusterIP") == "None":
            spec["clusterIPs"] = ["None"]
        return
    earlier: str = ((old or {}).get("spec") or {}).get("clusterIP") or ""
    asked: str = spec.get("clusterIP") or earlier
    if not asked or asked != earlier:
        taken = {(each.get("spec") or {}).get("clusterIP") for each in write.reader.list("services", "")}
        if asked in taken:
            detail = f"failed to allocate IP {asked}: provided IP is already allocated"
            raise invalid("", "Service", write.name, [FieldError(INVALID, "spec.clusterIPs", [asked], detail)])
        asked = asked or _free(f"{write.namespace}/{write.name}", taken)
    spec["clusterIP"] = asked
    spec["clusterIPs"] = [asked]


def _free(key: str, taken: set[str | None]) -> str:
    start = zlib.crc32(key.encode())
    for offset in range(65536):
        high, low = divmod((start + offset) % 65536, 256)
        address = f"{RANGE}.{high}.{low}"
        if address not in taken and address not in _RESERVED:
            return address
    raise RuntimeError("no cluster address is free")
