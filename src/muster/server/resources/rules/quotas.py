"""ResourceQuotas and LimitRanges: defaults and rules."""

from __future__ import annotations

from typing import Any

from muster.api import quota
from muster.api.errors import FieldError
from muster.api.quantity import render
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, not_supported, required, unchanged
from muster.server.resources.rules.pod_resources import validate_quantity

_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def validate_quota(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        status: Obj = new.get("status") or {}
        return _amounts(status.get("hard"), "status.hard") + _amounts(status.get("used"), "status.used")
    spec: Obj = new.get("spec") or {}
    found = _amounts(spec.get("hard"), "spec.hard")
    scopes: list[str] = spec.get("scopes") or []
    for each in scopes:
        if each not in _SCOPES:
            found.append(invalid("spec.scopes", scopes, f"unsupported scope: {each}"))
    if any(pair <= set(scopes) for pair in _OPPOSITES):
        found.append(invalid("spec.scopes", scopes, "conflicting scopes"))
    selector: Obj = spec.get("scopeSelector") or {}
    for position, each in enumerate(selector.get("matchExpressions") or ()):
        found += _scope_expression(each, f"spec.scopeSelector.matchExpressions[{position}]")
    if old is not None:
        found += unchanged("spec.scopes", scopes or None, (old.get("spec") or {}).get("scopes") or None)
    return found


def _amounts(amounts: Any, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, amount in (amounts or {}).items():
        wrong = validate_quantity(amount, f"{path}[{name}]")
        if not wrong and quota.parsed({name: amount})[name].nanos < 0:
            wrong = [invalid(f"{path}[{name}]", amount, "must be greater than or equal to 0")]
        found += wrong
    return found


def _scope_expression(expression: Obj, path: str) -> list[FieldError]:
    name, operator = expression.get("scopeName") or "", expression.get("operator") or ""
    values: list[str] = expression.get("values") or []
    found: list[FieldError] = []
    if not name:
        found.append(required(f"{path}.scopeName", "must specify scopeName"))
    elif name not in _SCOPES:
        found.append(not_supported(f"{path}.scopeName", name, _SCOPES))
    elif name not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
        text = "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
        text += "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
        text += "ResourceQuotaScopeCrossNamespacePodAffinity"
        found.append(invalid(f"{path}.operator", operator, text))
    if operator not in _OPERATORS:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        found.append(
            required(
                f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
        )
    elif operator in ("Exists", "DoesNotExist") and values:
        found.append(
            invalid(
                f"{path}.values",
                values,
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )
        )
    return found


def default_limit_range(obj: Obj) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits: Obj = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests: Obj = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def validate_limit_range(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, item in enumerate((new.get("spec") or {}).get("limits") or ()):
        path = f"spec.limits[{position}]"
        kind = item.get("type") or ""
        if not kind:
            found.append(required(f"{path}.type"))
        if kind in seen:
            found.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        wrong = [error for key in _AMOUNTS for error in _amounts(item.get(key), f"{path}.{key}")]
        found += wrong or _item(item, kind, path)
    return found


def _item(item: Obj, kind: str, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if kind == "Pod":
        found += [
            forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
            for key in ("default", "defaultRequest")
            if item.get(key)
        ]
    if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(key) or {}) for key in ("min", "max")):
        text = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{path}.limits", text))
    # (what may not be greater, than what, as which field, in which words)
    order = (
        ("min", "max", "min", "min value", "max value"),
        ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
        ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
        ("defaultRequest", "default", "defaultRequest", "default request value", "default limit value"),
        ("min", "default", "default", "min value", "default value"),
        ("default", "max", "default", "default value", "max value"),
    )
    for lower, upper, field, one, other in order:
        low, high = quota.parsed(item.get(lower)), quota.parsed(item.get(upper))
        for name in low.keys() & high.keys():
            if low[name].nanos > high[name].nanos:
                text = f"{one} {render(low[name])} is greater than {other} {render(high[name])}"
                found.append(invalid(f"{path}.{field}[{name}]", render(low[name]), text))
    for name, ratio in quota.parsed(item.get("maxLimitRequestRatio")).items():
        if ratio.nanos < 10**9:
            found.append(
                invalid(f"{path}.maxLimitRequestRatio[{name}]", render(ratio), f"ratio {render(ratio)} is less than 1")
            )
    return found
