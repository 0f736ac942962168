"""Nodes, gangs and pods as manifests, and what became of them."""

import json
from typing import Any

from muster.api.manifests import CRD_GROUP, CRD_LABEL
from muster.testing import a_node, a_pod, a_pod_group
from tests.e2e.processes import Kubectl

Obj = dict[str, Any]
NATIVE = "scheduling.k8s.io/v1beta1"
CRD = f"{CRD_GROUP}/v1alpha3"


def large_node(name: str, **labels: str) -> Obj:
    """A ready node with room for hundreds of pods."""
    return a_node(name, cpu="100", memory="64Gi", pods=1000, **labels)


def gang_manifest(name: str, size: int, api: str = NATIVE, **spec: Any) -> Obj:
    """A gang of so many pods, in one of the APIs that serve it."""
    return {**a_pod_group(name, min_count=size, **spec), "apiVersion": api}


def one_cpu_pod(name: str, group: str = "", *, by_label: bool = False, scheduler: str = "", **spec: Any) -> Obj:
    """A pod that asks for one cpu and is gone as soon as it is deleted; a member by its field or by the CRDs' label."""
    labels = {CRD_LABEL: group} if group and by_label else None
    named = {"schedulerName": scheduler} if scheduler else {}
    field = "" if by_label else group
    return a_pod(name, cpu="1", group=field, labels=labels, terminationGracePeriodSeconds=0, **named, **spec)


def members(group: str, count: int, **fields: Any) -> list[Obj]:
    return [one_cpu_pod(f"{group}-{i}", group, **fields) for i in range(count)]


def bound(kubectl: Kubectl, prefix: str = "") -> dict[str, str]:
    """The node of every pod that has one."""
    listed = json.loads(kubectl("get", "pods", "--namespace", "default", "--output", "json"))["items"]
    named = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in listed}
    return {name: node for name, node in named.items() if node and name.startswith(prefix)}


def condition(kubectl: Kubectl, group: str, type_: str = "PodGroupInitiallyScheduled", api: str = "") -> str:
    """The status of a condition of a group, empty if it has none."""
    what = f"podgroups.{api}" if api else "podgroups"
    obj = json.loads(kubectl("get", what, group, "--namespace", "default", "--output", "json"))
    found = (obj.get("status") or {}).get("conditions") or []
    return next((each["status"] for each in found if each["type"] == type_), "")
