"""What objects count for in ResourceQuotas: amounts by name, and the scopes that a quota is limited to.

Pure, on plain JSON, so that admission and the controller of the status cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.api.quantity import Form, Quantity, parse, render

Obj = dict[str, Any]
Amounts = dict[str, Quantity]

_ONE = Quantity(10**9, Form.DECIMAL)
_ZERO = Quantity(0, Form.DECIMAL)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_GIVEN = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_BY_PLURAL = frozenset(("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas"))
_COUNTED = _BY_PLURAL | {"secrets", "services"}
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"


def _part(obj: Obj, key: str) -> Obj:
    return obj.get(key) or {}


def _parts(obj: Obj, key: str) -> list[Obj]:
    return list(obj.get(key) or ())


def usage(group: str, plural: str, obj: Obj) -> Amounts:
    """What one object counts for."""
    found: Amounts = {f"count/{plural}.{group}" if group else f"count/{plural}": _ONE}
    if group:
        return found
    if plural == "pods":
        return found | _pod_usage(obj)
    if plural in _COUNTED:
        found[plural] = _ONE
    if plural == "services":
        found |= _service_usage(_part(obj, "spec"))
    elif plural == "persistentvolumeclaims":
        found |= _claim_usage(_part(obj, "spec"))
    return found


def counted_resources(names: Iterable[str]) -> set[tuple[str, str]]:
    """The resources, as (group, plural), whose objects count for quotas of these names."""
    found: set[tuple[str, str]] = set()
    for name in names:
        if name.startswith("count/"):
            plural, _, group = name.removeprefix("count/").partition(".")
            found.add((group, plural))
        elif name.startswith("services"):
            found.add(("", "services"))
        elif name in _COUNTED:
            found.add(("", name))
        elif name == "requests.storage" or _CLASS_SUFFIX in name:
            found.add(("", "persistentvolumeclaims"))
        else:
            found.add(("", "pods"))
    return found


def total(amounts: Iterable[Amounts], names: Iterable[str]) -> Amounts:
    """The sums of the named amounts."""
    sums = dict.fromkeys(names, _ZERO)
    for each in amounts:
        for name, amount in each.items():
            if name in sums:
                sums[name] = _sum(sums[name], amount)
    return sums


def _sum(one: Quantity, other: Quantity) -> Quantity:
    return Quantity(one.nanos + other.nanos, other.form if one.nanos == 0 else one.form)


def difference(new: Amounts, old: Amounts) -> Amounts:
    """How much more the new amounts are, where they are more."""
    more = {name: amount.nanos - old.get(name, _ZERO).nanos for name, amount in new.items()}
    return {name: Quantity(nanos, new[name].form) for name, nanos in more.items() if nanos > 0}


def parsed(amounts: Mapping[str, Any] | None) -> Amounts:
    return {name: parse(amount) for name, amount in (amounts or {}).items()}


def rendered(amounts: Amounts) -> dict[str, str]:
    return {name: render(amount) for name, amount in amounts.items()}


# --- pods ------------------------------------------------------------------------------------------


def _pod_usage(pod: Obj) -> Amounts:
    if _part(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return {}  # only `count/pods` goes on counting
    spec: Obj = _part(pod, "spec")
    found: Amounts = {"pods": _ONE}
    for name, amount in effective(spec, "requests").items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = amount
        found[f"requests.{name}"] = amount
    for name, amount in effective(spec, "limits").items():
        if name in _COMPUTE:
            found[f"limits.{name}"] = amount
    return found


def effective(spec: Obj, key: str) -> Amounts:
    """What a pod requests or is limited to: containers together, or one init container if that is more; overhead."""
    running: Amounts = {}
    peak: Amounts = {}
    for container in _parts(spec, "initContainers"):
        own = parsed(_part(container, "resources").get(key))
        if container.get("restartPolicy") == "Always":
            running = _added(running, own)
            own = {}
        peak = _largest(peak, _added(running, own))
    for container in _parts(spec, "containers"):
        running = _added(running, parsed(_part(container, "resources").get(key)))
    found = _largest(peak, running) | parsed(_part(spec, "resources").get(key))
    overhead = parsed(spec.get("overhead"))
    if key == "limits":  # a pod without a limit does not get one by its overhead
        overhead = {name: amount for name, amount in overhead.items() if name in found}
    return _added(found, overhead)


def _added(one: Amounts, other: Amounts) -> Amounts:
    return {name: _sum(one.get(name, _ZERO), other.get(name, _ZERO)) for name in {**one, **other}}


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {
        name: max(one.get(name, _ZERO), other.get(name, _ZERO), key=lambda each: each.nanos)
        for name in {**one, **other}
    }


def missing(pod: Obj, names: Iterable[str]) -> dict[str, list[str]]:
    """The containers that do not say how much they take of what a quota limits, by the name of the resource."""
    spec: Obj = _part(pod, "spec")
    needed = _MUST_BE_GIVEN.intersection(names)
    found: dict[str, list[str]] = {}
    if _part(spec, "resources").get("requests") or _part(spec, "resources").get("limits"):
        return found
    containers: list[Obj] = [*_parts(spec, "containers"), *_parts(spec, "initContainers")]
    for container in containers:
        resources: Obj = _part(container, "resources")
        for name in needed:
            kind, _, resource = name.rpartition(".")
            if resource not in _part(resources, kind or "requests"):
                found.setdefault(name, []).append(str(container.get("name") or ""))
    return found


# --- services and claims ---------------------------------------------------------------------------


def _service_usage(spec: Obj) -> Amounts:
    kind = spec.get("type")
    ports = Quantity(len(_parts(spec, "ports")) * 10**9, Form.DECIMAL)
    found: Amounts = {}
    if kind == "LoadBalancer":
        found["services.loadbalancers"] = _ONE
    if kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)):
        found["services.nodeports"] = ports
    return found


def _claim_usage(spec: Obj) -> Amounts:
    asked = parsed(_part(spec, "resources").get("requests")).get("storage", _ZERO)
    found: Amounts = {"requests.storage": asked}
    if name := spec.get("storageClassName"):
        found[f"{name}{_CLASS_SUFFIX}requests.storage"] = asked
        found[f"{name}{_CLASS_SUFFIX}persistentvolumeclaims"] = _ONE
    return found


# --- scopes ----------------------------------------------------------------------------------------


def in_scope(quota_spec: Obj, plural: str, obj: Obj) -> bool:
    """Whether a quota is about an object. A quota with scopes is about pods only."""
    selectors: list[Obj] = [{"scopeName": each, "operator": "Exists"} for each in _parts(quota_spec, "scopes")]
    selectors += _parts(_part(quota_spec, "scopeSelector"), "matchExpressions")
    if not selectors:
        return True
    return plural == "pods" and all(_selects(each, _part(obj, "spec")) for each in selectors)


def _selects(selector: Obj, spec: Obj) -> bool:
    match selector.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            return _class_selected(selector, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(spec)
        case _:
            return False


def _is_best_effort(spec: Obj) -> bool:
    containers: list[Obj] = [*_parts(spec, "containers"), *_parts(spec, "initContainers"), spec]
    return not any(
        name in ("cpu", "memory")
        for each in containers
        for key in ("requests", "limits")
        for name in _part(_part(each, "resources"), key)
    )


def _class_selected(selector: Obj, name: str) -> bool:
    values = selector.get("values") or ()
    match selector.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case _:
            return False


def _crosses_namespaces(spec: Obj) -> bool:
    affinity = _part(spec, "affinity")
    terms: list[Obj] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        own = _part(affinity, kind)
        terms += _parts(own, "requiredDuringSchedulingIgnoredDuringExecution")
        terms += [
            _part(each, "podAffinityTerm") for each in _parts(own, "preferredDuringSchedulingIgnoredDuringExecution")
        ]
    return any(each.get("namespaces") or each.get("namespaceSelector") is not None for each in terms)
