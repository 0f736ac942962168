"""What the brain wants done: frozen values; nothing happens by making one.

The shell carries them out in the order given. Within one list: conditions and nominations that must
precede an eviction come before it, and no list holds both a `Bind` and an `Evict` of one root. What a pod's
claims need (`SelectNode`, `KeepVolume`) comes right before its `Bind`, which waits until they are bound; the binds
of a group wait for the claims of all its members.
"""

from __future__ import annotations

import msgspec

from muster.scheduler.interface.keys import ObjectRef


class Bind(msgspec.Struct, frozen=True, gc=False, tag_field="do", tag="bind"):
    pod: ObjectRef
    node: str


class Nominate(msgspec.Struct, frozen=True, tag_field="do", tag="nominate"):
    """Write `status.nominatedNodeName`; an empty node clears it."""

    pod: ObjectRef
    node: str


class SelectVolumeNode(msgspec.Struct, frozen=True, tag_field="do", tag="select-node"):
    """Tell the provisioner of a waiting claim which node its pod will use."""

    claim: ObjectRef
    node: str


class PromiseVolume(msgspec.Struct, frozen=True, tag_field="do", tag="keep-volume"):
    """Promise a free volume to a waiting claim, so that it gets this one and nobody else does."""

    volume: str
    claim: ObjectRef


class SetCondition(msgspec.Struct, frozen=True, tag_field="do", tag="condition"):
    about: ObjectRef
    type: str
    status: str
    reason: str
    message: str = ""


class RecordEvent(msgspec.Struct, frozen=True, tag_field="do", tag="emit"):
    """An events.k8s.io event. `kind` is Normal or Warning."""

    about: ObjectRef
    kind: str
    reason: str
    action: str
    note: str
    related: ObjectRef | None = None


class Evict(msgspec.Struct, frozen=True, tag_field="do", tag="evict"):
    """Delete a victim with its own grace period, if it still is the one with this uid."""

    pod: ObjectRef
    preemptor: ObjectRef
    given_back: bool = False  # nobody preempts: its own group gives its seats back


Decision = Bind | Nominate | SelectVolumeNode | PromiseVolume | SetCondition | RecordEvent | Evict
