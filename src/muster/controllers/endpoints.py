"""One pod as an endpoint of a Service: its address, whether it serves, and the ports that the Service means.

Pure.
"""

from __future__ import annotations

from typing import Any

from muster.controllers.objects import PodView, UnstructuredObject
from muster.controllers.status import JSON

Ports = tuple[tuple[tuple[str, Any], ...], ...]  # the ports of a slice, as values that can be compared

_ZONE = "topology.kubernetes.io/zone"


def selected_by(service: UnstructuredObject, pod: PodView) -> bool:
    selector: dict[str, str] = service.spec.get("selector") or {}
    labels = pod.metadata.labels or {}
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def is_endpoint(service: UnstructuredObject, pod: PodView) -> bool:
    """Whether a pod is an endpoint: selected, with an address, and not ended."""
    return bool(pod.status.pod_ip) and not pod.finished and selected_by(service, pod)


def endpoint_of(service: UnstructuredObject, pod: PodView, node: UnstructuredObject | None) -> JSON:
    serving = pod.ready
    ready = (serving or bool(service.spec.get("publishNotReadyAddresses"))) and not (
        pod.going and not service.spec.get("publishNotReadyAddresses")
    )
    endpoint: JSON = {
        "addresses": [pod.status.pod_ip],
        "conditions": {"ready": ready, "serving": serving, "terminating": pod.going},
        "targetRef": {
            "kind": "Pod",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
        },
    }
    if pod.spec.node_name:
        endpoint["nodeName"] = pod.spec.node_name
    zone = (node.metadata.labels or {}).get(_ZONE) if node is not None else None
    if zone:
        endpoint["zone"] = zone
    if pod.spec.hostname and pod.spec.subdomain == service.metadata.name:
        endpoint["hostname"] = pod.spec.hostname
    return endpoint


def ports_of(service: UnstructuredObject, pod: PodView) -> Ports:
    """The ports of a Service on a pod; one whose name the pod does not have is left out."""
    found: list[tuple[tuple[str, Any], ...]] = []
    for port in service.spec.get("ports") or ():
        number = _target(port, pod)
        if number is None:
            continue
        entry: JSON = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        found.append(tuple(sorted(entry.items())))
    return tuple(found)


def _target(port: JSON, pod: PodView) -> int | None:
    target = port.get("targetPort")
    if target in (None, "", 0):
        target = port.get("port")
    if isinstance(target, int):
        return target
    protocol = port.get("protocol") or "TCP"
    for container in pod.spec.containers or ():
        for each in container.ports or ():
            if (each.name, each.protocol or "TCP") == (target, protocol):
                return each.container_port
    return None
