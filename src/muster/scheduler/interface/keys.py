"""Keys and references of API objects."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class ObjectRef(msgspec.Struct, frozen=True, gc=False):
    """One object, so exactly that a later one of the same name is not taken for it."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


class EntityKey(NamedTuple):
    """One group or single pod. The kind keeps a PodGroup and a composite of one name apart."""

    kind: str  # "PodGroup", "CompositePodGroup" or "Pod"
    namespace: str
    name: str
