"""Brings the bootstrap roles and bindings into the store at start.

Missing ones are created. Existing ones get back rules and subjects that they lost, and keep what was added to them;
one annotated `rbac.authorization.kubernetes.io/autoupdate: "false"` is left as it is. Aggregated roles show the rules
that they gather.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.protocol import Client
from muster.server.auth.bootstrap_controllers import CONTROLLER_BINDINGS, CONTROLLER_ROLES
from muster.server.auth.bootstrap_roles import BINDINGS, ROLES, BootstrapBinding, BootstrapRole
from muster.server.auth.rbac import GROUP
from muster.server.auth.rules import Rule, uncovered

Obj = dict[str, Any]
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"

CLUSTER_ROLES = Resource(GROUP, "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = Resource(GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
_ROLES = Resource(GROUP, "v1", "roles", "Role", True)
_ROLE_BINDINGS = Resource(GROUP, "v1", "rolebindings", "RoleBinding", True)


async def bootstrap_policy(client: Client) -> None:
    """Create what is missing, repair what lost rights."""
    wanted = [(_role_resource(role), role_object(role)) for role in (*ROLES, *CONTROLLER_ROLES)]
    wanted += [(_binding_resource(binding), binding_object(binding)) for binding in (*BINDINGS, *CONTROLLER_BINDINGS)]
    await asyncio.gather(*(_ensure(client, resource, obj) for resource, obj in wanted))


def _role_resource(role: BootstrapRole) -> Resource:
    return _ROLES if role.namespace else CLUSTER_ROLES


def _binding_resource(binding: BootstrapBinding) -> Resource:
    return _ROLE_BINDINGS if binding.namespace else CLUSTER_ROLE_BINDINGS


async def _ensure(client: Client, resource: Resource, obj: Obj) -> None:
    meta = obj["metadata"]
    try:
        await client.create(resource, obj, meta.get("namespace"))
        return
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    existing = await client.get(resource, meta["name"], meta.get("namespace"))
    if (existing["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false":
        return
    if _repair(existing, obj):
        await client.update(resource, existing)


def _repair(existing: Obj, wanted: Obj) -> bool:
    """Give back missing rules or subjects; whether anything was missing."""
    if "rules" in wanted:
        have = msgspec.convert(existing.get("rules") or [], list[Rule])
        missing = uncovered(have, msgspec.convert(wanted["rules"], list[Rule]))
        existing["rules"] = [*(existing.get("rules") or []), *map(msgspec.to_builtins, missing)]
        return bool(missing)
    subjects: list[Obj] = existing.get("subjects") or []
    lost = [subject for subject in wanted.get("subjects") or [] if subject not in subjects]
    if lost:
        existing["subjects"] = [*subjects, *lost]
    return bool(lost)


def role_object(role: BootstrapRole) -> Obj:
    """A bootstrap role as it is stored."""
    obj: Obj = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role" if role.namespace else "ClusterRole",
        "metadata": _meta(role.name, role.namespace, role.labels),
        "rules": [msgspec.to_builtins(rule) for rule in gathered(role)],
    }
    if role.gathers:
        obj["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {role.gathers: "true"}}]}
    return obj


def gathered(role: BootstrapRole, others: Iterable[BootstrapRole] = ROLES) -> tuple[Rule, ...]:
    """The rules of a role, gathered from the roles that carry its label where it aggregates."""
    if not role.gathers:
        return role.rules
    found = [rule for other in others if role.gathers in other.labels for rule in gathered(other)]
    return tuple(dict.fromkeys(found))


def binding_object(binding: BootstrapBinding) -> Obj:
    """A bootstrap binding as it is stored."""
    obj: Obj = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if binding.namespace else "ClusterRoleBinding",
        "metadata": _meta(binding.name, binding.namespace, ()),
        "roleRef": {
            "apiGroup": GROUP,
            "kind": "Role" if binding.namespace else "ClusterRole",
            "name": binding.role,
        },
    }
    if binding.subjects:
        obj["subjects"] = [_subject(kind, name) for kind, name in binding.subjects]
    return obj


def _subject(kind: str, name: str) -> Obj:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def _meta(name: str, namespace: str, labels: Iterable[str]) -> Obj:
    meta: Obj = {
        "name": name,
        "annotations": {AUTOUPDATE: "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **dict.fromkeys(labels, "true")},
    }
    if namespace:
        meta["namespace"] = namespace
    return meta
