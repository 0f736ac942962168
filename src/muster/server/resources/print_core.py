"""Table columns of the core kinds: pods, nodes, namespaces, events, services, volumes and the smaller ones."""

from __future__ import annotations

from typing import Any

from muster.server.resources.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    age,
    at,
    containers,
    duration,
    epoch,
    number,
    selector_column,
    size,
    text,
)
from muster.server.resources.kind import Column, Obj, RelatedCounts

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


# Pods


def _statuses(pod: Obj, field: str = "containerStatuses") -> list[Obj]:
    return at(pod, "status", field) or []


def pod_ready(pod: Obj, around: RelatedCounts) -> str:
    ready = sum(1 for entry in _statuses(pod) if entry.get("ready"))
    return f"{ready}/{len(at(pod, 'spec', 'containers') or ())}"


def pod_status(pod: Obj, around: RelatedCounts) -> str:
    """The word kubectl shows: the most telling of phase, reason and container states."""
    words: str = at(pod, "status", "reason") or at(pod, "status", "phase") or "Unknown"
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        words = "SchedulingGated"
    initializing = _initializing(pod)
    words = initializing or _containers_state(pod, words)
    if at(pod, "metadata", "deletionTimestamp"):
        if at(pod, "status", "reason") == "NodeLost":
            return "Unknown"
        if at(pod, "status", "phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return words


def _initializing(pod: Obj) -> str:
    declared: list[Obj] = at(pod, "spec", "initContainers") or []
    restartable = {entry.get("name") for entry in declared if entry.get("restartPolicy") == "Always"}
    for index, entry in enumerate(_statuses(pod, "initContainerStatuses")):
        state: Obj = entry.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if entry.get("name") in restartable and entry.get("started"):
            continue
        if ended is not None:
            return f"Init:{_ended_words(ended)}"
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(declared)}"
    return ""


def _containers_state(pod: Obj, words: str) -> str:
    running = False
    for entry in reversed(_statuses(pod)):
        state: Obj = entry.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            words = waiting["reason"]
        elif ended is not None:
            words = _ended_words(ended)
        elif entry.get("ready") and state.get("running") is not None:
            running = True
    if words == "Completed" and running:
        ready = _condition(pod, "Ready")
        return "Running" if ready is not None and ready.get("status") == "True" else "NotReady"
    return words


def _ended_words(ended: Obj) -> str:
    if ended.get("reason"):
        return ended["reason"]
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _condition(obj: Obj, type: str) -> Obj | None:
    for entry in at(obj, "status", "conditions") or ():
        if entry.get("type") == type:
            return entry
    return None


def pod_restarts(pod: Obj, around: RelatedCounts) -> str:
    count = sum(entry.get("restartCount", 0) for entry in _statuses(pod))
    ends = [epoch(at(entry, "lastState", "terminated", "finishedAt")) for entry in _statuses(pod)]
    known = [moment for moment in ends if moment is not None]
    return f"{count} ({duration(around.now - max(known))} ago)" if count and known else str(count)


def pod_readiness_gates(pod: Obj, around: RelatedCounts) -> str:
    gates: list[Obj] = at(pod, "spec", "readinessGates") or []
    if not gates:
        return NONE
    met = [_condition(pod, gate.get("conditionType", "")) for gate in gates]
    return f"{sum(1 for entry in met if entry and entry.get('status') == 'True')}/{len(gates)}"


PODS = (
    NAME,
    Column("Ready", pod_ready, description="Containers that are ready, of all."),
    Column("Status", pod_status, description="The state of the pod and its containers in one word."),
    Column("Restarts", pod_restarts, description="How often containers were restarted, and when last."),
    AGE,
    Column("IP", text("status", "podIP", absent=NONE), wide=True),
    Column("Node", text("spec", "nodeName", absent=NONE), wide=True),
    Column("Nominated Node", text("status", "nominatedNodeName", absent=NONE), wide=True),
    Column("Readiness Gates", pod_readiness_gates, wide=True),
)


# Nodes


def node_status(node: Obj, around: RelatedCounts) -> str:
    ready = _condition(node, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if at(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Obj, around: RelatedCounts) -> str:
    roles: set[str] = set()
    for key, value in (at(node, "metadata", "labels") or {}).items():
        if key.startswith("node-role.kubernetes.io/"):
            roles.add(key.removeprefix("node-role.kubernetes.io/"))
        elif key == "kubernetes.io/role" and value:
            roles.add(value)
    return ",".join(sorted(roles)) or NONE


def _address(type: str) -> Any:
    def cell(node: Obj, around: RelatedCounts) -> str:
        for entry in at(node, "status", "addresses") or ():
            if entry.get("type") == type:
                return entry.get("address", NONE)
        return NONE

    return cell


NODES = (
    NAME,
    Column("Status", node_status),
    Column("Roles", node_roles),
    AGE,
    Column("Version", text("status", "nodeInfo", "kubeletVersion")),
    Column("Internal-IP", _address("InternalIP"), wide=True),
    Column("External-IP", _address("ExternalIP"), wide=True),
    Column("OS-Image", text("status", "nodeInfo", "osImage", absent=UNKNOWN), wide=True),
    Column("Kernel-Version", text("status", "nodeInfo", "kernelVersion", absent=UNKNOWN), wide=True),
    Column("Container-Runtime", text("status", "nodeInfo", "containerRuntimeVersion", absent=UNKNOWN), wide=True),
)


# Events


def event_last_seen(event: Obj, around: RelatedCounts) -> str:
    stamp = at(event, "series", "lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return age("stamp")({"stamp": stamp or at(event, "metadata", "creationTimestamp")}, around)


def event_first_seen(event: Obj, around: RelatedCounts) -> str:
    return age("stamp")({"stamp": event.get("firstTimestamp") or event.get("eventTime")}, around)


def event_object(event: Obj, around: RelatedCounts) -> str:
    about: Obj = event.get("involvedObject") or {}
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def event_source(event: Obj, around: RelatedCounts) -> str:
    component = at(event, "source", "component") or event.get("reportingComponent") or ""
    host = at(event, "source", "host") or event.get("reportingInstance")
    return f"{component}, {host}" if host else component


def event_count(event: Obj, around: RelatedCounts) -> int:
    return at(event, "series", "count") or event.get("count") or 1


EVENTS = (
    Column("Last Seen", event_last_seen, description="When this was last observed."),
    Column("Type", text("type")),
    Column("Reason", text("reason")),
    Column("Object", event_object),
    Column("Subobject", text("involvedObject", "fieldPath"), wide=True),
    Column("Source", event_source, wide=True),
    Column("Message", lambda event, around: str(event.get("message", "")).strip()),
    Column("First Seen", event_first_seen, wide=True),
    Column("Count", event_count, wide=True),
    Column("Name", text("metadata", "name"), format="name", wide=True),
)


# Services and endpoints


def service_ports(service: Obj, around: RelatedCounts) -> str:
    parts: list[str] = []
    for port in at(service, "spec", "ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        parts.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(parts) or NONE


def service_external(service: Obj, around: RelatedCounts) -> str:
    own: list[str] = list(at(service, "spec", "externalIPs") or ())
    match at(service, "spec", "type"):
        case "LoadBalancer":
            entries = at(service, "status", "loadBalancer", "ingress") or ()
            own = [entry.get("ip") or entry.get("hostname", "") for entry in entries] + own
            return ",".join(own) or "<pending>"
        case "ExternalName":
            return at(service, "spec", "externalName") or NONE
        case _:
            return ",".join(own) or NONE


SERVICES = (
    NAME,
    Column("Type", text("spec", "type")),
    Column("Cluster-IP", text("spec", "clusterIP", absent=NONE)),
    Column("External-IP", service_external),
    Column("Port(s)", service_ports),
    AGE,
    selector_column("spec", "selector"),
)


def endpoints(obj: Obj, around: RelatedCounts) -> str:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ({},):
            suffix = f":{port['port']}" if "port" in port else ""
            found += [f"{entry.get('ip')}{suffix}" for entry in subset.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more if found else NONE


ENDPOINTS = (NAME, Column("Endpoints", endpoints), AGE)


def slice_ports(obj: Obj, around: RelatedCounts) -> str:
    ports = [str(port.get("port", "*")) for port in obj.get("ports") or ()]
    return ",".join(ports) or UNSET


def slice_endpoints(obj: Obj, around: RelatedCounts) -> str:
    found = [address for entry in obj.get("endpoints") or () for address in entry.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more if found else UNSET


ENDPOINT_SLICES = (
    NAME,
    Column("AddressType", text("addressType")),
    Column("Ports", slice_ports),
    Column("Endpoints", slice_endpoints),
    AGE,
)


# Volumes


def access_modes(*path: str) -> Any:
    def cell(obj: Obj, around: RelatedCounts) -> str:
        modes: list[str] = at(obj, *path) or []
        return ",".join(_ACCESS_MODES.get(mode, mode) for mode in modes)

    return cell


def claim_status(claim: Obj, around: RelatedCounts) -> str:
    return "Terminating" if at(claim, "metadata", "deletionTimestamp") else at(claim, "status", "phase") or "Pending"


def volume_claim(volume: Obj, around: RelatedCounts) -> str:
    ref: Obj | None = at(volume, "spec", "claimRef")
    return f"{ref.get('namespace')}/{ref.get('name')}" if ref else ""


PERSISTENT_VOLUME_CLAIMS = (
    NAME,
    Column("Status", claim_status),
    Column("Volume", text("spec", "volumeName")),
    Column("Capacity", text("status", "capacity", "storage")),
    Column("Access Modes", access_modes("status", "accessModes")),
    Column("StorageClass", text("spec", "storageClassName")),
    Column("VolumeAttributesClass", text("spec", "volumeAttributesClassName", absent=UNSET)),
    AGE,
    Column("VolumeMode", text("spec", "volumeMode", absent=UNSET), wide=True),
)
PERSISTENT_VOLUMES = (
    NAME,
    Column("Capacity", text("spec", "capacity", "storage")),
    Column("Access Modes", access_modes("spec", "accessModes")),
    Column("Reclaim Policy", text("spec", "persistentVolumeReclaimPolicy")),
    Column("Status", claim_status),
    Column("Claim", volume_claim),
    Column("StorageClass", text("spec", "storageClassName")),
    Column("VolumeAttributesClass", text("spec", "volumeAttributesClassName", absent=UNSET)),
    Column("Reason", text("status", "reason")),
    AGE,
    Column("VolumeMode", text("spec", "volumeMode", absent=UNSET), wide=True),
)

# Small kinds

NAMESPACES = (NAME, Column("Status", text("status", "phase")), AGE)
CONFIG_MAPS = (
    NAME,
    Column("Data", lambda obj, around: len(obj.get("data") or ()) + len(obj.get("binaryData") or ())),
    AGE,
)
SECRETS = (NAME, Column("Type", text("type")), Column("Data", size("data"), type="integer"), AGE)
SERVICE_ACCOUNTS = (NAME, Column("Secrets", size("secrets"), type="integer"), AGE)
REPLICATION_CONTROLLERS = (
    NAME,
    Column("Desired", number("spec", "replicas"), type="integer"),
    Column("Current", number("status", "replicas"), type="integer"),
    Column("Ready", number("status", "readyReplicas"), type="integer"),
    AGE,
    *containers("spec", "template", "spec", "containers"),
    selector_column("spec", "selector"),
)
LIMIT_RANGES = (NAME, Column("Created At", text("metadata", "creationTimestamp")))
POD_TEMPLATES = (NAME, *containers("template", "spec", "containers"))

CUSTOM_RESOURCE_DEFINITIONS = (NAME, Column("Created At", text("metadata", "creationTimestamp")))
