"""Events of the scheduler: its only input, as values that can be stored, compared and replayed.

`ObjectUpdated`, `ObjectDeleted` and `CacheSynced` come from list and watch. The others are the results of the
scheduler's own decisions. No event contains a time: time is an argument of `Scheduler.handle`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api import devices, groups, types

KINDS: dict[str, type[msgspec.Struct]] = {
    "Pod": types.Pod,
    "Node": types.Node,
    "PodGroup": groups.PodGroup,
    "CompositePodGroup": groups.CompositePodGroup,
    "Workload": groups.Workload,
    "PriorityClass": types.PriorityClass,
    "PodDisruptionBudget": types.PodDisruptionBudget,
    "Namespace": types.Namespace,
    "Service": types.Service,
    "ReplicationController": types.ReplicationController,
    "ReplicaSet": types.ReplicaSet,
    "StatefulSet": types.StatefulSet,
    "PersistentVolume": types.PersistentVolume,
    "PersistentVolumeClaim": types.PersistentVolumeClaim,
    "StorageClass": types.StorageClass,
    "CSINode": types.CSINode,
    "ResourceSlice": devices.ResourceSlice,
    "ResourceClaim": devices.ResourceClaim,
    "DeviceClass": devices.DeviceClass,
    "DeviceTaintRule": devices.DeviceTaintRule,
}


class ObjectUpdated(msgspec.Struct, frozen=True, tag="changed"):
    """An object was added or modified; `object` is its present form."""

    kind: str
    object: Any


class ObjectDeleted(msgspec.Struct, frozen=True, tag="removed"):
    """An object was deleted."""

    kind: str
    namespace: str
    name: str
    uid: str


class CacheSynced(msgspec.Struct, frozen=True, tag="synced"):
    """The first list of every watched kind is complete; before this the scheduler makes no decisions."""


class BindSucceeded(msgspec.Struct, frozen=True, tag="bound"):
    """The API server accepted a `Bind`. The watch shows the bound pod as well, before or after this event."""

    uid: str
    node: str


# Why a bind did not happen.
REFUSED = "refused"  # the server would not, or could not
FORBIDDEN = "forbidden"  # the scheduler lacks the right to bind pods in this namespace
POD_CHANGED = "pod_changed"  # the pod is gone or bound elsewhere; the watch shows it, before or after this event
LOST_RACE = "lost_race"  # what was counted on is taken or gone, as the watches have shown already


class BindFailed(msgspec.Struct, frozen=True, tag="bind-failed"):
    """A `Bind` did not happen: it was rejected for good, or its result was unknown and the pod was found unbound."""

    uid: str
    node: str
    reason: str
    cause: str = REFUSED


class EvictionFailed(msgspec.Struct, frozen=True, tag="evict-failed"):
    """A victim could not be deleted; the preemption that chose it cannot be completed."""

    uid: str
    reason: str


Event = ObjectUpdated | ObjectDeleted | CacheSynced | BindSucceeded | BindFailed | EvictionFailed
