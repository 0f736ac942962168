"""The types that controllers decode objects into: metadata only, spec and status as JSON, or the few fields of a pod.

All have `metadata`, so that a controller of all kinds (the garbage collector) can share an informer with the controller
of a single kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.groups import GroupMeta
from muster.api.types import Leaf, ObjectMeta, OwnerReference, SchedulingGroup, Toleration

JSON = dict[str, Any]


class MetadataOnly(Leaf, frozen=True):
    """Any object, decoded to its metadata, like PartialObjectMetadata."""

    metadata: GroupMeta


class UnstructuredObject(Leaf, frozen=True):
    """An object with its spec and status as plain JSON."""

    metadata: GroupMeta
    stored_spec: JSON | None = msgspec.field(default=None, name="spec")
    stored_status: JSON | None = msgspec.field(default=None, name="status")

    @property
    def spec(self) -> JSON:
        return self.stored_spec or {}

    @property
    def status(self) -> JSON:
        return self.stored_status or {}


class ConditionView(Leaf, frozen=True):
    """A condition of a pod. Any client can write conditions, so no field is required."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodSpecView(Leaf, frozen=True):
    node_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    tolerations: tuple[Toleration, ...] | None = None


class Terminated(Leaf, frozen=True):
    exit_code: int = 0


class ContainerState(Leaf, frozen=True):
    terminated: Terminated | None = None


class ContainerStatusView(Leaf, frozen=True):
    name: str = ""
    state: ContainerState | None = None

    @property
    def exit_code(self) -> int | None:
        """What the container ended with; None while it has not ended."""
        ended = self.state.terminated if self.state is not None else None
        return ended.exit_code if ended is not None else None


class PodStatusView(Leaf, frozen=True):
    phase: str = ""
    reason: str = ""
    conditions: tuple[ConditionView, ...] | None = None
    container_statuses: tuple[ContainerStatusView, ...] | None = None


class PodView(Leaf, frozen=True):
    """The fields of a pod that controllers read."""

    metadata: ObjectMeta
    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()

    @property
    def finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def going(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions or ())

    @property
    def ready_since(self) -> str | None:
        for each in self.status.conditions or ():
            if each.type == "Ready" and each.status == "True":
                return each.last_transition_time
        return None


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner reference with `controller: true`."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def json_of(value: Any) -> Any:
    """A projection as plain JSON."""
    return msgspec.to_builtins(value)
