"""Every kind that is served, in one list. Adding a kind is adding one entry here.

An entry says what discovery shows, how the kind is named and stored, and how it prints. Its hooks come from the
packages that own them: built-in kinds from `resources.rules`, the group kinds from `muster.api.validation`, admission
from `server.admission`. Reviews are answered, never stored; their handlers are given to `build_registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import ModuleType

from muster.api import gates as feature_gates
from muster.api import versions
from muster.api.gates import FeatureGates
from muster.api.groups import GROUP as SCHEDULING
from muster.api.validation import composite, podgroup, workload
from muster.server.admission import admitters_for
from muster.server.custom_resources import definition_rules, definition_status
from muster.server.event_versions import CORE_FIELDS, EVENTS_FIELDS, EVENTS_V1
from muster.server.registry import Registry
from muster.server.resources import print_core, print_platform, print_workloads, selectable
from muster.server.resources.admission_kinds import ADMISSION_KINDS
from muster.server.resources.kind import Answer, Kind
from muster.server.resources.platform_kinds import PLATFORM_KINDS
from muster.server.resources.rules import rules_for

_RBAC = "rbac.authorization.k8s.io"
_AUTHN = "authentication.k8s.io"
_AUTHZ = "authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_DEVICES = "resource.k8s.io"
_ALL = ("all",)
_STATUS = ("status",)
_SCALED = ("status", "scale")
_GROUP_VERSIONS = ("v1beta1", "v1alpha3", "v1alpha2")

_core = partial(Kind, "", ("v1",))
_apps = partial(Kind, "apps", ("v1",))
_batch = partial(Kind, "batch", ("v1",))
_storage = partial(Kind, _STORAGE, ("v1",))
_devices = partial(Kind, _DEVICES, ("v1",))
_rbac = partial(Kind, _RBAC, ("v1",), name_rule="path", create_on_update=True)
_scheduling = partial(
    Kind,
    SCHEDULING,
    storage_version="v1alpha3",
    alike=("v1beta1",),
    convert=versions.convert,
    unconditional_update=False,
)


_KINDS: tuple[Kind, ...] = (
    _core(
        "Namespace",
        "namespaces",
        False,
        short_names=("ns",),
        subresources=("status", "finalize"),
        columns=print_core.NAMESPACES,
        selectable={"status.phase": selectable.field("status", "phase")},
        name_rule="label",
        returns_deleted=True,
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _core(
        "Node",
        "nodes",
        False,
        short_names=("no",),
        subresources=_STATUS,
        columns=print_core.NODES,
        selectable={"spec.unschedulable": selectable.field("spec", "unschedulable", absent="false")},
    ),
    _core(
        "Pod",
        "pods",
        True,
        short_names=("po",),
        categories=_ALL,
        subresources=("status", "binding", "eviction", "log", "exec", "attach", "portforward"),
        columns=print_core.PODS,
        selectable=selectable.POD,
        graceful=True,
        generation=True,
        returns_deleted=True,
    ),
    _core(
        "Event",
        "events",
        True,
        short_names=("ev",),
        columns=print_core.EVENTS,
        selectable=CORE_FIELDS,
        create_on_update=True,
    ),
    _core("ConfigMap", "configmaps", True, short_names=("cm",), columns=print_core.CONFIG_MAPS),
    _core("Secret", "secrets", True, columns=print_core.SECRETS, selectable={"type": selectable.field("type")}),
    _core(
        "ServiceAccount",
        "serviceaccounts",
        True,
        short_names=("sa",),
        subresources=("token",),
        columns=print_core.SERVICE_ACCOUNTS,
        unconditional_update=False,
        returns_deleted=True,
    ),
    _core(
        "Service",
        "services",
        True,
        short_names=("svc",),
        categories=_ALL,
        subresources=_STATUS,
        columns=print_core.SERVICES,
        selectable={
            "spec.clusterIP": selectable.field("spec", "clusterIP"),
            "spec.type": selectable.field("spec", "type"),
        },
        name_rule="label",
        create_on_update=True,
        returns_deleted=True,
    ),
    _core("Endpoints", "endpoints", True, short_names=("ep",), columns=print_core.ENDPOINTS, create_on_update=True),
    _core(
        "PersistentVolume",
        "persistentvolumes",
        False,
        short_names=("pv",),
        subresources=_STATUS,
        columns=print_core.PERSISTENT_VOLUMES,
        returns_deleted=True,
    ),
    _core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        True,
        short_names=("pvc",),
        subresources=_STATUS,
        columns=print_core.PERSISTENT_VOLUME_CLAIMS,
        returns_deleted=True,
    ),
    _core(
        "ReplicationController",
        "replicationcontrollers",
        True,
        short_names=("rc",),
        categories=_ALL,
        subresources=_SCALED,
        columns=print_core.REPLICATION_CONTROLLERS,
        selectable=selectable.REPLICAS,
        generation=True,
        returns_deleted=True,
    ),
    _core("PodTemplate", "podtemplates", True, columns=print_core.POD_TEMPLATES, generation=True, returns_deleted=True),
    _core(
        "ResourceQuota",
        "resourcequotas",
        True,
        short_names=("quota",),
        subresources=_STATUS,
        columns=print_platform.RESOURCE_QUOTAS,
        returns_deleted=True,
    ),
    _core("LimitRange", "limitranges", True, short_names=("limits",), columns=print_core.LIMIT_RANGES),
    _apps(
        "Deployment",
        "deployments",
        True,
        short_names=("deploy",),
        categories=_ALL,
        subresources=_SCALED,
        columns=print_workloads.DEPLOYMENTS,
        generation=True,
    ),
    _apps(
        "ReplicaSet",
        "replicasets",
        True,
        short_names=("rs",),
        categories=_ALL,
        subresources=_SCALED,
        columns=print_workloads.REPLICA_SETS,
        selectable=selectable.REPLICAS,
        generation=True,
    ),
    _apps(
        "StatefulSet",
        "statefulsets",
        True,
        short_names=("sts",),
        categories=_ALL,
        subresources=_SCALED,
        columns=print_workloads.STATEFUL_SETS,
        generation=True,
    ),
    _apps(
        "DaemonSet",
        "daemonsets",
        True,
        short_names=("ds",),
        categories=_ALL,
        subresources=_STATUS,
        columns=print_workloads.DAEMON_SETS,
        generation=True,
    ),
    _apps(
        "ControllerRevision",
        "controllerrevisions",
        True,
        columns=print_workloads.CONTROLLER_REVISIONS,
        unconditional_update=False,
    ),
    _batch(
        "Job",
        "jobs",
        True,
        categories=_ALL,
        subresources=_STATUS,
        columns=print_workloads.JOBS,
        selectable={"status.successful": selectable.field("status", "succeeded", absent="0")},
        generation=True,
    ),
    _batch(
        "CronJob",
        "cronjobs",
        True,
        short_names=("cj",),
        categories=_ALL,
        subresources=_STATUS,
        columns=print_workloads.CRON_JOBS,
        generation=True,
    ),
    Kind(
        "policy",
        ("v1",),
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
        short_names=("pdb",),
        subresources=_STATUS,
        columns=print_workloads.POD_DISRUPTION_BUDGETS,
        generation=True,
        unconditional_update=False,
    ),
    Kind(
        SCHEDULING,
        ("v1",),
        "PriorityClass",
        "priorityclasses",
        False,
        short_names=("pc",),
        columns=print_workloads.PRIORITY_CLASSES,
        generation=True,
    ),
    _scheduling(
        _GROUP_VERSIONS,
        "Workload",
        "workloads",
        True,
        columns=print_workloads.WORKLOADS,
        storage_hash="Fgcxusx6IUo=",
    ),
    _scheduling(
        _GROUP_VERSIONS,
        "PodGroup",
        "podgroups",
        True,
        short_names=("pg",),
        subresources=_STATUS,
        columns=print_workloads.POD_GROUPS,
        storage_hash="QjOl2H5qPs0=",
    ),
    _scheduling(
        ("v1alpha3",),
        "CompositePodGroup",
        "compositepodgroups",
        True,
        short_names=("cpg",),
        subresources=_STATUS,
        columns=print_workloads.COMPOSITE_POD_GROUPS,
        storage_hash="L+dT284DGFE=",
    ),
    Kind(
        "coordination.k8s.io",
        ("v1",),
        "Lease",
        "leases",
        True,
        columns=print_workloads.LEASES,
        create_on_update=True,
        unconditional_update=False,
    ),
    Kind(
        "events.k8s.io",
        ("v1",),
        "Event",
        "events",
        True,
        short_names=("ev",),
        columns=print_core.EVENTS,
        selectable=EVENTS_FIELDS,
        create_on_update=True,
        alternate=EVENTS_V1,
    ),
    Kind(
        "discovery.k8s.io",
        ("v1",),
        "EndpointSlice",
        "endpointslices",
        True,
        columns=print_core.ENDPOINT_SLICES,
        generation=True,
    ),
    _storage("StorageClass", "storageclasses", False, short_names=("sc",), columns=print_workloads.STORAGE_CLASSES),
    _storage("CSINode", "csinodes", False, columns=print_workloads.CSI_NODES, unconditional_update=False),
    _storage("CSIDriver", "csidrivers", False, columns=print_workloads.CSI_DRIVERS, unconditional_update=False),
    _storage(
        "CSIStorageCapacity",
        "csistoragecapacities",
        True,
        columns=print_workloads.CSI_CAPACITIES,
        unconditional_update=False,
    ),
    _storage(
        "VolumeAttachment",
        "volumeattachments",
        False,
        subresources=_STATUS,
        columns=print_workloads.VOLUME_ATTACHMENTS,
        unconditional_update=False,
    ),
    _devices("ResourceClaim", "resourceclaims", True, subresources=_STATUS, columns=print_workloads.RESOURCE_CLAIMS),
    _devices("ResourceClaimTemplate", "resourceclaimtemplates", True),
    _devices(
        "ResourceSlice",
        "resourceslices",
        False,
        columns=print_workloads.RESOURCE_SLICES,
        selectable={
            "spec.nodeName": selectable.field("spec", "nodeName"),
            "spec.driver": selectable.field("spec", "driver"),
        },
    ),
    _devices("DeviceClass", "deviceclasses", False, generation=True),
    _devices(
        "DeviceTaintRule",
        "devicetaintrules",
        False,
        subresources=_STATUS,
        generation=True,
        unconditional_update=False,
    ),
    Kind(
        definition_status.GROUP,
        ("v1",),
        "CustomResourceDefinition",
        definition_status.PLURAL,
        False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=_STATUS,
        columns=print_core.CUSTOM_RESOURCE_DEFINITIONS,
        generation=True,
        unconditional_update=False,
        deletion_finalizer=definition_rules.CLEANUP,
        returns_deleted=True,
    ),
    _rbac("Role", "roles", True, columns=print_workloads.ROLES),
    _rbac("ClusterRole", "clusterroles", False, columns=print_workloads.ROLES),
    _rbac("RoleBinding", "rolebindings", True, columns=print_workloads.ROLE_BINDINGS),
    _rbac("ClusterRoleBinding", "clusterrolebindings", False, columns=print_workloads.ROLE_BINDINGS),
    *PLATFORM_KINDS,
    *ADMISSION_KINDS,
)

# Reviews: (group, kind, plural, namespaced). Each is served when `build_registry` is given its handler.
_REVIEWS: tuple[tuple[str, str, str, bool], ...] = (
    (_AUTHN, "TokenReview", "tokenreviews", False),
    (_AUTHN, "SelfSubjectReview", "selfsubjectreviews", False),
    (_AUTHZ, "SubjectAccessReview", "subjectaccessreviews", False),
    (_AUTHZ, "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    (_AUTHZ, "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    (_AUTHZ, "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
)

_GROUP_KINDS: Mapping[str, ModuleType] = {
    "workloads": workload,
    "podgroups": podgroup,
    "compositepodgroups": composite,
}


def build_registry(
    gates: FeatureGates = feature_gates.DEFAULT, *, answers: Mapping[str, Answer] | None = None
) -> Registry:
    """The registry under these feature gates. `answers` maps the plural of a review to who answers it."""
    kinds = [_with_hooks(kind, gates) for kind in _KINDS if _enabled(kind, gates)]
    for group, kind, plural, namespaced in _REVIEWS:
        answer = (answers or {}).get(plural)
        if answer is not None:
            kinds.append(Kind(group, ("v1",), kind, plural, namespaced, verbs=("create",), answer=answer))
    return Registry(kinds)


def _enabled(kind: Kind, gates: FeatureGates) -> bool:
    if kind.plural == "compositepodgroups":
        return gates.enabled(feature_gates.COMPOSITE)
    return kind.plural not in _GROUP_KINDS or gates.enabled(feature_gates.GENERIC_WORKLOAD)


def _with_hooks(kind: Kind, gates: FeatureGates) -> Kind:
    admit = admitters_for(kind.group, kind.plural, kind.namespaced, gates)
    module = _GROUP_KINDS.get(kind.plural) if kind.group == SCHEDULING else None
    if module is not None:
        return replace(
            kind,
            default=module.default,
            prepare=partial(module.prepare, feature_gates=gates),
            validate=partial(module.validate, feature_gates=gates),
            admit=admit,
        )
    if (kind.group, kind.plural) == (definition_status.GROUP, definition_status.PLURAL):
        return replace(
            kind,
            default=definition_rules.default,
            prepare=definition_rules.prepare,
            validate=definition_rules.validate,
            admit=(*admit, definition_status.admit_definition),
        )
    # The two API groups of events share one store, and so one set of rules.
    rules = rules_for("" if kind.alternate is not None else kind.group, kind.plural, gates)
    return replace(kind, default=rules.default, prepare=rules.prepare, validate=rules.validate, admit=admit)
