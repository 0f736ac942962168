"""Admission: the steps of a write that depend on other objects (namespaces, priority classes, protection, budgets).

Each step is one `Admitter`, listed here by the kind it is for; the registry takes a kind's chain from
`admitters_for`. Evictions are guarded by `eviction.BudgetGuard`, and `bootstrap.bootstrap_objects` is
what a new server starts with.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from muster.api.gates import DEFAULT, FeatureGates
from muster.server.admission.devices import admit_admin_access, admit_slice_taints, admit_taint_rule
from muster.server.admission.limit_ranges import admit_claim_limits, admit_pod_limits
from muster.server.admission.namespace_lifecycle import admit_namespace
from muster.server.admission.node_restriction import admit_own_name, admit_own_node, admit_own_pods
from muster.server.admission.pod_security import admit_namespace_levels, admit_pod_security, admit_template_security
from muster.server.admission.pods import admit_service_account, admit_toleration_seconds
from muster.server.admission.priority import admit_group_priority, admit_pod_priority, admit_priority_class
from muster.server.admission.protection import admit_protection
from muster.server.admission.runtime_class import admit_runtime_class
from muster.server.admission.services import admit_cluster_ip
from muster.server.admission.signing_requests import admit_signing_request
from muster.server.admission.storage_class import admit_default_storage_class
from muster.server.admission.stored_only import STORED_ONLY, warn_stored_only
from muster.server.resources.kind import Admitter

_STEPS: Mapping[tuple[str, str], tuple[Admitter, ...]] = {
    ("", "nodes"): (admit_own_node,),
    ("", "pods"): (
        admit_own_pods,
        admit_service_account,
        admit_pod_limits,
        admit_toleration_seconds,
        admit_pod_priority,
        admit_runtime_class,
        admit_pod_security,
    ),
    ("", "namespaces"): (admit_namespace_levels,),
    ("", "persistentvolumeclaims"): (admit_default_storage_class, admit_claim_limits),
    ("", "services"): (admit_cluster_ip,),
    ("coordination.k8s.io", "leases"): (admit_own_name,),
    ("storage.k8s.io", "csinodes"): (admit_own_name,),
    ("scheduling.k8s.io", "priorityclasses"): (admit_priority_class,),
    ("certificates.k8s.io", "certificatesigningrequests"): (admit_signing_request,),
    ("resource.k8s.io", "devicetaintrules"): (admit_taint_rule,),
    ("resource.k8s.io", "resourceclaims"): (admit_admin_access,),
    ("resource.k8s.io", "resourceclaimtemplates"): (admit_admin_access,),
    ("resource.k8s.io", "resourceslices"): (admit_slice_taints,),
}
_TEMPLATES = frozenset(
    (
        ("", "podtemplates"),
        ("", "replicationcontrollers"),
        ("apps", "daemonsets"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "cronjobs"),
        ("batch", "jobs"),
    )
)
_GROUP_KINDS = (("scheduling.k8s.io", "podgroups"), ("scheduling.k8s.io", "compositepodgroups"))


def admitters_for(group: str, plural: str, namespaced: bool, gates: FeatureGates = DEFAULT) -> tuple[Admitter, ...]:
    """The admission chain of a kind, in order."""
    steps = _STEPS.get((group, plural), ())
    if (group, plural) in _TEMPLATES:
        steps = (*steps, admit_template_security)
    if (group, plural) in STORED_ONLY:
        steps = (*steps, warn_stored_only)
    if (group, plural) in _GROUP_KINDS:
        steps = (partial(admit_group_priority, gates=gates), admit_protection)
    if namespaced or (group, plural) == ("", "namespaces"):
        return (admit_namespace, *steps)
    return steps
