"""ResourceSlices: what a driver publishes of a pool."""

from __future__ import annotations

from muster.api import quantity
from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.cel.functions import semver
from muster.server.resources.kind import Obj
from muster.server.resources.rules import fields
from muster.server.resources.rules.devices.capacity_policies import capacity
from muster.server.resources.rules.devices.device_fields import (
    complaints,
    driver,
    limited,
    name,
    pool_name,
    qualified_name,
    repeated,
    taint,
)
from muster.server.resources.rules.fields import duplicate, invalid, required, unchanged
from muster.server.resources.rules.placement import validate_node_selector

_MOST_DEVICES, _MOST_SPECIAL_DEVICES = 128, 64
_MOST_ATTRIBUTES = 32
_MOST_COUNTER_SETS, _MOST_COUNTERS, _MOST_CONSUMPTIONS = 8, 32, 2
_MOST_TAINTS, _MOST_CONDITIONS = 16, 4
_LONGEST_TEXT = 64
_VALUES = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICE_PLACES = _PLACES[:3]
_ONE_PLACE = f"exactly one of {', '.join(f'`{place}`' for place in _PLACES)} is required"
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_LISTED = ", ".join(f"`{value}`" for value in _VALUES)


def validate_slice(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    pool: Obj = spec.get("pool") or {}
    found = driver("spec.driver", spec.get("driver") or "")
    found += pool_name("spec.pool.name", pool.get("name") or "")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        count = pool.get("resourceSliceCount") or 0
        found.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if (pool.get("generation") or 0) < 0:
        found.append(invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero"))
    found += _place(spec)
    devices: list[Obj] = spec.get("devices") or []
    counters: list[Obj] = spec.get("sharedCounters") or []
    if devices and counters:
        found.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    found += _devices(devices, bool(spec.get("perDeviceNodeSelection"))) + _counter_sets(counters)
    if old is not None:
        found += _immutable(spec, pool, old.get("spec") or {})
    return found


def _immutable(spec: Obj, pool: Obj, before: Obj) -> list[FieldError]:
    found = unchanged("spec.driver", spec.get("driver"), before.get("driver"))
    found += unchanged("spec.pool.name", pool.get("name"), (before.get("pool") or {}).get("name"))
    return found + unchanged("spec.nodeName", spec.get("nodeName"), before.get("nodeName"))


# --- where -----------------------------------------------------------------------------------------


def _place(spec: Obj) -> list[FieldError]:
    chosen, found = _chosen("spec", spec, _PLACES)
    if not chosen:
        found.append(required("spec", _ONE_PLACE))
    elif len(chosen) > 1:
        found.append(invalid("spec", _braced(chosen), f"{_ONE_PLACE}, but multiple fields are set"))
    return found


def _chosen(path: str, holder: Obj, places: tuple[str, ...]) -> tuple[list[str], list[FieldError]]:
    """The places that are set, and what is wrong with them."""
    chosen: list[str] = []
    found: list[FieldError] = []
    for place in places:
        value = holder.get(place)
        if value is None:
            continue
        if value is False:
            found.append(invalid(f"{path}.{place}", False, "must be either unset or set to true"))
            continue
        chosen.append(place)
        if place == "nodeName":
            found += complaints(f"{path}.nodeName", value, formats.dns_subdomain(value))
        elif place == "nodeSelector":
            found += _node_selector(f"{path}.nodeSelector", value)
    return chosen, found


def _node_selector(path: str, selector: Obj) -> list[FieldError]:
    found = validate_node_selector(selector, path)
    terms: list[Obj] = selector.get("nodeSelectorTerms") or []
    if len(terms) != 1:
        found.append(invalid(f"{path}.nodeSelectorTerms", terms, "must have exactly one node selector term"))
    return found


def _braced(places: list[str]) -> str:
    return "{" + ", ".join(f"`{place}`" for place in places) + "}"


# --- devices ---------------------------------------------------------------------------------------


def _devices(devices: list[Obj], own_places: bool) -> list[FieldError]:
    special = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    found = limited("spec.devices", devices, _MOST_SPECIAL_DEVICES if special else _MOST_DEVICES)
    if found:
        return found
    seen: set[str] = set()
    for position, device in enumerate(devices):
        here = f"spec.devices[{position}]"
        called: str = device.get("name") or ""
        if called in seen:
            found.append(duplicate(here, called))
        seen.add(called)
        found += name(f"{here}.name", called) + _device(here, device, own_places)
    return found


def _device(path: str, device: Obj, own_places: bool) -> list[FieldError]:
    attributes: Obj = device.get("attributes") or {}
    capacities: Obj = device.get("capacity") or {}
    found: list[FieldError] = []
    total = len(attributes) + len(capacities)
    if total > _MOST_ATTRIBUTES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        found.append(invalid(path, total, text))
    for key, value in sorted(attributes.items()):
        found += qualified_name(f"{path}.attributes", key) + _attribute(f"{path}.attributes[{key}]", value or {})
    shareable = bool(device.get("allowMultipleAllocations"))
    for key, value in sorted(capacities.items()):
        found += qualified_name(f"{path}.capacity", key)
        found += capacity(f"{path}.capacity[{key}]", value or {}, shareable=shareable)
    taints: list[Obj] = device.get("taints") or []
    found += limited(f"{path}.taints", taints, _MOST_TAINTS)
    for position, each in enumerate(taints if len(taints) <= _MOST_TAINTS else ()):
        found += taint(f"{path}.taints[{position}]", each)
    found += _consumptions(f"{path}.consumesCounters", device.get("consumesCounters") or [])
    return found + _device_place(path, device, own_places) + _conditions(path, device)


def _attribute(path: str, value: Obj) -> list[FieldError]:
    given = [kind for kind in _VALUES if value.get(kind) is not None]
    if not given:
        return [invalid(path, "", f"must specify one of: {_LISTED}")]
    if len(given) > 1:
        return [invalid(path, "{" + ", ".join(given) + "}", f"must specify exactly one of: {_LISTED}")]
    (kind,) = given
    if kind not in ("string", "version"):
        return []
    text: str = value[kind]
    if len(text.encode()) > _LONGEST_TEXT:
        return [fields.too_long(f"{path}.{kind}", _LONGEST_TEXT)]
    if kind == "version":
        try:
            semver.parse(text)
        except ValueError:
            return [invalid(f"{path}.version", text, "must be a string compatible with semver.org spec 2.0.0")]
    return []


def _device_place(path: str, device: Obj, own_places: bool) -> list[FieldError]:
    chosen, found = _chosen(path, device, _DEVICE_PLACES)
    if not own_places:
        return [*found, invalid(path, None, _NO_DEVICE_PLACE)] if chosen else found
    if not chosen:
        found.append(required(path, _ONE_DEVICE_PLACE))
    elif len(chosen) > 1:
        found.append(invalid(path, _braced(chosen), _ONE_DEVICE_PLACE))
    return found


def _conditions(path: str, device: Obj) -> list[FieldError]:
    conditions: list[str] = device.get("bindingConditions") or []
    failures: list[str] = device.get("bindingFailureConditions") or []
    found: list[FieldError] = []
    for field, given in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        here = f"{path}.{field}"
        found += limited(here, given, _MOST_CONDITIONS) + repeated(here, given, given)
        for position, each in enumerate(given if len(given) <= _MOST_CONDITIONS else ()):
            found += complaints(f"{here}[{position}]", each, formats.qualified_name(each))
    if conditions and not failures:
        text = "bindingFailureConditions are required to use bindingConditions"
        found.append(invalid(f"{path}.bindingFailureConditions", None, text))
    if failures and not conditions:
        text = "bindingConditions are required to use bindingFailureConditions"
        found.append(invalid(f"{path}.bindingConditions", None, text))
    for position, each in enumerate(failures):
        if each in conditions:
            here = f"{path}.bindingFailureConditions[{position}]"
            found.append(invalid(here, each, "bindingFailureConditions must not overlap with bindingConditions"))
    return found


# --- counters --------------------------------------------------------------------------------------


def _counter_sets(sets: list[Obj]) -> list[FieldError]:
    path = "spec.sharedCounters"
    found = limited(path, sets, _MOST_COUNTER_SETS) + repeated(path, sets, [each.get("name") for each in sets])
    for position, each in enumerate(sets if len(sets) <= _MOST_COUNTER_SETS else ()):
        here = f"{path}[{position}]"
        found += name(f"{here}.name", each.get("name") or "") if each.get("name") else [required(f"{here}.name")]
        found += _counters(f"{here}.counters", each.get("counters") or {})
    return found


def _counters(path: str, counters: Obj) -> list[FieldError]:
    if not counters:
        return [required(path)]
    found = [fields.too_many(path, len(counters), _MOST_COUNTERS)] if len(counters) > _MOST_COUNTERS else []
    for key, counter in sorted(counters.items()):
        found += name(path, key)
        value = (counter or {}).get("value")
        if value is not None and quantity.parse(value).nanos < 0:
            found.append(invalid(f"{path}[{key}].value", str(value), "must be greater than or equal to zero"))
    return found


def _consumptions(path: str, consumptions: list[Obj]) -> list[FieldError]:
    found = limited(path, consumptions, _MOST_CONSUMPTIONS)
    found += repeated(path, consumptions, [each.get("counterSet") for each in consumptions])
    for position, each in enumerate(consumptions if len(consumptions) <= _MOST_CONSUMPTIONS else ()):
        here = f"{path}[{position}]"
        called: str = each.get("counterSet") or ""
        found += name(f"{here}.counterSet", called) if called else [required(f"{here}.counterSet")]
        found += _counters(f"{here}.counters", each.get("counters") or {})
    return found
