"""Converts HorizontalPodAutoscalers between autoscaling/v2, in which they are stored, and autoscaling/v1.

v1 has one metric: the CPU's utilization. As in Kubernetes, the others travel in annotations, in the form that v1 has
for them, with the behaviour, the measured metrics and the conditions, and come back from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Obj = dict[str, Any]

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT_METRICS = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
CONDITIONS, BEHAVIOR = f"{_PREFIX}conditions", f"{_PREFIX}behavior"
_KEPT = (METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR)
_DEFAULT_UTILIZATION = 80
_RULES = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY = ("Type", "Value", "PeriodSeconds")


def convert(obj: Obj, version: str) -> Obj:
    """The object in the other version; the same object if it is in this one."""
    if obj.get("apiVersion") == f"autoscaling/{version}":
        return obj
    return _to_v1(obj) if version == "v1" else _to_v2(obj)


def _to_v1(obj: Obj) -> Obj:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics: list[Obj] = spec.pop("metrics", None) or []
    current: list[Obj] = status.pop("currentMetrics", None) or []
    conditions, behavior = status.pop("conditions", None), spec.pop("behavior", None)
    if (wanted := _first_percentage(metrics, "target")) is not None:
        spec["targetCPUUtilizationPercentage"] = wanted
    if (measured := _first_percentage(current, "current")) is not None:
        status["currentCPUUtilizationPercentage"] = measured
    others = [metric for metric in metrics if _percentage(metric, "target") is None]
    kept = {
        METRICS: [_metric_to_v1(metric, "target") for metric in others],
        CURRENT_METRICS: [_metric_to_v1(metric, "current") for metric in current],
        CONDITIONS: conditions,
        BEHAVIOR: behavior and _behavior_to_v1(behavior),
    }
    annotations = _without_kept(obj) | {name: _text(value) for name, value in kept.items() if value}
    return _with(obj, "autoscaling/v1", annotations, spec, status)


def _to_v2(obj: Obj) -> Obj:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations: Obj = (obj.get("metadata") or {}).get("annotations") or {}
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    measured = status.pop("currentCPUUtilizationPercentage", None)
    metrics = [_metric_to_v2(each, "target") for each in _objects(annotations.get(METRICS))]
    if percentage is not None:
        metrics.append(_cpu("target", {"type": "Utilization", "averageUtilization": percentage}))
    spec["metrics"] = metrics or [_cpu("target", {"type": "Utilization", "averageUtilization": _DEFAULT_UTILIZATION})]
    if behavior := _behavior_to_v2(annotations.get(BEHAVIOR)):
        spec["behavior"] = behavior
    current = [_metric_to_v2(each, "current") for each in _objects(annotations.get(CURRENT_METRICS))]
    if measured is not None and not current:
        current = [_cpu("current", {"averageUtilization": measured})]
    status["currentMetrics"] = current or None
    if conditions := _objects(annotations.get(CONDITIONS)):
        status["conditions"] = conditions
    return _with(obj, "autoscaling/v2", _without_kept(obj), spec, status)


def _with(obj: Obj, api_version: str, annotations: Obj, spec: Obj, status: Obj) -> Obj:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status}


def _without_kept(obj: Obj) -> Obj:
    annotations: Obj = (obj.get("metadata") or {}).get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in _KEPT}


def _first_percentage(metrics: list[Obj], part: str) -> int | None:
    found = (_percentage(metric, part) for metric in metrics)
    return next((each for each in found if each is not None), None)


def _percentage(metric: Obj, part: str) -> int | None:
    """The utilization of the CPU, if that is what the metric is about."""
    resource: Obj = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return (resource.get(part) or {}).get("averageUtilization")


def _cpu(part: str, value: Obj) -> Obj:
    return {"type": "Resource", "resource": {"name": "cpu", part: value}}


# Where v1 keeps the numbers of a source: (v2, v1 of a target, v1 of a status).
_RESOURCE = (
    ("averageUtilization", "targetAverageUtilization", "currentAverageUtilization"),
    ("averageValue", "targetAverageValue", "currentAverageValue"),
)
_VALUES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "resource": _RESOURCE,
    "containerResource": _RESOURCE,
    "pods": (("averageValue", "targetAverageValue", "currentAverageValue"),),
    "object": (("value", "targetValue", "currentValue"), ("averageValue", "averageValue", "averageValue")),
    "external": (
        ("value", "targetValue", "currentValue"),
        ("averageValue", "targetAverageValue", "currentAverageValue"),
    ),
}
_SELECTOR = {"pods": "selector", "object": "selector", "external": "metricSelector"}


def _source_of(metric: Obj) -> str:
    return next((name for name in _VALUES if isinstance(metric.get(name), dict)), "")


def _metric_to_v1(metric: Obj, part: str) -> Obj:
    name = _source_of(metric)
    if not name:
        return metric
    source: Obj = metric[name]
    numbers: Obj = source.get(part) or {}
    old = {key: numbers[new] for new, key in _numbers(name, part) if new in numbers}
    for key in ("name", "container"):
        if key in source:
            old[key] = source[key]
    if name in _SELECTOR:
        identifier: Obj = source.get("metric") or {}
        old["metricName"] = identifier.get("name", "")
        if "selector" in identifier:
            old[_SELECTOR[name]] = identifier["selector"]
    if name == "object":
        old["target"] = source.get("describedObject") or {}
        old.setdefault("targetValue" if part == "target" else "currentValue", "0")
    return {"type": metric.get("type", ""), name: old}


def _metric_to_v2(metric: Obj, part: str) -> Obj:
    name = _source_of(metric)
    if not name:
        return metric
    old: Obj = metric[name]
    numbers = {new: old[key] for new, key in _numbers(name, part) if old.get(key) is not None}
    if name == "object" and "averageValue" in numbers and numbers.get("value") in ("0", 0):
        del numbers["value"]  # v1 cannot leave it out
    if part == "target":
        numbers["type"] = _target_type(name, numbers)
    source: Obj = {part: numbers}
    for key in ("name", "container"):
        if key in old:
            source[key] = old[key]
    if name in _SELECTOR:
        source["metric"] = {"name": old.get("metricName", "")}
        if old.get(_SELECTOR[name]) is not None:
            source["metric"]["selector"] = old[_SELECTOR[name]]
    if name == "object":
        source["describedObject"] = old.get("target") or {}
    return {"type": metric.get("type", ""), name: source}


def _numbers(name: str, part: str) -> list[tuple[str, str]]:
    return [(v2, target if part == "target" else current) for v2, target, current in _VALUES[name]]


def _target_type(name: str, numbers: Obj) -> str:
    if name in ("resource", "containerResource"):
        return "Utilization" if "averageUtilization" in numbers else "AverageValue"
    if name == "object":
        return "AverageValue" if "averageValue" in numbers else "Value"
    return "Value" if name == "external" and "value" in numbers else "AverageValue"


def _behavior_to_v1(behavior: Obj) -> Obj:
    def rules(found: Obj | None) -> Obj | None:
        if found is None:
            return None
        shown = {name: found.get(_lower(name)) for name in _RULES}
        policies: list[Obj] | None = shown["Policies"]
        if policies is not None:
            shown["Policies"] = [{name: policy.get(_lower(name)) for name in _POLICY} for policy in policies]
        return shown

    return {"ScaleUp": rules(behavior.get("scaleUp")), "ScaleDown": rules(behavior.get("scaleDown"))}


def _behavior_to_v2(text: Any) -> Obj:
    found = _decoded(text)
    return _lowered(found) if isinstance(found, dict) else {}


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {_lower(name): _lowered(each) for name, each in value.items() if each is not None}
    return [_lowered(each) for each in value] if isinstance(value, list) else value


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _objects(text: Any) -> list[Obj]:
    """The objects in an annotation; what is none, or no list of them, is as if it was not there, as in Kubernetes."""
    found = _decoded(text)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return []
    return found


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


_text: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode
