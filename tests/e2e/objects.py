"""Nodes, gangs and pods as manifests, and what became of them."""

import json
from typing import Any

from muster.api.manifests import CRD_GROUP, CRD_LABEL
from tests.e2e.processes import Kubectl

Obj = dict[str, Any]
NATIVE = "scheduling.k8s.io/v1beta1"
CRD = f"{CRD_GROUP}/v1alpha3"


def a_node(name: str, cpu: int = 100, **labels: str) -> Obj:
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        },
    }


def a_gang(name: str, size: int, api: str = NATIVE, **fields: Any) -> Obj:
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}, **fields}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_pod(name: str, group: str = "", *, by_label: bool = False, scheduler: str = "", **fields: Any) -> Obj:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    spec: Obj = {"containers": [container], "terminationGracePeriodSeconds": 0, **fields}
    meta: Obj = {"name": name, "namespace": "default"}
    if group and by_label:
        meta["labels"] = {CRD_LABEL: group}
    elif group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def members(group: str, count: int, **fields: Any) -> list[Obj]:
    return [a_pod(f"{group}-{i}", group, **fields) for i in range(count)]


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
