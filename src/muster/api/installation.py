"""The manifest that installs Muster in a cluster: rights, two replicas with leader election, a disruption budget.

The rights are exactly what the scheduler and its upkeep use, verb by verb; there are no wildcards. The pods run
without privileges on a read-only root. `deploy/muster.yaml` holds the result for the defaults.
"""

from __future__ import annotations

from typing import Any

from muster.api.groups import GROUP
from muster.api.manifests import CRD_GROUP

Obj = dict[str, Any]

NAME = "muster"
NAMESPACE = "muster-system"
PORT = 10259
SHARED_NAMESPACE, SHARED_LEASE = "kube-system", "muster-binding"  # by which all Musters of a cluster take turns
LOG_DIRECTORY = "/var/log/muster"
USER = 65532  # the user that minimal base images call "nonroot"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "scheduler"}

_READ = ["list", "watch"]
_RIGHTS: list[tuple[str, list[str], list[str]]] = [
    ("", ["pods"], ["get", "list", "watch", "delete"]),
    ("", ["pods/binding"], ["create"]),
    ("", ["pods/status"], ["patch"]),
    ("", ["namespaces", "nodes", "replicationcontrollers", "services"], _READ),
    ("", ["persistentvolumes", "persistentvolumeclaims"], ["get", "list", "watch", "patch"]),
    ("", ["events"], ["create", "patch"]),
    ("events.k8s.io", ["events"], ["create", "patch"]),
    ("apps", ["replicasets", "statefulsets"], _READ),
    ("policy", ["poddisruptionbudgets"], _READ),
    ("storage.k8s.io", ["csinodes", "storageclasses"], _READ),
    ("resource.k8s.io", ["deviceclasses", "devicetaintrules", "resourceslices"], _READ),
    ("resource.k8s.io", ["resourceclaims"], ["get", "list", "watch", "update"]),
    ("resource.k8s.io", ["resourceclaims/binding", "resourceclaims/status"], ["update"]),
    (GROUP, ["priorityclasses"], _READ),
    (GROUP, ["workloads"], _READ),
    (GROUP, ["podgroups"], ["get", "list", "watch"]),
    (GROUP, ["compositepodgroups"], ["get", "list", "watch", "patch"]),
    (GROUP, ["podgroups/status", "compositepodgroups/status"], ["patch"]),
    (CRD_GROUP, ["workloads"], _READ),
    (CRD_GROUP, ["podgroups", "compositepodgroups"], ["get", "list", "watch", "patch"]),
    (CRD_GROUP, ["podgroups/status", "compositepodgroups/status"], ["patch"]),
    # Whoever reads the metrics is looked up.
    ("authentication.k8s.io", ["tokenreviews"], ["create"]),
    ("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
]


def installation(
    image: str, namespace: str = NAMESPACE, scheduler_name: str = NAME, decision_log: str | None = None
) -> list[Obj]:
    """Everything except the custom resources, in the order in which it can be applied.

    `decision_log` is where decisions are recorded: None for nowhere, empty for a volume that goes with its pod, else
    the name of a PersistentVolumeClaim that the pods can share.
    """
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(namespace)},
        _role("ClusterRole", _meta(), [_rule(*each) for each in _RIGHTS]),
        _binding("ClusterRoleBinding", _meta(), "ClusterRole", namespace),
        _role("Role", _meta(namespace), _lease_rights()),
        _binding("RoleBinding", _meta(namespace), "Role", namespace),
        _role("Role", _meta(SHARED_NAMESPACE), _lease_rights(SHARED_LEASE, "watch")),
        _binding("RoleBinding", _meta(SHARED_NAMESPACE), "Role", namespace),
        _deployment(image, namespace, scheduler_name, decision_log),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": _meta(namespace),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}},
        },
    ]


def _meta(namespace: str = "") -> Obj:
    meta: Obj = {"name": NAME}
    if namespace:
        meta["namespace"] = namespace
    meta["labels"] = LABELS
    return meta


def _rule(group: str, resources: list[str], verbs: list[str]) -> Obj:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _lease_rights(name: str = NAME, *more: str) -> list[Obj]:
    # A name cannot restrict a create; what has no name yet cannot be compared with one.
    lease = _rule("coordination.k8s.io", ["leases"], ["get", *more, "update"])
    return [_rule("coordination.k8s.io", ["leases"], ["create"]), {**lease, "resourceNames": [name]}]


def _role(kind: str, meta: Obj, rules: list[Obj]) -> Obj:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta, "rules": rules}


def _binding(kind: str, meta: Obj, role: str, namespace: str) -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def _deployment(image: str, namespace: str, scheduler_name: str, decision_log: str | None) -> Obj:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }
    container = _container(image, namespace, scheduler_name)
    # Certificates are loaded from files, and the root cannot be written.
    volumes: list[Obj] = [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]
    security: Obj = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if decision_log is not None:
        _record(container, volumes, security, decision_log)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(namespace),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "serviceAccountName": NAME,
                    "priorityClassName": "system-cluster-critical",
                    "securityContext": security,
                    "topologySpreadConstraints": [spread],
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def _record(container: Obj, volumes: list[Obj], security: Obj, claim: str) -> None:
    """Give the pods a volume for the decision log, with a file for each of them."""
    container["env"] = [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    container["args"].append(f"--decision-log={LOG_DIRECTORY}/$(POD_NAME).jsonl")
    container["args"].append("--decision-log-max-size=256Mi")
    container["volumeMounts"].append({"name": "decisions", "mountPath": LOG_DIRECTORY})
    if claim:
        volumes.append({"name": "decisions", "persistentVolumeClaim": {"claimName": claim}})
        security["fsGroup"] = USER
    else:
        volumes.append({"name": "decisions", "emptyDir": {"sizeLimit": "1Gi"}})


def _container(image: str, namespace: str, scheduler_name: str) -> Obj:
    def probe(page: str, period: int) -> Obj:
        where = {"path": page, "port": "https", "scheme": "HTTPS"}
        return {"httpGet": where, "periodSeconds": period, "timeoutSeconds": 5}

    return {
        "name": "scheduler",
        "image": image,
        "args": [
            "scheduler",
            f"--scheduler-name={scheduler_name}",
            "--leader-elect=true",
            f"--leader-elect-resource-name={NAME}",
            f"--leader-elect-resource-namespace={namespace}",
            f"--secure-port={PORT}",
            "--logging-format=json",
        ],
        "ports": [{"name": "https", "containerPort": PORT}],
        "startupProbe": {**probe("/livez", 2), "failureThreshold": 60},
        "livenessProbe": probe("/livez", 10),
        "readinessProbe": probe("/readyz", 5),
        "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
