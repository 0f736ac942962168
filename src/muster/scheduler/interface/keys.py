"""Keys and references of API objects."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class ObjectRef(msgspec.Struct, frozen=True, gc=False):
    """Reference to one object. The uid tells it from a later object of the same name."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


class EntityKey(NamedTuple):
    """Key of a group or of a pod without a group. A PodGroup and a CompositePodGroup may have the same name."""

    kind: str  # "PodGroup", "CompositePodGroup" or "Pod"
    namespace: str
    name: str
