"""The types that controllers decode objects into: metadata only, spec and status as JSON, or the few fields of a pod.

All have `metadata`, so that a controller of all kinds (the garbage collector) can share an informer with the controller
of a single kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.groups import GroupMeta
from muster.api.types import (
    Leaf,
    ObjectMeta,
    OwnerReference,
    PodMeta,
    PodResourceClaim,
    PodResourceClaimStatus,
    SchedulingGroup,
    Toleration,
)
from muster.client.clock import seconds_of

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


class RevisionView(Leaf, frozen=True):
    """A ControllerRevision."""

    metadata: GroupMeta
    data: JSON
    revision: int = 0

    @staticmethod
    def of(obj: JSON) -> RevisionView:
        return msgspec.convert(obj, RevisionView)


class EndpointSliceView(Leaf, frozen=True):
    """An EndpointSlice."""

    metadata: GroupMeta
    address_type: str = ""
    endpoints: list[JSON] | None = None
    ports: list[JSON] | None = None


class StorageClassView(Leaf, frozen=True):
    """A StorageClass."""

    metadata: GroupMeta
    provisioner: str = ""
    reclaim_policy: str = ""
    volume_binding_mode: str = ""


class ConditionView(Leaf, frozen=True):
    """A condition of a pod. Any client can write conditions, so no field is required."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PortView(Leaf, frozen=True):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class ContainerView(Leaf, frozen=True):
    ports: tuple[PortView, ...] | None = None


class PodSpecView(Leaf, frozen=True):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[ContainerView, ...] | None = None
    affinity: JSON | None = None
    scheduler_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    tolerations: tuple[Toleration, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None


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
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[ConditionView, ...] | None = None
    container_statuses: tuple[ContainerStatusView, ...] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None


class PodView(Leaf, frozen=True):
    """The fields of a pod that controllers read."""

    metadata: PodMeta
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


def available_in(pod: PodView, settle: float, now: float) -> float | None:
    """Seconds until a pod has been ready for `settle` seconds, 0.0 when it has; None while it is not ready."""
    if not pod.ready:
        return None
    since = seconds_of(pod.ready_since) or 0.0
    return max(0.0, since + settle - now) if settle else 0.0


def controller_uid(obj: Any) -> str | None:
    """The uid of the controller of an object; the key of the index "by-controller"."""
    owner = controller_of(obj.metadata)
    return owner.uid if owner is not None else None


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner reference with `controller: true`."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def json_of(value: Any) -> Any:
    """A projection as plain JSON."""
    return msgspec.to_builtins(value)
