"""Parts of an object in JSON form; a part that is absent or null is empty."""

from __future__ import annotations

from muster.client.protocol import Obj


def metadata(obj: Obj) -> Obj:
    return part(obj, "metadata")


def part(obj: Obj, name: str) -> Obj:
    """`spec`, `status` or another part that is an object."""
    return obj.get(name) or {}


def conditions(obj: Obj) -> list[Obj]:
    """`status.conditions`."""
    return part(obj, "status").get("conditions") or []
