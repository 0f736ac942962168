"""A memory store filled by hand, for tests of who may do what."""

import uuid
from typing import Any

import msgspec

from muster.server.auth.bootstrap import binding_object, role_object
from muster.server.auth.bootstrap_controllers import CONTROLLER_BINDINGS, CONTROLLER_ROLES
from muster.server.auth.bootstrap_roles import BINDINGS, ROLES
from muster.server.auth.rbac import GROUP
from muster.server.request import User
from muster.server.store.memory import MemoryStore

Obj = dict[str, Any]
_TABLES = {
    "Role": f"roles.{GROUP}",
    "ClusterRole": f"clusterroles.{GROUP}",
    "RoleBinding": f"rolebindings.{GROUP}",
    "ClusterRoleBinding": f"clusterrolebindings.{GROUP}",
    "ServiceAccount": "serviceaccounts",
    "Pod": "pods",
    "Node": "nodes",
    "Secret": "secrets",
    "PersistentVolume": "persistentvolumes",
}


def a_user(name: str, *groups: str) -> User:
    return User(name, (*groups, "system:authenticated"))


async def put(store: MemoryStore, kind: str, name: str, namespace: str = "", uid: str = "", **fields: Any) -> str:
    """Store an object, replacing what has the same name; returns its uid."""
    uid = uid or str(uuid.uuid4())
    body = {"metadata": {"name": name, "namespace": namespace, "labels": fields.pop("labels", {})}, **fields}
    table, key = _TABLES[kind], (namespace, name)
    old = store.get(table, key)
    if old is not None:
        await store.delete(table, key, old.revision, lambda _: old.body)
    await store.create(table, key, uid, lambda _: msgspec.json.encode(body))
    return uid


async def remove(store: MemoryStore, kind: str, name: str, namespace: str = "") -> None:
    record = store.get(_TABLES[kind], (namespace, name))
    assert record is not None
    await store.delete(_TABLES[kind], record.key, record.revision, lambda _: record.body)


async def grant(
    store: MemoryStore, role: str, subject: tuple[str, str], namespace: str = "", *, role_kind: str = "ClusterRole"
) -> None:
    """Bind a role to a subject, everywhere or in one namespace."""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    subjects = [{"kind": subject[0], "name": subject[1]}]
    ref = {"kind": role_kind, "name": role}
    await put(store, kind, f"{role}-{subject[1]}", namespace, roleRef=ref, subjects=subjects)


def a_rule(verbs: str, resources: str, group: str = "", names: str = "") -> Obj:
    rule: Obj = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return {**rule, "resourceNames": names.split()} if names else rule


async def a_bootstrapped_store() -> MemoryStore:
    """The policy that every server starts with."""
    store = MemoryStore()
    objects = [role_object(role) for role in (*ROLES, *CONTROLLER_ROLES)]
    objects += [binding_object(binding) for binding in (*BINDINGS, *CONTROLLER_BINDINGS)]
    for obj in objects:
        meta = obj["metadata"]
        fields = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion", "metadata")}
        await put(store, obj["kind"], meta["name"], meta.get("namespace", ""), labels=meta["labels"], **fields)
    return store
