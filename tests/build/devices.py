"""Objects of dynamic resource allocation by sentence: slices, classes, claims, and pods that use them."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from muster.api.types import Node, Pod, PodResourceClaimStatus
from tests.build.objects import a_gang, a_pod
from tests.build.scheduler import TestWorld

Obj = dict[str, Any]
DRIVER = "gpu.example.com"


def a_slice(name: str, devices: list[Obj], pool: str | Obj = "", **spec: Any) -> ResourceSlice:
    """A slice on node `n` unless told otherwise; without a pool, the only slice of the pool of its own name."""
    where = {} if {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": "n"}
    given = pool if isinstance(pool, dict) else {"name": pool or name}
    body = {"driver": DRIVER, "pool": {"generation": 1, "resourceSliceCount": 1} | given, **where, **spec}
    if devices:
        body["devices"] = devices
    return msgspec.convert({"metadata": {"name": name}, "spec": body}, ResourceSlice)


def a_claim(*requests: Obj, constraints: list[Obj] | None = None, **devices: Any) -> ResourceClaim:
    spec = {"devices": {"requests": list(requests), "constraints": constraints or [], **devices}}
    return msgspec.convert({"metadata": {"name": "c", "namespace": "default"}, "spec": spec}, ResourceClaim)


def a_request(name: str, device_class: str = "gpu", **exactly: Any) -> Obj:
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def a_class(name: str, *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}, DeviceClass)


def a_node(name: str = "n", **labels: str) -> Node:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node)


def gpus(count: int, **body: Any) -> list[Obj]:
    """So many devices that only their names tell apart."""
    return [{"name": f"gpu-{number}", **body} for number in range(count)]


def gpus_of(node: str, count: int, **body: Any) -> ResourceSlice:
    """The devices of one node, as its only pool."""
    return a_slice(node, gpus(count, **body), nodeName=node)


def own_claim(pod: str, *requests: Obj, **devices: Any) -> ResourceClaim:
    """The claim that was made for the entry `gpu` of a pod; one device of class `gpu` unless told otherwise."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"pod-{pod}", "controller": True}
    meta = {"name": f"{pod}-gpu", "namespace": "ns", "uid": f"claim-{pod}", "ownerReferences": [owner]}
    spec = {"devices": {"requests": list(requests) or [a_request("r")], **devices}}
    return msgspec.convert({"metadata": meta, "spec": spec}, ResourceClaim)


def shared_claim(name: str, *requests: Obj, **status: Any) -> ResourceClaim:
    """A claim that somebody made by hand."""
    meta = {"name": name, "namespace": "ns", "uid": f"claim-{name}"}
    spec = {"devices": {"requests": list(requests) or [a_request("r")]}}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, ResourceClaim)


def a_gpu_pod(name: str, group: str | None = None, **fields: Any) -> Pod:
    """A pod with a claim of its own, which has been made."""
    pod = a_pod(name, group, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "template"}], **fields)
    made = (PodResourceClaimStatus("gpu", f"{name}-gpu"),)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, resource_claim_statuses=made))


def using_claim(name: str, claim: str, group: str | None = None, **fields: Any) -> Pod:
    """A pod that uses a claim that somebody made by hand."""
    return a_pod(name, group, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}], **fields)


def a_gpu_gang(world: TestWorld, name: str, size: int, **fields: Any) -> None:
    """A gang whose pods have a claim of their own each."""
    pods = [a_gpu_pod(f"{name}-{number}", name, **fields) for number in range(size)]
    world.add(a_gang(name, min_count=size), *(own_claim(pod.metadata.name) for pod in pods), *pods)
