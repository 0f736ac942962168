"""The objects of the benchmarks: API types for the scheduler, and JSON of realistic size for the server and the client.

What they contain is part of the figures: a field more or less changes what is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api import groups as api
from muster.api import types

Obj = dict[str, Any]
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
CREATED = "2026-01-01T00:00:00Z"

# --- API types -------------------------------------------------------------------------------------


def a_node(
    name: str,
    cpu: str = "4",
    memory: str = "32Gi",
    labels: Mapping[str, str] | None = None,
    *,
    uid: str = "",
    **room: str,
) -> types.Node:
    """A node; further resources are keywords, with `_` for `-`."""
    more = {resource.replace("_", "-"): amount for resource, amount in room.items()}
    meta = {"name": name, "uid": uid, "labels": {HOSTNAME: name, **(labels or {})}}
    status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110", **more}}
    return msgspec.convert({"metadata": meta, "status": status}, types.Node)


def a_pod(
    name: str,
    cpu: str,
    memory: str,
    *,
    group: str | None = None,
    node: str | None = None,
    namespace: str = "ns",
    labels: Mapping[str, str] | None = None,
    container: Obj | None = None,
    started: bool = False,
    **spec: Any,
) -> types.Pod:
    """A pod with one container; `started` pods have a phase and a start time, which victims are compared by."""
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    only = {"name": "main", "resources": requests, **(container or {})}
    body: Obj = {"schedulerName": "default-scheduler", "containers": [only], **spec}
    if group:
        body["schedulingGroup"] = {"podGroupName": group}
    if node:
        body["nodeName"] = node
    meta = {"name": name, "namespace": namespace, "uid": name, "labels": labels, "creationTimestamp": CREATED}
    pod: Obj = {"metadata": meta, "spec": body}
    if started:
        pod["status"] = {"phase": "Running" if node else "Pending", "startTime": CREATED}
    return msgspec.convert(pod, types.Pod)


def a_gang(
    name: str,
    min_count: int,
    *,
    uid: str = "",
    created: str | None = CREATED,
    topology: str | None = None,
    **spec: Any,
) -> api.PodGroup:
    body: Obj = {"schedulingPolicy": {"gang": {"minCount": min_count}}, **spec}
    if topology:
        body["schedulingConstraints"] = {"topology": [{"key": topology}]}
    meta = {"name": name, "namespace": "ns", "uid": uid or name, "creationTimestamp": created}
    return msgspec.convert({"metadata": meta, "spec": body}, api.PodGroup)


def a_basic_group(name: str, *, created: str | None = CREATED, **spec: Any) -> api.PodGroup:
    """A group whose pods may start one by one."""
    body: Obj = {"schedulingPolicy": {"basic": {}}, **spec}
    meta = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": created}
    return msgspec.convert({"metadata": meta, "spec": body}, api.PodGroup)


def a_composite(
    name: str, min_groups: int, *, topology: str | None = None, created: str | None = CREATED, **spec: Any
) -> api.CompositePodGroup:
    body: Obj = {"schedulingPolicy": {"gang": {"minGroupCount": min_groups}}, **spec}
    if topology:
        body["schedulingConstraints"] = {"topology": [{"key": topology}]}
    meta = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": created}
    return msgspec.convert({"metadata": meta, "spec": body}, api.CompositePodGroup)


# --- JSON of realistic size ------------------------------------------------------------------------


def ordinary_container(**more: Any) -> Obj:
    """A container with some environment, a port and requests."""
    return {
        "name": "main",
        "image": "registry.example/team/app:1.2.3",
        "env": [{"name": f"VARIABLE_{index}", "value": f"value-{index}"} for index in range(8)],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        **more,
    }


def job_pod(index: int) -> Obj:
    """A pod as a Job makes it and a server stores it: about 3.4 KB, most of which the scheduler never reads."""
    name = f"trainer-{index // 64}-{index % 64}-x7k2p"
    mounts = [{"name": f"volume-{each}", "mountPath": f"/data/volume-{each}", "readOnly": True} for each in range(6)]
    environment = [{"name": f"SETTING_{each}", "value": f"value-of-setting-{each}"} for each in range(14)]
    fields = {f"f:{field}": {".": {}, f"f:{field}-part": {}} for field in ("labels", "spec", "containers", "resources")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"trainer-{index // 64}-{index % 64}-",
            "namespace": f"team-{index % 20}",
            "uid": f"00000000-0000-4000-8000-{index:012d}",
            "resourceVersion": str(100_000 + index),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "trainer", "job-name": f"trainer-{index // 64}", "rank": str(index % 64)},
            "annotations": {"example.com/config": "x" * 200},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"trainer-{index // 64}",
                    "uid": "u",
                    "controller": True,
                }
            ],
            "managedFields": [
                {"manager": "job-controller", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields},
                {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields},
            ],
        },
        "spec": {
            "schedulerName": "muster",
            "priority": index % 5,
            "schedulingGroup": {"podGroupName": f"trainer-{index // 64}"},
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "worker",
                    "image": "registry.example.com/trainer:1.4",
                    "command": ["python", "-m", "trainer", "--steps", "100000"],
                    "env": environment,
                    "volumeMounts": mounts,
                    "resources": {
                        "requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"},
                        "limits": {"nvidia.com/gpu": "1"},
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "volumes": [{"name": f"volume-{each}", "configMap": {"name": f"config-{each}"}} for each in range(6)],
            "restartPolicy": "Never",
            "serviceAccountName": "trainer",
            "securityContext": {"runAsNonRoot": True, "fsGroup": 1000},
        },
        "status": {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/5000 nodes fit"}
            ],
            "qosClass": "Burstable",
        },
    }


def running_pod(number: int, version: int, nodes: int) -> Obj:
    """A pod of about 3.4 kB, as a real cluster sends it: bound, running, with managed fields."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/service:1.2.3",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(24)],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    filler = {"f:spec": {f"f:field{i}": {} for i in range(86)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": f"app-{number % 50}", "pod-template-hash": "abcdef"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": filler}],
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": f"node-{number % nodes}",
            "containers": [container],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": name, "status": "True"} for name in ("Ready", "PodScheduled", "Initialized")],
            "podIP": "10.0.0.1",
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "image": "x" * 60}],
        },
    }
