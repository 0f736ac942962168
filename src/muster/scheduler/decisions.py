"""What the brain wants done: frozen values; nothing happens by making one.

The shell carries them out in the order given. Within one list: conditions and nominations that must
precede an eviction come before it, and no list holds both a `Bind` and an `Evict` of one root. What a pod's
claims need (`SelectNode`, `KeepVolume`) comes right before its `Bind`, which waits until they are bound; the binds
of a group wait for the claims of all its members.
"""

from __future__ import annotations

import msgspec


class Ref(msgspec.Struct, frozen=True, gc=False):
    """One object, so exactly that a later one of the same name is not taken for it."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


class Bind(msgspec.Struct, frozen=True, gc=False, tag_field="do", tag="bind"):
    pod: Ref
    node: str


class Nominate(msgspec.Struct, frozen=True, tag_field="do", tag="nominate"):
    """Write `status.nominatedNodeName`; an empty node clears it."""

    pod: Ref
    node: str


class SelectNode(msgspec.Struct, frozen=True, tag_field="do", tag="select-node"):
    """Tell the provisioner of a waiting claim which node its pod will use."""

    claim: Ref
    node: str


class KeepVolume(msgspec.Struct, frozen=True, tag_field="do", tag="keep-volume"):
    """Promise a free volume to a waiting claim, so that it gets this one and nobody else does."""

    volume: str
    claim: Ref


class SetCondition(msgspec.Struct, frozen=True, tag_field="do", tag="condition"):
    about: Ref
    type: str
    status: str
    reason: str
    message: str = ""


class Emit(msgspec.Struct, frozen=True, tag_field="do", tag="emit"):
    """An events.k8s.io event. `kind` is Normal or Warning."""

    about: Ref
    kind: str
    reason: str
    action: str
    note: str
    related: Ref | None = None


class Evict(msgspec.Struct, frozen=True, tag_field="do", tag="evict"):
    """Delete a victim with its own grace period, if it still is the one with this uid."""

    pod: Ref
    preemptor: Ref
    given_back: bool = False  # nobody preempts: its own group gives its seats back


Decision = Bind | Nominate | SelectNode | KeepVolume | SetCondition | Emit | Evict
