"""What the brain is told: values that can be stored, replayed and compared.

`Changed` and `Removed` are the facts of the cluster as the watches show them. The others are the
answers to the brain's own decisions. Nothing here says when something happened: time is an argument
of `Brain.handle`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api import groups, types

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
}


class ObjectUpdated(msgspec.Struct, frozen=True, tag="changed"):
    """An object exists in this form now, whether it is new or was changed."""

    kind: str
    object: Any


class ObjectDeleted(msgspec.Struct, frozen=True, tag="removed"):
    """An object is gone."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


class CacheSynced(msgspec.Struct, frozen=True, tag="synced"):
    """The first lists are complete: from now on the brain may decide."""


class BindSucceeded(msgspec.Struct, frozen=True, tag="bound"):
    """The API accepted a `Bind`. The watch will show it too, perhaps earlier."""

    uid: str
    node: str


class BindFailed(msgspec.Struct, frozen=True, tag="bind-failed"):
    """The API refused a `Bind` for good, or its fate was looked up and it did not happen."""

    uid: str
    node: str
    reason: str


class EvictionFailed(msgspec.Struct, frozen=True, tag="evict-failed"):
    """A victim could not be deleted; the plan that needed it is void."""

    uid: str
    reason: str


Event = ObjectUpdated | ObjectDeleted | CacheSynced | BindSucceeded | BindFailed | EvictionFailed
