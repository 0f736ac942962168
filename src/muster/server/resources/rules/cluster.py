"""Nodes, Namespaces and PriorityClasses: the cluster-wide kinds with rules of their own."""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.api.groups import MAX_PRIORITY
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, one_of, required, unchanged
from muster.server.resources.rules.pod_resources import validate_quantities
from muster.server.resources.rules.status import keep_status

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


# --- nodes -----------------------------------------------------------------------------------------


def default_node(node: Obj) -> None:
    status = node.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def prepare_node(new: Obj, old: Obj | None, subresource: str) -> None:
    """A node registers itself with its status, so only updates keep the two apart."""
    if old is not None:
        keep_status(new, old, subresource)
    else:
        new.setdefault("spec", {})
        new.setdefault("status", {})


def validate_node(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource == "status" or old is None:
        status: Obj = new.get("status") or {}
        found = validate_quantities(status.get("capacity"), "status.capacity")
        found += validate_quantities(status.get("allocatable"), "status.allocatable")
    else:
        found = []
    if subresource:
        return found
    spec: Obj = new.get("spec") or {}
    found += _taints(spec.get("taints"))
    before: Obj = (old or {}).get("spec") or {}
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        found.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    if before.get("podCIDR") and spec.get("podCIDR") != before["podCIDR"]:
        found.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    return found


def _taints(taints: Any) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints or ()):
        path = f"spec.taints[{position}]"
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        found += [invalid(f"{path}.key", key, text) for text in formats.qualified_name(key)]
        value = taint.get("value") or ""
        found += [invalid(f"{path}.value", value, text) for text in formats.label_value(value)]
        if not effect:
            found.append(required(f"{path}.effect"))
        else:
            found += one_of(f"{path}.effect", effect, _TAINT_EFFECTS)
        if (key, effect) in seen:
            found.append(duplicate(path, taint))
        seen.add((key, effect))
    return found


# --- namespaces ------------------------------------------------------------------------------------


def default_namespace(namespace: Obj) -> None:
    metadata = namespace.setdefault("metadata", {})
    if name := metadata.get("name"):
        if metadata.get("labels") is None:
            metadata["labels"] = {}
        metadata["labels"][NAMESPACE_LABEL] = name


def prepare_namespace(new: Obj, old: Obj | None, subresource: str) -> None:
    """A namespace is held by its own finalizer; only /finalize may write it."""
    if old is None:
        new["status"] = {"phase": "Active"}
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        new["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
        default_namespace(new)  # a generated name is known only now
    elif subresource == "finalize":
        new["status"] = old.get("status") or {}
    else:
        keep_status(new, old, subresource)
        if subresource == "":
            new["spec"] = old.get("spec") or {}


# --- priority classes ------------------------------------------------------------------------------


def default_priority_class(obj: Obj) -> None:
    if obj.get("preemptionPolicy") is None:
        obj["preemptionPolicy"] = "PreemptLowerPriority"
    obj.setdefault("value", 0)


def validate_priority_class(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    name: str = (new.get("metadata") or {}).get("name") or ""
    value = new.get("value") or 0
    if old is not None:
        found: list[FieldError] = []
        if value != (old.get("value") or 0):
            found.append(forbidden("value", "may not be changed in an update."))
        return found + unchanged("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
    found = one_of("preemptionPolicy", new.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value or new.get("globalDefault"):
            found.append(
                forbidden(
                    "metadata.name", "priority class names with 'system-' prefix are reserved for system use only"
                )
            )
    elif value > MAX_PRIORITY:
        found.append(forbidden("value", f"maximum allowed value of a user defined priority is {MAX_PRIORITY}"))
    return found
