"""The rights to make groups for workloads, as a ClusterRole of its own beside that of the scheduler.

Without it the scheduler makes no groups for anybody and schedules what has groups. There are no wildcards: kinds are
listed, they are only read, and what is written are groups.
"""

from __future__ import annotations

from typing import Any

from muster.api.groups import GROUP
from muster.api.installation import LABELS, NAME, NAMESPACE
from muster.api.manifests import CRD_GROUP

Obj = dict[str, Any]

ROLE = f"{NAME}-workloads"
_READ = ["list", "watch"]
_WRITE = ["create", "patch", "delete"]
_KINDS: list[tuple[str, list[str]]] = [
    ("", ["namespaces", "pods"]),
    ("apps", ["replicasets", "statefulsets"]),
    ("batch", ["jobs"]),
    ("jobset.x-k8s.io", ["jobsets"]),
    ("leaderworkerset.x-k8s.io", ["leaderworkersets"]),
    ("trainer.kubeflow.org", ["trainjobs"]),
    ("ray.io", ["rayclusters", "rayjobs"]),
    ("kubeflow.org", ["jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"]),
    ("scheduling.x-k8s.io", ["podgroups"]),
]


def workload_installation(namespace: str = NAMESPACE) -> list[Obj]:
    """The role and its binding to the scheduler's account."""
    rules = [{"apiGroups": [group], "resources": kinds, "verbs": _READ} for group, kinds in _KINDS]
    for group in (GROUP, CRD_GROUP):
        kinds = ["workloads", "podgroups", "compositepodgroups"]
        rules.append({"apiGroups": [group], "resources": kinds, "verbs": ["get", *_READ, *_WRITE]})
    meta = {"name": ROLE, "labels": LABELS}
    version = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": version, "kind": "ClusterRole", "metadata": meta, "rules": rules},
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        },
    ]
