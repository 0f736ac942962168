"""Table columns of autoscaling, certificates, networking, flow control, runtime classes and quotas."""

from __future__ import annotations

from typing import Any

from muster.server.resources.columns import AGE, NAME, NONE, UNKNOWN, UNSET, at, duration, number, selector_text, text
from muster.server.resources.kind import Column, Obj, RelatedCounts

_MOST_METRICS = 2
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _hosts(obj: Obj, around: RelatedCounts) -> str:
    hosts = [rule["host"] for rule in at(obj, "spec", "rules") or () if rule.get("host")]
    shown = ",".join(hosts[:3])
    return f"{shown} + {len(hosts) - 3} more..." if len(hosts) > 3 else shown or "*"


def _addresses(obj: Obj, around: RelatedCounts) -> str:
    entries = at(obj, "status", "loadBalancer", "ingress") or ()
    return ",".join(sorted({each.get("ip") or each.get("hostname") or "" for each in entries} - {""}))


def _ports(obj: Obj, around: RelatedCounts) -> str:
    return "80, 443" if at(obj, "spec", "tls") else "80"


def _class_name(obj: Obj, around: RelatedCounts) -> str:
    marked = at(obj, "metadata", "annotations") or {}
    return obj["metadata"]["name"] + (" (default)" if marked.get(_DEFAULT_CLASS) == "true" else "")


def _class_parameters(obj: Obj, around: RelatedCounts) -> str:
    parameters = at(obj, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind')}{group}/{parameters.get('name')}"


def _pod_selector(obj: Obj, around: RelatedCounts) -> str:
    return selector_text(at(obj, "spec", "podSelector") or {})


def _parent(obj: Obj, around: RelatedCounts) -> str:
    parent = at(obj, "spec", "parentRef")
    if not parent:
        return NONE
    group = f".{parent['group']}" if parent.get("group") else ""
    place = f"/{parent['namespace']}" if parent.get("namespace") else ""
    return f"{parent.get('resource', '').lower()}{group}{place}/{parent.get('name')}"


def _cidrs(obj: Obj, around: RelatedCounts) -> str:
    return ",".join(at(obj, "spec", "cidrs") or ())


def _scale_target(obj: Obj, around: RelatedCounts) -> str:
    return f"{at(obj, 'spec', 'scaleTargetRef', 'kind')}/{at(obj, 'spec', 'scaleTargetRef', 'name')}"


def _metrics(obj: Obj, around: RelatedCounts) -> str:
    metrics = at(obj, "spec", "metrics") or ()
    if not metrics:
        return NONE
    shown = ", ".join(_metric(each) for each in metrics[:_MOST_METRICS])
    return shown if len(metrics) <= _MOST_METRICS else f"{shown} + {len(metrics) - _MOST_METRICS} more..."


def _metric(metric: Obj) -> str:
    """A metric as its present value, which nothing here measures, and its target."""
    kind = metric.get("type") or ""
    source: Obj = metric.get(kind[:1].lower() + kind[1:]) or {}
    target: Obj = source.get("target") or {}
    named = f"{source.get('name')}: " if kind in ("Resource", "ContainerResource") else ""
    if target.get("averageUtilization") is not None:
        return f"{named}{UNKNOWN}/{target['averageUtilization']}%"
    average = " (avg)" if kind in ("External", "Object") and target.get("averageValue") is not None else ""
    return f"{named}{UNKNOWN}/{target.get('averageValue') or target.get('value')}{average}"


def _requested_duration(obj: Obj, around: RelatedCounts) -> str:
    seconds = at(obj, "spec", "expirationSeconds")
    return NONE if seconds is None else duration(float(seconds))


def _request_state(obj: Obj, around: RelatedCounts) -> str:
    kinds = {each.get("type") for each in at(obj, "status", "conditions") or ()}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    state += ",Failed" if "Failed" in kinds else ""
    return state + (",Issued" if at(obj, "status", "certificate") else "")


def _dangling(obj: Obj, around: RelatedCounts) -> str:
    for each in at(obj, "status", "conditions") or ():
        if each.get("type") == "Dangling":
            return str(each.get("status"))
    return "?"


def _limited(*path: str) -> Any:
    def cell(obj: Obj, around: RelatedCounts) -> Any:
        value = at(obj, "spec", "limited", *path)
        return NONE if value is None else value

    return cell


def _used(limits: bool) -> Any:
    """The quotas of requests and counts, or those of limits, as used/hard."""

    def cell(obj: Obj, around: RelatedCounts) -> str:
        hard: Obj = at(obj, "status", "hard") or {}
        used: Obj = at(obj, "status", "used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") == limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


_QUEUING = ("limitResponse", "queuing")

INGRESSES = (
    NAME,
    Column("Class", text("spec", "ingressClassName", absent=NONE)),
    Column("Hosts", _hosts),
    Column("Address", _addresses),
    Column("Ports", _ports),
    AGE,
)
INGRESS_CLASSES = (
    Column("Name", _class_name, format="name"),
    Column("Controller", text("spec", "controller")),
    Column("Parameters", _class_parameters),
    AGE,
)
NETWORK_POLICIES = (NAME, Column("Pod-Selector", _pod_selector), AGE)
IP_ADDRESSES = (NAME, Column("ParentRef", _parent), AGE)
SERVICE_CIDRS = (NAME, Column("CIDRs", _cidrs), AGE)
AUTOSCALERS = (
    NAME,
    Column("Reference", _scale_target),
    Column("Targets", _metrics),
    Column("MinPods", text("spec", "minReplicas", absent=UNSET)),
    Column("MaxPods", number("spec", "maxReplicas")),
    Column("Replicas", number("status", "currentReplicas")),
    AGE,
)
SIGNING_REQUESTS = (
    NAME,
    AGE,
    Column("SignerName", text("spec", "signerName", absent=NONE)),
    Column("Requestor", text("spec", "username")),
    Column("RequestedDuration", _requested_duration),
    Column("Condition", _request_state),
)
TRUST_BUNDLES = (NAME, Column("SignerName", text("spec", "signerName", absent=NONE)))
RUNTIME_CLASSES = (NAME, Column("Handler", text("handler")), AGE)
FLOW_SCHEMAS = (
    NAME,
    Column("PriorityLevel", text("spec", "priorityLevelConfiguration", "name")),
    Column("MatchingPrecedence", number("spec", "matchingPrecedence")),
    Column("DistinguisherMethod", text("spec", "distinguisherMethod", "type", absent=NONE)),
    AGE,
    Column("MissingPL", _dangling),
)
PRIORITY_LEVELS = (
    NAME,
    Column("Type", text("spec", "type")),
    Column("NominalConcurrencyShares", _limited("nominalConcurrencyShares")),
    Column("Queues", _limited(*_QUEUING, "queues")),
    Column("HandSize", _limited(*_QUEUING, "handSize")),
    Column("QueueLengthLimit", _limited(*_QUEUING, "queueLengthLimit")),
    AGE,
)
VOLUME_ATTRIBUTES_CLASSES = (NAME, Column("DriverName", text("driverName")), AGE)
RESOURCE_QUOTAS = (NAME, Column("Request", _used(limits=False)), Column("Limit", _used(limits=True)), AGE)
