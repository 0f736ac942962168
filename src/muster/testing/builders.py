"""Builders of API objects as plain JSON dicts; every field that a test does not name has a value that works."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
_SCHEDULING = "scheduling.k8s.io/v1alpha3"


def a_pod(
    name: str,
    namespace: str = "default",
    *,
    cpu: str = "",
    memory: str = "",
    gpu: int = 0,
    group: str = "",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A pod with one container; `group` makes it a member of a pod group."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    resources: Obj = {"requests": requests} if requests else {}
    if gpu:
        resources.setdefault("requests", {})["nvidia.com/gpu"] = str(gpu)
        resources["limits"] = {"nvidia.com/gpu": str(gpu)}
    container: Obj = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    pod: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, labels),
        "spec": {"containers": [container], **spec},
    }
    if group:
        pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


def a_node(name: str, *, cpu: str = "32", memory: str = "256Gi", gpu: int = 0, pods: int = 110, **labels: str) -> Obj:
    """A ready node; labels as keywords, with `rack="r1"` standing for the label `rack`."""
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpu:
        resources["nvidia.com/gpu"] = str(gpu)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def a_pod_group(name: str, namespace: str = "default", *, min_count: int = 0, parent: str = "", **spec: Any) -> Obj:
    """A pod group; with `min_count` a gang, without one basic."""
    policy: Obj = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    group: Obj = {
        "apiVersion": _SCHEDULING,
        "kind": "PodGroup",
        "metadata": _metadata(name, namespace, None),
        "spec": {"schedulingPolicy": policy, **spec},
    }
    if parent:
        group["spec"]["parentCompositePodGroupName"] = parent
        group["spec"].setdefault("workloadRef", _template(name))
    return group


def a_composite(name: str, namespace: str = "default", *, min_groups: int = 0, parent: str = "", **spec: Any) -> Obj:
    """A composite pod group; with `min_groups` its children start together. It names a workload, as it must."""
    policy: Obj = {"gang": {"minGroupCount": min_groups}} if min_groups else {"basic": {}}
    composite: Obj = {
        "apiVersion": _SCHEDULING,
        "kind": "CompositePodGroup",
        "metadata": _metadata(name, namespace, None),
        "spec": {"workloadRef": _template(name), "schedulingPolicy": policy, **spec},
    }
    if parent:
        composite["spec"]["parentCompositePodGroupName"] = parent
    return composite


def a_gang(
    name: str, size: int, namespace: str = "default", *, min_count: int | None = None, cpu: str = "", **pod: Any
) -> list[Obj]:
    """A gang and its pods, the group first."""
    group = a_pod_group(name, namespace, min_count=size if min_count is None else min_count)
    return [group, *(a_pod(f"{name}-{index}", namespace, group=name, cpu=cpu, **pod) for index in range(size))]


def _template(name: str) -> Obj:
    """The workloadRef that a group with a parent, and every composite, must have."""
    return {"workloadName": "workload", "templateName": name}


def _metadata(name: str, namespace: str, labels: dict[str, str] | None) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return metadata
