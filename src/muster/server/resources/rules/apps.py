"""Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers: defaults and rules."""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import invalid, not_negative, one_of, required, unchanged
from muster.server.resources.rules.templates import (
    always_restarts,
    default_template,
    validate_selector,
    validate_template,
)


def _spec(obj: Obj) -> Obj:
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    return spec


def _replicas(spec: Obj) -> None:
    if spec.get("replicas") is None:
        spec["replicas"] = 1


def default_deployment(obj: Obj) -> None:
    spec = _spec(obj)
    default_template(spec)
    _replicas(spec)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def default_replica_set(obj: Obj) -> None:
    spec = _spec(obj)
    default_template(spec)
    _replicas(spec)
    _labels_from_template(obj)


def default_stateful_set(obj: Obj) -> None:
    spec = _spec(obj)
    default_template(spec)
    _replicas(spec)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")


def default_daemon_set(obj: Obj) -> None:
    spec = _spec(obj)
    default_template(spec)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def default_replication_controller(obj: Obj) -> None:
    spec = _spec(obj)
    default_template(spec)
    _replicas(spec)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)
    _labels_from_template(obj)


def _labels_from_template(obj: Obj) -> None:
    labels = ((_spec(obj).get("template") or {}).get("metadata") or {}).get("labels")
    metadata = obj.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def validate_workload(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    """The rules that Deployments, ReplicaSets, StatefulSets and DaemonSets share."""
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found = not_negative("spec.replicas", spec.get("replicas"))
    found += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    found += validate_selector(spec)
    found += validate_template(spec.get("template") or {}, "spec.template")
    found += always_restarts(spec)
    if old is not None:
        found += unchanged("spec.selector", spec.get("selector"), (old.get("spec") or {}).get("selector"))
    return found


def validate_deployment(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found = validate_workload(new, old, subresource)
    if subresource:
        return found
    strategy: Obj = (new.get("spec") or {}).get("strategy") or {}
    found += one_of("spec.strategy.type", strategy.get("type"), ("Recreate", "RollingUpdate"))
    if strategy.get("type") == "RollingUpdate":
        rolling: Obj = strategy.get("rollingUpdate") or {}
        path = "spec.strategy.rollingUpdate"
        for key in ("maxSurge", "maxUnavailable"):
            found += int_or_percent(f"{path}.{key}", rolling.get(key))
        if _zero(rolling.get("maxSurge")) and _zero(rolling.get("maxUnavailable")):
            found.append(
                invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0")
            )
    return found


def validate_stateful_set(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found = validate_workload(new, old, subresource)
    if not subresource:
        policy = (new.get("spec") or {}).get("podManagementPolicy")
        found += one_of("spec.podManagementPolicy", policy, ("OrderedReady", "Parallel"))
    return found


def validate_replication_controller(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found = not_negative("spec.replicas", spec.get("replicas"))
    if not spec.get("selector"):
        found.append(required("spec.selector"))
    if not spec.get("template"):
        return [*found, required("spec.template")]
    return found + validate_template(spec["template"], "spec.template") + always_restarts(spec)


def int_or_percent(path: str, value: Any) -> list[FieldError]:
    """A count that is not negative, or a percentage."""
    if isinstance(value, str):
        if value.endswith("%") and value[:-1].isdigit():
            return []
        return [
            invalid(
                path,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
                "'1%',  or '93%', regex used for validation is '[0-9]+%')",
            )
        ]
    return not_negative(path, value)


def _zero(value: Any) -> bool:
    return value in (0, "0%")
