"""The namespaces, priority classes and storage class that exist in every cluster from the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.api.resources import NAMESPACES, PRIORITY_CLASSES, Resource
from muster.server.admission.storage_class import DEFAULT_CLASS
from muster.server.resources.kind import Obj
from muster.server.resources.rules.cluster import SYSTEM_CLASSES

SIMULATED_PROVISIONER = "muster.dev/simulated"  # the volume controller's
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


def default_storage_class() -> Obj:
    """The class of simulated volumes, for a cluster that has no storage class."""
    meta = {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}}
    return {"metadata": meta, "provisioner": SIMULATED_PROVISIONER, "volumeBindingMode": "Immediate"}


def _object(resource: Resource, name: str) -> Obj:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}


def local_api_services(groups: Mapping[str, Sequence[str]]) -> list[Obj]:
    """An APIService for every group and version that the server itself serves, as kube-apiserver registers them."""
    made: list[Obj] = []
    for place, (group, versions) in enumerate(groups.items()):
        for order, version in enumerate(versions):
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 18_000 if not group else 17_900 - 10 * place,
                "versionPriority": 15 - min(order, 14),
            }
            meta = {"name": f"{version}.{group}", "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}}
            made.append(
                {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta, "spec": spec}
            )
    return made
