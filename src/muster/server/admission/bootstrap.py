"""The namespaces and priority classes that exist in every cluster from the start."""

from __future__ import annotations

from muster.api.resources import NAMESPACES, PRIORITY_CLASSES, Resource
from muster.server.resources.kind import Obj
from muster.server.resources.rules.cluster import SYSTEM_CLASSES

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to "
    "another node if necessary.",
}


def bootstrap_objects() -> list[tuple[Resource, Obj]]:
    """Objects to create at start-up, in this order, where they do not exist yet."""
    namespaces = [(NAMESPACES, _object(NAMESPACES, name)) for name in _NAMESPACES]
    classes = [
        (PRIORITY_CLASSES, {**_object(PRIORITY_CLASSES, name), "value": value, "description": _DESCRIPTIONS[name]})
        for name, value in SYSTEM_CLASSES.items()
    ]
    return [*namespaces, *classes]


def _object(resource: Resource, name: str) -> Obj:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
