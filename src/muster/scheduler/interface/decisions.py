"""Decisions of the scheduler: the API calls that the engine is to make, as frozen values.

The engine makes the calls in the order given. Within one list, conditions and nominations that must precede an
eviction come before it, and no list holds both a `Bind` and an `Evict` for one queued entity. `SelectVolumeNode` and
`PromiseVolume` for a pod's claims come right before its `Bind`, which the engine holds until the claims are bound; the
binds of a group are held until the claims of all its members are bound.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.scheduler.interface.keys import ObjectRef


class Bind(msgspec.Struct, frozen=True, gc=False, tag_field="do", tag="bind"):
    """Create the `Binding` of a pod to a node."""

    pod: ObjectRef
    node: str


class Nominate(msgspec.Struct, frozen=True, tag_field="do", tag="nominate"):
    """Set `status.nominatedNodeName` of a pod; an empty node clears it."""

    pod: ObjectRef
    node: str


class SelectVolumeNode(msgspec.Struct, frozen=True, tag_field="do", tag="select-node"):
    """Set `volume.kubernetes.io/selected-node` on an unbound claim, so that its volume is provisioned for that node."""

    claim: ObjectRef
    node: str


class PromiseVolume(msgspec.Struct, frozen=True, tag_field="do", tag="keep-volume"):
    """Set `spec.claimRef` of an available volume to an unbound claim, so that no other claim is bound to it."""

    volume: str
    claim: ObjectRef


class AllocateClaim(msgspec.Struct, frozen=True, tag_field="do", tag="allocate"):
    """Give a resource claim its devices and reserve it for a pod or a group, in one write of its status.

    Without an allocation the claim has its devices already, and is only reserved.
    """

    claim: ObjectRef
    consumer: ObjectRef
    allocation: dict[str, Any] | None = None


class DeallocateClaim(msgspec.Struct, frozen=True, tag_field="do", tag="deallocate"):
    """Take the devices back from a resource claim that is reserved for none but these consumers."""

    claim: ObjectRef
    consumers: tuple[str, ...]  # uids


class SetCondition(msgspec.Struct, frozen=True, tag_field="do", tag="condition"):
    """Set one condition in the status of an object."""

    about: ObjectRef
    type: str
    status: str
    reason: str
    message: str = ""


MOST_NOTE = 1024  # the API cuts the notes of events here


class RecordEvent(msgspec.Struct, frozen=True, tag_field="do", tag="emit"):
    """Record an events.k8s.io/v1 Event. `kind` is its type, Normal or Warning."""

    about: ObjectRef
    kind: str
    reason: str
    action: str
    note: str
    related: ObjectRef | None = None


class Evict(msgspec.Struct, frozen=True, tag_field="do", tag="evict"):
    """Delete a victim with its own grace period, on the condition that it still has this uid and is as last seen."""

    pod: ObjectRef
    preemptor: ObjectRef
    given_back: bool = False  # no preemption: the pod's group stayed below its minimum for the bind timeout


Decision = (
    Bind
    | Nominate
    | SelectVolumeNode
    | PromiseVolume
    | AllocateClaim
    | DeallocateClaim
    | SetCondition
    | RecordEvent
    | Evict
)
