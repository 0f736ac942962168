"""The rights of nodes: a node acts on itself, on the pods that run on it, and on what those refer to.

A node is a user `system:node:<name>` in the group `system:nodes`. What it may do to which kinds of objects is the
bootstrap role `system:node`; to which objects is decided here. RBAC can allow more. What a node may write into its
objects is admission's (`server.admission.node_restriction`).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from muster.server.auth.pod_references import references
from muster.server.auth.rules import Action, Rule, Ruleset
from muster.server.request import User, node_name
from muster.server.store.table import Table

Obj = dict[str, Any]
_MIRROR = "kubernetes.io/config.mirror"
_REFERRED = frozenset(("configmaps", "secrets", "persistentvolumeclaims", "serviceaccounts"))
_LEASES = "kube-node-lease"


class Tables(Protocol):
    """The part of a store that is read here."""

    def table(self, name: str) -> Table: ...


class NodeAuthorizer:
    """Decides for nodes; says no to everybody else."""

    def __init__(self, tables: Tables, rules: tuple[Rule, ...]) -> None:
        self._tables = tables
        self._rules = Ruleset(rules)

    def allows(self, user: User, action: Action) -> bool:
        node = node_name(user)
        if not node or action.path or not self._rules.allows(action):
            return False
        match action.group, action.resource:
            case "", "nodes":
                return self._own_node(node, action)
            case "", "pods":
                return self._own_pods(node, action)
            case "coordination.k8s.io", "leases":
                return action.namespace == _LEASES and (action.name == node or action.verb == "create")
            case "storage.k8s.io", "csinodes":
                return action.name == node or action.verb == "create"
            case "", "persistentvolumes":
                return bool(action.name) and self._uses_volume(node, action.name)
            case "storage.k8s.io", "volumeattachments":
                return bool(action.name) and self._attached(node, action.name)
            case "resource.k8s.io", "resourceclaims":
                return self._refers(node, action)
            case "", resource if resource in _REFERRED:
                return self._refers(node, action)
            case _:
                return True

    def _own_node(self, node: str, action: Action) -> bool:
        return action.name == node or action.verb == "create"

    def _own_pods(self, node: str, action: Action) -> bool:
        if action.verb in ("list", "watch"):
            return f"spec.nodeName={node}" in action.field_selector.split(",")
        if action.verb == "create" and not action.subresource:
            return True  # a mirror of a pod of its own, which admission checks
        pod = self._read("pods", (action.namespace, action.name))
        return pod is not None and (pod.get("spec") or {}).get("nodeName") == node

    def _refers(self, node: str, action: Action) -> bool:
        """Whether a pod on the node refers to the one object that is asked for."""
        if not action.name or action.verb not in ("get", "list", "watch", "create"):
            return False
        wanted = (action.resource, action.name)
        return any(wanted in references(pod) for pod in self._pods_on(node, action.namespace))

    def _uses_volume(self, node: str, name: str) -> bool:
        volume = self._read("persistentvolumes", ("", name)) or {}
        claim: Obj = (volume.get("spec") or {}).get("claimRef") or {}
        wanted = ("persistentvolumeclaims", str(claim.get("name")))
        return any(wanted in references(pod) for pod in self._pods_on(node, str(claim.get("namespace") or "")))

    def _attached(self, node: str, name: str) -> bool:
        attachment = self._read("volumeattachments.storage.k8s.io", ("", name)) or {}
        return (attachment.get("spec") or {}).get("nodeName") == node

    def _read(self, table: str, key: tuple[str, str]) -> Obj | None:
        record = self._tables.table(table).records.get(key)
        return None if record is None else msgspec.json.decode(record.body)

    def _pods_on(self, node: str, namespace: str) -> list[Obj]:
        """The pods of a namespace on a node, without those that the node itself has made."""
        mark = msgspec.json.encode(node)  # most pods are ruled out without being decoded
        found: list[Obj] = []
        for key, record in self._tables.table("pods").records.items():
            if key[0] != namespace or mark not in record.body:
                continue
            pod: Obj = msgspec.json.decode(record.body)
            mirrored = _MIRROR in (pod["metadata"].get("annotations") or {})
            if (pod.get("spec") or {}).get("nodeName") == node and not mirrored:
                found.append(pod)
        return found
