"""API objects by sentence, as the types that the scheduler receives: what a test is about is said, the rest filled in.

Names decide identity: the uid of a pod is `pod-<name>`, that of a node `node-<name>`, that of a group
`<kind>-<name>`. Namespaced objects are in the namespace `ns` and were created `created` seconds into 2026.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from muster.api import groups as api
from muster.api import types
from muster.api.expected_members import (
    EXPECTED_MEMBERS,
    ExpectedMembers,
    ExpectedPodTemplate,
    TemplateMeta,
    encode,
)

T = TypeVar("T")
HOSTNAME, TOPOLOGY_ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
RACK, BLOCK, ZONE = "example.com/rack", "example.com/block", "example.com/zone"
DOMAINS = {"rack": RACK, "block": BLOCK, "zone": ZONE, "topology_zone": TOPOLOGY_ZONE}
POD_FIELDS = {field.encode_name for field in msgspec.structs.fields(types.PodSpec)}


def of(kind: type[T], body: Mapping[str, Any]) -> T:
    """An object of any kind from its JSON form."""
    return msgspec.convert(body, kind)


# --- nodes and pods --------------------------------------------------------------------------------


def a_node(
    name: str = "n0",
    cpu: float | str = 4,
    memory: str = "64Gi",
    pods: int = 110,
    gpu: int = 0,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    extended: Mapping[str, int] | None = None,
    **more_labels: str,
) -> types.Node:
    """A node; taints are `key=value:Effect`; `rack`, `block` and `zone` are labels under example.com,
    `topology_zone` is the well-known label, other keywords are labels as they are.
    """
    named = {HOSTNAME: name} | {DOMAINS.get(key, key): value for key, value in more_labels.items()}
    room = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    if gpu:
        room["nvidia.com/gpu"] = str(gpu)
    room |= {resource: str(count) for resource, count in (extended or {}).items()}
    status: dict[str, Any] = {"allocatable": room}
    if images:
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in images.items()]
    spec: dict[str, Any] = {"unschedulable": True} if unschedulable else {}
    if found := [_taint(text) for text in taints]:
        spec["taints"] = found
    meta = {"name": name, "uid": f"node-{name}", "labels": named | dict(labels or {})}
    return of(types.Node, {"metadata": meta, "status": status} | ({"spec": spec} if spec else {}))


def a_pod(
    name: str = "pod",
    group: str | None = None,
    cpu: float | str | None = 1,
    memory: str | None = None,
    *,
    node: str | None = None,
    namespace: str = "ns",
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    created: int = 0,
    phase: str = "",
    deleting: bool = False,
    owner: str | None = None,
    scheduler: str = "default-scheduler",
    gates: Sequence[str] = (),
    policy: str | None = None,
    requests: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> types.Pod:
    """A pod with one container, bound already if a node is given.

    `owner` is `Kind/name`, or the name of a Job; `container` adds fields to the container; what is not named here is a
    field of the spec as it is on the wire.
    """
    assert not (unknown := spec.keys() - POD_FIELDS), f"a pod's spec has no {sorted(unknown)}"
    amounts = {"cpu": cpu, "memory": memory} | dict(requests or {})
    wanted = {resource: str(amount) for resource, amount in amounts.items() if amount is not None}
    body: dict[str, Any] = {
        "schedulerName": scheduler,
        "priority": priority,
        "containers": [{"name": "c", "resources": {"requests": wanted}} | dict(container or {})],
        **spec,
    }
    if group:
        body["schedulingGroup"] = {"podGroupName": group}
    if node:
        body["nodeName"] = node
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    if policy:
        body["preemptionPolicy"] = policy
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"pod-{name}",
        "creationTimestamp": timestamp(created),
        "labels": labels or {},
    }
    if deleting:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if owner:
        kind, _, owner_name = owner.rpartition("/")
        meta["ownerReferences"] = [{"kind": kind or "Job", "name": owner_name, "uid": owner, "controller": True}]
    status = {"phase": phase or ("Running" if node else "Pending"), "startTime": timestamp(created)}
    return of(types.Pod, {"metadata": meta, "spec": body, "status": status})


def pods(count: int, group: str | None = None, name: str | None = None, **fields: Any) -> list[types.Pod]:
    """So many alike pods, named after their group."""
    base = name or group or "pod"
    return [a_pod(f"{base}-{i}", group, **fields) for i in range(count)]


def near(key: str, **labels: str) -> dict[str, Any]:
    """Required affinity to pods with these labels, in one domain of the key."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apart(key: str, **labels: str) -> dict[str, Any]:
    """Required anti-affinity to pods with these labels, within one domain of the key."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apart_from_label(label: str) -> dict[str, Any]:
    """Required anti-affinity to pods that have this label, whatever its value, on one node."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


# --- groups ----------------------------------------------------------------------------------------


def a_gang(name: str, min_count: int, **fields: Any) -> api.PodGroup:
    """A PodGroup with the gang policy; fields as `_group` reads them."""
    return _group(api.PodGroup, name, {"gang": {"minCount": min_count}}, fields)


def a_basic(name: str, **fields: Any) -> api.PodGroup:
    """A PodGroup with the basic policy."""
    return _group(api.PodGroup, name, {"basic": {}}, fields)


def a_composite(name: str, min_groups: int | None, **fields: Any) -> api.CompositePodGroup:
    """A CompositePodGroup; the basic policy without a minimum."""
    policy = {"basic": {}} if min_groups is None else {"gang": {"minGroupCount": min_groups}}
    return _group(api.CompositePodGroup, name, policy, {"workload": f"wl/{name}"} | fields)


def _group(kind: Any, name: str, policy: dict[str, Any], fields: dict[str, Any]) -> Any:
    spec: dict[str, Any] = {"schedulingPolicy": policy, "priority": fields.get("priority", 0)}
    if fields.get("priority", 0) is None:
        del spec["priority"]
    if parent := fields.get("parent"):
        spec["parentCompositePodGroupName"] = parent
        spec["workloadRef"] = {"workloadName": "wl", "templateName": name}
    if workload := fields.get("workload"):
        workload_name, template = workload.split("/")
        spec["workloadRef"] = {"workloadName": workload_name, "templateName": template}
    if topology := fields.get("topology"):
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    spec["disruptionMode"] = {fields.get("mode", "single"): {}}
    if priority_class := fields.get("priority_class"):
        spec["priorityClassName"] = priority_class
    if policy_name := fields.get("policy"):
        spec["preemptionPolicy"] = policy_name
    meta = {
        "annotations": {EXPECTED_MEMBERS: fields["expects"]} if "expects" in fields else None,
        "name": name,
        "namespace": fields.get("namespace", "ns"),
        "uid": f"{kind.__name__}-{name}",
        "creationTimestamp": timestamp(fields.get("created", 0)),
    }
    return of(kind, {"metadata": meta, "spec": spec})


def expects(count: int, like: types.Pod | None = None, after: str = "ready") -> str:
    """The annotation of a group that will have so many members like this pod, those included that exist."""
    return expects_all((count, like if like is not None else a_pod(), after))


def expects_all(*templates: tuple[int, types.Pod, str]) -> str:
    """The same for several templates."""
    return encode(
        ExpectedMembers(count, ExpectedPodTemplate(TemplateMeta(pod.metadata.labels), pod.spec), after)
        for count, pod, after in templates
    )


# --- what pods depend on ---------------------------------------------------------------------------


def a_budget(name: str, allowed: int, **labels: str) -> types.PodDisruptionBudget:
    """A disruption budget of the pods with these labels that still allows so many disruptions."""
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }
    return of(types.PodDisruptionBudget, body)


def a_claim(
    name: str = "data",
    volume: str = "",
    storage_class: str = "fast",
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str | None = None,
    size: str = "1Gi",
    **meta: Any,
) -> types.PersistentVolumeClaim:
    """A claim, bound if a volume is named."""
    return of(
        types.PersistentVolumeClaim,
        {
            "metadata": {"name": name, "namespace": "ns", "uid": f"claim-{name}", "annotations": {}} | meta,
            "spec": {
                "volumeName": volume,
                "storageClassName": storage_class,
                "accessModes": list(modes),
                "resources": {"requests": {"storage": size}},
            },
            "status": {"phase": phase if phase is not None else ("Bound" if volume else "Pending")},
        },
    )


def a_volume(
    name: str = "pv",
    zone: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    driver: str = "",
    size: str = "1Gi",
    claim: str = "",
    storage_class: str = "fast",
    phase: str = "",
    zone_key: str = TOPOLOGY_ZONE,
) -> types.PersistentVolume:
    """A volume; with a zone it can only be used there; `claim` is the claim it belongs to."""
    spec: dict[str, Any] = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    spec["storageClassName"] = storage_class
    if zone:
        term = {"matchExpressions": [{"key": zone_key, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if driver:
        spec["csi"] = {"driver": driver, "volumeHandle": f"handle-{name}"}
    if claim:
        spec["claimRef"] = {"namespace": "ns", "name": claim}
    meta = {"name": name, "uid": f"volume-{name}", "labels": labels}
    body = {"metadata": meta, "spec": spec, "status": {"phase": phase}}
    return of(types.PersistentVolume, body)


def a_class(
    name: str = "fast",
    provisioner: str = "example.com/disk",
    waits: bool = True,
    zones: Sequence[str] = (),
    zone_key: str = TOPOLOGY_ZONE,
) -> types.StorageClass:
    """A storage class whose volumes wait for their first consumer; with zones, only provisioned there."""
    body: dict[str, Any] = {"metadata": {"name": name}, "provisioner": provisioner}
    body["volumeBindingMode"] = "WaitForFirstConsumer" if waits else "Immediate"
    if zones:
        body["allowedTopologies"] = [{"matchLabelExpressions": [{"key": zone_key, "values": list(zones)}]}]
    return of(types.StorageClass, body)


def a_csi_node(node: str, limit: int | None, driver: str = "d") -> types.CSINode:
    """The CSINode of a node whose driver attaches at most so many volumes, any number if the limit is None."""
    entry: dict[str, Any] = {"name": driver, "nodeID": node}
    if limit is not None:
        entry["allocatable"] = {"count": limit}
    return of(types.CSINode, {"metadata": {"name": node}, "spec": {"drivers": [entry]}})


def a_service(name: str = "svc", namespace: str = "ns", **selector: str) -> types.Service:
    """A Service of the pods with these labels; without labels its selector is empty."""
    return of(types.Service, {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}})


def using(*claims: str, name: str = "pod", **fields: Any) -> types.Pod:
    """A pod that mounts these claims."""
    volumes = [
        {"name": f"data-{i}" if i else "data", "persistentVolumeClaim": {"claimName": claim}}
        for i, claim in enumerate(claims)
    ]
    return a_pod(name, volumes=volumes, **fields)


def timestamp(second: int) -> str:
    return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def _taint(text: str) -> dict[str, str]:
    head, _, effect = text.partition(":")
    key, _, value = head.partition("=")
    return {"key": key, "value": value, "effect": effect}
