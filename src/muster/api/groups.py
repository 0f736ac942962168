"""The group kinds in their hub version (scheduling.k8s.io/v1alpha3): Workload, PodGroup, CompositePodGroup.

Other versions are converted to and from these in `muster.api.versions`. Unlike the projections in
`muster.api.types` these list every field of the API.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from muster.api.types import Condition, Leaf, ObjectMeta

GROUP = "scheduling.k8s.io"
HUB = "v1alpha3"

POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
POD_GROUP_SCHEDULED = "PodGroupScheduled"  # the name of the same condition in v1alpha2
COMPOSITE_INITIALLY_SCHEDULED = "CompositePodGroupInitiallyScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
QUORUM_MET = "scheduling.muster.dev/QuorumMet"

POD_GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"
COMPOSITE_PROTECTION = "scheduling.k8s.io/compositepodgroup-protection"

MAX_TEMPLATES = 8
MAX_DEPTH = 4
MAX_RESOURCE_CLAIMS = 4
MAX_PRIORITY = 1_000_000_000

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
NEVER = "Never"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class GroupMeta(ObjectMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Metadata of a group, with the annotations that carry what another version cannot express."""

    annotations: dict[str, str] | None = None


class Empty(Leaf, frozen=True):
    """A union member whose presence is its meaning."""


class GangPolicy(Leaf, frozen=True):
    min_count: Int32 | None = None


class SchedulingPolicy(Leaf, frozen=True):
    basic: Empty | None = None
    gang: GangPolicy | None = None


class CompositeGangPolicy(Leaf, frozen=True):
    min_group_count: Int32 | None = None


class CompositeSchedulingPolicy(Leaf, frozen=True):
    basic: Empty | None = None
    gang: CompositeGangPolicy | None = None


class TopologyConstraint(Leaf, frozen=True):
    key: str = ""


class SchedulingConstraints(Leaf, frozen=True):
    topology: tuple[TopologyConstraint, ...] | None = None


class DisruptionMode(Leaf, frozen=True):
    single: Empty | None = None
    all: Empty | None = None


class WorkloadReference(Leaf, frozen=True):
    workload_name: str = ""
    template_name: str = ""


class GroupResourceClaim(Leaf, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class TypedReference(Leaf, frozen=True):
    kind: str = ""
    name: str = ""
    api_group: str | None = None


class PodGroupSpec(Leaf, frozen=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[GroupResourceClaim, ...] | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class GroupResourceClaimStatus(Leaf, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Leaf, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    resource_claim_statuses: tuple[GroupResourceClaimStatus, ...] | None = None


class PodGroup(Leaf, frozen=True):
    metadata: GroupMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
    api_version: str = f"{GROUP}/{HUB}"
    kind: str = "PodGroup"


class CompositePodGroupSpec(Leaf, frozen=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroupStatus(Leaf, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class CompositePodGroup(Leaf, frozen=True):
    metadata: GroupMeta
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: CompositePodGroupStatus = CompositePodGroupStatus()
    api_version: str = f"{GROUP}/{HUB}"
    kind: str = "CompositePodGroup"


class PodGroupTemplate(Leaf, frozen=True):
    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[GroupResourceClaim, ...] | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroupTemplate(Leaf, frozen=True):
    name: str = ""
    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] | None = None
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] | None = None


class WorkloadSpec(Leaf, frozen=True):
    controller_ref: TypedReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] | None = None
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] | None = None


class Workload(Leaf, frozen=True):
    metadata: GroupMeta
    spec: WorkloadSpec = WorkloadSpec()
    api_version: str = f"{GROUP}/{HUB}"
    kind: str = "Workload"


def decode(data: bytes, kind: type[PodGroup] | type[CompositePodGroup] | type[Workload]) -> msgspec.Struct:
    """One hub object from its JSON."""
    return msgspec.json.decode(data, type=kind)
