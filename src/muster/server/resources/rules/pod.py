"""Pods: initial status, quality-of-service class, and which rules a write must pass."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from muster.api import quantity
from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.pod_defaults import default_pod
from muster.server.resources.rules.pod_spec import validate_pod_spec
from muster.server.resources.rules.pod_update import validate_pod_update
from muster.server.resources.rules.status import keep_status

__all__ = ["default", "prepare", "qos_class", "validate"]

_COMPUTED = ("cpu", "memory")

default = default_pod


def prepare(new: Obj, old: Obj | None, subresource: str) -> None:
    """A new pod is Pending; whoever writes the status cannot change its quality of service."""
    keep_status(new, old, subresource)
    if old is None:
        new["status"] = _initial_status(new)
    elif subresource == "status":
        qos = (old.get("status") or {}).get("qosClass")
        if qos and isinstance(new.get("status"), dict):
            new["status"]["qosClass"] = qos


def _initial_status(pod: Obj) -> Obj:
    spec: Obj = pod.get("spec") or {}
    status: Obj = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return status


def qos_class(spec: Obj) -> str:
    """BestEffort asks for nothing, Guaranteed limits all that it asks for, Burstable is the rest."""
    guaranteed, asked = True, False
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources: Obj = container.get("resources") or {}
        requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
        asked = asked or bool(requests or limits)
        if len(limits) < len(_COMPUTED) or any(requests.get(name, limits[name]) != limits[name] for name in limits):
            guaranteed = False
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(resources: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in _COMPUTED:
        text = (resources or {}).get(name)
        if text is None:
            continue
        amount = _nanos(text)
        if amount > 0:
            found[name] = amount
    return found


@lru_cache(maxsize=1024)
def _nanos(text: str) -> int:
    try:
        return quantity.parse(text).nanos
    except ValueError:
        return 0  # validation reports it


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    """All that is wrong with a pod, or with a change of one."""
    if subresource == "status":
        return []
    if old is None:
        spec: Obj = new.get("spec") or {}
        return [] if _is_fine(msgspec.json.encode(spec)) else validate_pod_spec(spec, "spec")
    if new.get("spec") == old.get("spec"):
        return []
    return validate_pod_update(new.get("spec") or {}, old.get("spec") or {})


@lru_cache(maxsize=1024)
def _is_fine(spec: bytes) -> bool:
    """Whether a spec keeps all rules. Pods of one template have the same spec, and a gang has a thousand of them."""
    return not validate_pod_spec(msgspec.json.decode(spec), "spec")
