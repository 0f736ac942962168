"""Admission: the steps of a write that depend on other objects (namespaces, priority classes, protection, budgets).

Each step is one `Admitter`, listed here by the kind it is for; the registry takes a kind's chain from
`admitters_for`. Evictions are guarded by `eviction.BudgetGuard`, and `bootstrap.bootstrap_objects` is
what a new server starts with.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from muster.api.gates import DEFAULT, FeatureGates
from muster.server.admission.namespace_lifecycle import admit_namespace
from muster.server.admission.pods import admit_service_account, admit_toleration_seconds
from muster.server.admission.priority import admit_group_priority, admit_pod_priority, admit_priority_class
from muster.server.admission.protection import admit_protection
from muster.server.admission.services import admit_cluster_ip
from muster.server.resources.kind import Admitter

_STEPS: Mapping[tuple[str, str], tuple[Admitter, ...]] = {
    ("", "pods"): (admit_service_account, admit_toleration_seconds, admit_pod_priority),
    ("", "services"): (admit_cluster_ip,),
    ("scheduling.k8s.io", "priorityclasses"): (admit_priority_class,),
}
_GROUP_KINDS = (("scheduling.k8s.io", "podgroups"), ("scheduling.k8s.io", "compositepodgroups"))


def admitters_for(group: str, plural: str, namespaced: bool, gates: FeatureGates = DEFAULT) -> tuple[Admitter, ...]:
    """The admission chain of a kind, in order."""
    steps = _STEPS.get((group, plural), ())
    if (group, plural) in _GROUP_KINDS:
        steps = (partial(admit_group_priority, gates=gates), admit_protection)
    if namespaced or (group, plural) == ("", "namespaces"):
        return (admit_namespace, *steps)
    return steps
