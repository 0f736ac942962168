"""The manifest that adds the dashboard to an installation: a Deployment of its own, which may read and nothing else.

Its account may get, list and watch what the pages show, and ask the API server about tokens and rights; it may read no
Secrets. No pod of the cluster reaches it (NetworkPolicy); people come through a port-forward.
"""

from __future__ import annotations

from typing import Any

from muster.api.groups import GROUP
from muster.api.installation import NAMESPACE, USER
from muster.api.manifests import CRD_GROUP

Obj = dict[str, Any]

NAME = "muster-dashboard"
PORT = 8443
LABELS = {"app.kubernetes.io/name": "muster", "app.kubernetes.io/component": "dashboard"}
RBAC = "rbac.authorization.k8s.io"

_READ = ["get", "list", "watch"]
_RIGHTS: list[tuple[str, list[str], list[str]]] = [
    ("", ["namespaces", "nodes", "pods", "replicationcontrollers", "services"], _READ),
    ("", ["persistentvolumes", "persistentvolumeclaims"], _READ),
    ("events.k8s.io", ["events"], ["get", "list"]),
    ("apps", ["replicasets", "statefulsets"], _READ),
    ("policy", ["poddisruptionbudgets"], _READ),
    ("resource.k8s.io", ["deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices"], _READ),
    ("storage.k8s.io", ["csinodes", "storageclasses"], _READ),
    (GROUP, ["priorityclasses", "workloads", "podgroups", "compositepodgroups"], _READ),
    (CRD_GROUP, ["workloads", "podgroups", "compositepodgroups"], _READ),
    ("coordination.k8s.io", ["leases"], ["get"]),
    ("authentication.k8s.io", ["tokenreviews"], ["create"]),
    ("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
]


def dashboard_installation(image: str, namespace: str = NAMESPACE) -> list[Obj]:
    """Everything that the dashboard needs beside the namespace, in the order in which it can be applied."""
    rules = [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in _RIGHTS]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": _meta(), "rules": rules}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta(),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(namespace)}
    return [account, role, binding, _deployment(image, namespace), _service(namespace), _network_policy(namespace)]


def _meta(namespace: str = "") -> Obj:
    return {"name": NAME, **({"namespace": namespace} if namespace else {}), "labels": LABELS}


def _service(namespace: str) -> Obj:
    ports = [{"name": "https", "port": 443, "targetPort": "https"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(namespace),
        "spec": {"selector": LABELS, "ports": ports},
    }


def _network_policy(namespace: str) -> Obj:
    """Nothing comes in from pods; a port-forward comes from the node."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(namespace),
        "spec": {"podSelector": {"matchLabels": LABELS}, "policyTypes": ["Ingress"], "ingress": []},
    }


def _deployment(image: str, namespace: str) -> Obj:
    security = {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod = {
        "serviceAccountName": NAME,
        "securityContext": security,
        "containers": [_container(image, namespace)],
        # Certificates are loaded from files, and the root cannot be written.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    spec = {
        "replicas": 1,  # sessions are kept in memory
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta(namespace), "spec": spec}


def _container(image: str, namespace: str) -> Obj:
    host = {"name": "Host", "value": "localhost"}  # the address of a pod is no name that the dashboard answers to
    where = {"path": "/livez", "port": "https", "scheme": "HTTPS", "httpHeaders": [host]}
    return {
        "name": "dashboard",
        "image": image,
        "args": [
            "dashboard",
            "--tls",
            "--no-browser",
            "--bind-address=0.0.0.0",
            f"--port={PORT}",
            f"--allowed-host={NAME}.{namespace}.svc",
        ],
        "ports": [{"name": "https", "containerPort": PORT}],
        "livenessProbe": {"httpGet": where, "periodSeconds": 10, "timeoutSeconds": 5},
        "readinessProbe": {"httpGet": where, "periodSeconds": 5, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
