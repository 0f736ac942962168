"""Projections of the objects the scheduler reads: frozen msgspec structs with only the fields that matter to it.

They are decoded straight from the wire's JSON (camelCase, unknown fields ignored) and never written
back: writers work on the stored JSON itself, so a field that is not listed here is never lost.
The API kinds of this project (Workload, PodGroup, CompositePodGroup) are in `muster.api.groups`.
"""

from __future__ import annotations

import msgspec

Labels = dict[str, str]
Quantities = dict[str, str | int | float]


class Leaf(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of structs that hold no containers of other tracked objects in cycles; cheap for the collector."""


class OwnerReference(Leaf, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Leaf, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Labels | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None


EXPECTED_DURATION = "scheduling.muster.dev/expected-duration"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_ANNOTATIONS = {
    "expected_duration": EXPECTED_DURATION,
    "gang": "scheduling.muster.dev/gang",
    "subgroup_size": "leaderworkerset.sigs.k8s.io/subgroup-size",
    "replica_size": "leaderworkerset.sigs.k8s.io/size",
    "total_count": "kueue.x-k8s.io/pod-group-total-count",
    "index_failures": INDEX_FAILURES,
}
_OF_NO_WORKLOAD = ("expected_duration", "index_failures")
_OF_WORKLOADS = tuple((field, key) for field, key in _ANNOTATIONS.items() if field not in _OF_NO_WORKLOAD)


class PodAnnotations(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename=_ANNOTATIONS):
    """The annotations of a pod that scheduling or the controller of Jobs reads; the others are not decoded."""

    expected_duration: str | None = None
    gang: str | None = None
    subgroup_size: str | None = None
    replica_size: str | None = None
    total_count: str | None = None
    index_failures: str | None = None

    def read(self) -> dict[str, str]:
        """Those that say which group of a workload a pod belongs to, by their keys."""
        return {key: value for field, key in _OF_WORKLOADS if (value := getattr(self, field)) is not None}


class PodMeta(ObjectMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    annotations: PodAnnotations | None = None


class Condition(Leaf, frozen=True):
    type: str = ""  # what is stored may lack what a writer had to say
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


# --- selectors -------------------------------------------------------------------------------------


class LabelSelectorRequirement(Leaf, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(Leaf, frozen=True):
    match_labels: Labels | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelectorRequirement(Leaf, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Leaf, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Leaf, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(Leaf, frozen=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Leaf, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(Leaf, frozen=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Leaf, frozen=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Leaf, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(Leaf, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Leaf, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Leaf, frozen=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


# --- pods ------------------------------------------------------------------------------------------


class ResourceRequirements(Leaf, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Leaf, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""


class Container(Leaf, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None


class PersistentVolumeClaimSource(Leaf, frozen=True):
    claim_name: str
    read_only: bool = False


class EphemeralVolumeSource(Leaf, frozen=True):
    """Its claim is named `<pod>-<volume>`; the template itself is the volume controller's business."""


class GCEPersistentDisk(Leaf, frozen=True):
    pd_name: str
    read_only: bool = False


class AWSElasticBlockStore(Leaf, frozen=True):
    volume_id: str = msgspec.field(name="volumeID")
    read_only: bool = False


class ISCSI(Leaf, frozen=True):
    iqn: str
    read_only: bool = False


class RBD(Leaf, frozen=True):
    image: str
    monitors: tuple[str, ...] | None = None
    pool: str = ""
    read_only: bool = False


class ImageVolumeSource(Leaf, frozen=True):
    reference: str = ""


class Volume(Leaf, frozen=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    image: ImageVolumeSource | None = None


class SchedulingGate(Leaf, frozen=True):
    name: str = ""


class SchedulingGroup(Leaf, frozen=True):
    pod_group_name: str | None = None


class PodResourceClaim(Leaf, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Leaf, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] | None = None
    host_network: bool | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class PodResourceClaimStatus(Leaf, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Leaf, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None


class Pod(Leaf, frozen=True):
    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- nodes -----------------------------------------------------------------------------------------


class Taint(Leaf, frozen=True):
    key: str
    effect: str
    value: str = ""


class NodeSpec(Leaf, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class ContainerImage(Leaf, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Leaf, frozen=True):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    images: tuple[ContainerImage, ...] | None = None
    conditions: tuple[Condition, ...] | None = None


class Node(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --- the rest of what a decision needs -------------------------------------------------------------


class PriorityClass(Leaf, frozen=True):
    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Leaf, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Leaf, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Namespace(Leaf, frozen=True):
    metadata: ObjectMeta


class ServiceSpec(Leaf, frozen=True):
    selector: Labels | None = None


class Service(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Leaf, frozen=True):
    selector: Labels | None = None


class ReplicationController(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectingSpec(Leaf, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: SelectingSpec = SelectingSpec()


class StatefulSet(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: SelectingSpec = SelectingSpec()


class VolumeNodeAffinity(Leaf, frozen=True):
    required: NodeSelector | None = None


class ObjectReference(Leaf, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIVolumeSource(Leaf, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Leaf, frozen=True):
    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None
    storage_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None


class PersistentVolumeStatus(Leaf, frozen=True):
    phase: str = ""


class PersistentVolume(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(Leaf, frozen=True):
    access_modes: tuple[str, ...] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(Leaf, frozen=True):
    phase: str = ""


class ClaimMeta(ObjectMeta, frozen=True, gc=False, rename="camel"):
    annotations: dict[str, str] | None = None


class PersistentVolumeClaim(Leaf, frozen=True):
    metadata: ClaimMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorRequirement(Leaf, frozen=True):
    key: str
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(Leaf, frozen=True):
    match_label_expressions: tuple[TopologySelectorRequirement, ...] | None = None


class StorageClass(Leaf, frozen=True):
    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = None


class CSINodeAllocatable(Leaf, frozen=True):
    count: int | None = None


class CSINodeDriver(Leaf, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(Leaf, frozen=True):
    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()


# --- what controllers and leader election read -----------------------------------------------------


class LeaseSpec(Leaf, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Leaf, frozen=True):
    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class Event(Leaf, frozen=True):
    """An event as core/v1 shows it."""

    metadata: ObjectMeta
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int = 0
    reporting_component: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None


class PodTemplate(Leaf, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class JobSpec(Leaf, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(Leaf, frozen=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: str | None = None
    conditions: tuple[Condition, ...] | None = None


class Job(Leaf, frozen=True):
    metadata: ClaimMeta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
