"""ResourceClaims and their templates: what they ask for. The spec of either never changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.api.devices import ALL, EXACT_COUNT
from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.devices import claim_status
from muster.server.resources.rules.devices.device_fields import (
    MOST_CONFIGURATIONS,
    complaints,
    configuration,
    fully_qualified_name,
    limited,
    name,
    repeated,
    requests_named,
    selectors,
    toleration,
)
from muster.server.resources.rules.fields import invalid, not_supported, required
from muster.server.resources.rules.labels import validate_annotations, validate_labels

MOST_REQUESTS = 32
_MOST_ALTERNATIVES = 8
_MOST_CONSTRAINTS = 32
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'


# --- defaults --------------------------------------------------------------------------------------


def default_claim(obj: Obj) -> None:
    _default_devices((obj.get("spec") or {}).get("devices") or {})
    for result in _results(obj):
        _default_tolerations(result)


def default_template(obj: Obj) -> None:
    spec: Obj = obj.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _default_devices((spec.get("spec") or {}).get("devices") or {})


def _results(obj: Obj) -> list[Obj]:
    allocation: Obj = (obj.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _default_devices(devices: Obj) -> None:
    for request in devices.get("requests") or ():
        for way in _ways(request):
            if not way.get("allocationMode"):
                way["allocationMode"] = EXACT_COUNT
            if way["allocationMode"] == EXACT_COUNT and not way.get("count"):
                way["count"] = 1
            _default_tolerations(way)


def _default_tolerations(holder: Obj) -> None:
    for found in holder.get("tolerations") or ():
        if not found.get("operator"):
            found["operator"] = "Equal"


def _ways(request: Obj) -> list[Obj]:
    return [*(request.get("firstAvailable") or ()), *([request["exactly"]] if request.get("exactly") else [])]


# --- rules -----------------------------------------------------------------------------------------


def validate_claim(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource == "status":
        return claim_status.validate(new, old or {}, request_names(new))
    spec: Obj = new.get("spec") or {}
    if old is not None:
        return [] if spec == (old.get("spec") or {}) else [invalid("spec", None, "field is immutable")]
    return _devices("spec.devices", spec.get("devices") or {})


def validate_template(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    if old is not None:
        return [] if spec == (old.get("spec") or {}) else [invalid("spec", spec, "field is immutable")]
    inner: Obj = spec.get("metadata") or {}
    found = validate_labels("spec.metadata.labels", inner.get("labels"))
    found += validate_annotations("spec.metadata.annotations", inner.get("annotations"))
    return found + _devices("spec.spec.devices", (spec.get("spec") or {}).get("devices") or {})


def request_names(claim: Obj) -> frozenset[str]:
    """How constraints, configurations and results may name the requests of a claim."""
    devices: Obj = (claim.get("spec") or {}).get("devices") or {}
    return _names(devices)


def _names(devices: Obj) -> frozenset[str]:
    found: set[str] = set()
    for request in devices.get("requests") or ():
        outer: str = request.get("name") or ""
        found.add(outer)
        found |= {f"{outer}/{way.get('name') or ''}" for way in request.get("firstAvailable") or ()}
    return frozenset(found)


def _devices(path: str, devices: Obj) -> list[FieldError]:
    requests: list[Obj] = devices.get("requests") or []
    here = f"{path}.requests"
    found = limited(here, requests, MOST_REQUESTS)
    found += repeated(here, requests, [request.get("name") for request in requests])
    for position, request in enumerate(requests if len(requests) <= MOST_REQUESTS else ()):
        found += _request(f"{here}[{position}]", request)
    names = _names(devices)
    found += _each(f"{path}.constraints", devices.get("constraints"), _MOST_CONSTRAINTS, _constraint, names)
    return found + _each(f"{path}.config", devices.get("config"), MOST_CONFIGURATIONS, _configuration, names)


def _each(path: str, items: list[Obj] | None, limit: int, rule: Any, names: frozenset[str]) -> list[FieldError]:
    given = items or []
    found = limited(path, given, limit)
    for position, item in enumerate(given if not found else ()):
        found += rule(f"{path}[{position}]", item, names)
    return found


def _request(path: str, request: Obj) -> list[FieldError]:
    found = name(f"{path}.name", request.get("name") or "")
    exactly: Obj | None = request.get("exactly")
    ways: list[Obj] = request.get("firstAvailable") or []
    if exactly is not None and ways:
        return [*found, invalid(path, None, f"{_ONE_KIND}, but multiple fields are set")]
    if exactly is not None:
        return found + _exactly(f"{path}.exactly", exactly)
    if not ways:
        return [*found, required(path, _ONE_KIND)]
    here = f"{path}.firstAvailable"
    found += limited(here, ways, _MOST_ALTERNATIVES) + repeated(here, ways, [way.get("name") for way in ways])
    for position, way in enumerate(ways if len(ways) <= _MOST_ALTERNATIVES else ()):
        found += name(f"{here}[{position}].name", way.get("name") or "") + _exactly(f"{here}[{position}]", way)
    return found


def _exactly(path: str, way: Obj) -> list[FieldError]:
    device_class: str = way.get("deviceClassName") or ""
    here = f"{path}.deviceClassName"
    found = complaints(here, device_class, formats.dns_subdomain(device_class)) if device_class else [required(here)]
    found += selectors(f"{path}.selectors", way.get("selectors") or [])
    found += _count(path, way.get("allocationMode"), way.get("count") or 0)
    for position, each in enumerate(way.get("tolerations") or ()):
        found += toleration(f"{path}.tolerations[{position}]", each)
    return found


def _count(path: str, mode: Any, count: int) -> list[FieldError]:
    if mode == ALL:
        return [invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")] if count else []
    if mode == EXACT_COUNT:
        return [invalid(f"{path}.count", count, "must be greater than zero")] if count <= 0 else []
    return [not_supported(f"{path}.allocationMode", mode, (ALL, EXACT_COUNT))]


def _constraint(path: str, constraint: Obj, names: frozenset[str]) -> list[FieldError]:
    found = requests_named(f"{path}.requests", constraint.get("requests") or [], names, MOST_REQUESTS)
    given = list(_attributes(constraint))
    if not given:
        return [*found, required(path, _ONE_ATTRIBUTE)]
    for field, attribute in given:
        found += fully_qualified_name(f"{path}.{field}", attribute)
    return found


def _attributes(constraint: Obj) -> Iterator[tuple[str, str]]:
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field) is not None:
            yield field, constraint[field]


def _configuration(path: str, given: Obj, names: frozenset[str]) -> list[FieldError]:
    found = requests_named(f"{path}.requests", given.get("requests") or [], names, MOST_REQUESTS)
    return found + configuration(path, given)
