"""HorizontalPodAutoscalers: defaults and rules. Nothing scales here; see `docs/api.md`."""

from __future__ import annotations

from muster.api import quantity
from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import forbidden, invalid, not_supported, required

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def default(obj: Obj) -> None:
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    found: list[FieldError] = []
    if least is not None and least < 1:
        found.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        found.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    found += _reference(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    for position, metric in enumerate(spec.get("metrics") or ()):
        found += _metric(metric, f"spec.metrics[{position}]")
    return found


def _reference(reference: Obj, path: str) -> list[FieldError]:
    return [required(f"{path}.{key}") for key in ("kind", "name") if not reference.get(key)]


def _metric(metric: Obj, path: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    if kind not in _SOURCES:
        missing = [] if kind else [required(f"{path}.type", "must specify a metric source type")]
        return [*missing, not_supported(f"{path}.type", kind, _SOURCES)]
    expected = _SOURCES[kind]
    others = [key for key in _SOURCES.values() if key != expected and metric.get(key) is not None]
    found = [forbidden(f"{path}.{key}", "must populate the given metric source only") for key in others]
    source: Obj | None = metric.get(expected)
    if source is None:
        return [*found, required(f"{path}.{expected}", "must populate information for the given metric source")]
    at = f"{path}.{expected}"
    if expected in ("resource", "containerResource"):
        if not source.get("name"):
            found.append(required(f"{at}.name", "must specify a resource name"))
        if expected == "containerResource" and not source.get("container"):
            found.append(required(f"{at}.container", "must specify a container"))
    elif not (source.get("metric") or {}).get("name"):
        found.append(required(f"{at}.metric.name", "must specify a metric name"))
    if expected == "object":
        found += _reference(source.get("describedObject") or {}, f"{at}.describedObject")
    return found + _target(source.get("target") or {}, f"{at}.target", expected)


def _target(target: Obj, path: str, source: str) -> list[FieldError]:
    kind = target.get("type") or ""
    found = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in _TARGET_TYPES:
        found.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    found += [
        invalid(f"{path}.{key}", target[key], "must be positive")
        for key in ("value", "averageValue")
        if target.get(key) is not None and quantity.milli(target[key]) <= 0
    ]
    share, average = target.get("averageUtilization"), target.get("averageValue")
    if share is not None and share < 1:
        found.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    if source in ("resource", "containerResource"):
        if share is None and average is None:
            text = "must set either a target raw value or a target utilization"
            found.append(required(f"{path}.averageUtilization", text))
        if share is not None and average is not None:
            text = "may not set both a target raw value and a target utilization"
            found.append(forbidden(f"{path}.averageValue", text))
    elif average is None and (source == "pods" or target.get("value") is None):
        text = (
            "must specify a positive target averageValue"
            if source == "pods"
            else "must set either a target value or averageValue"
        )
        found.append(required(f"{path}.averageValue", text))
    return found
