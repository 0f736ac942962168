"""The status of a ResourceClaim: its devices, who they are reserved for, and what drivers say of them.

An allocation is set once and can only be taken away. What a driver said of a device goes with the device.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules import fields
from muster.server.resources.rules.devices.device_fields import (
    UNKNOWN_REQUEST,
    configuration,
    driver,
    limited,
    name,
    raw_object,
    repeated,
    requests_named,
)
from muster.server.resources.rules.fields import forbidden, invalid, one_of, required
from muster.server.resources.rules.placement import validate_node_selector
from muster.server.resources.rules.status import keep_status

_MOST_RESULTS = 32
_MOST_CONFIGURATIONS = 64
_MOST_CONSUMERS = 256
_MOST_CONDITIONS = 8
_MOST_ADDRESSES = 16
_LONGEST_INTERFACE, _LONGEST_HARDWARE = 256, 128
_SOURCES = ("FromClaim", "FromClass")
_DEVICE = ("driver", "pool", "device")
_ADDRESS = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"


def prepare(new: Obj, old: Obj | None, subresource: str) -> None:
    """Status and the rest apart; what was said of a device that is no longer allocated is dropped."""
    keep_status(new, old, subresource)
    if subresource != "status" or old is None:
        if old is None:
            new["status"] = {}
        return
    status: Obj = new.get("status") or {}
    before: Obj = old.get("status") or {}
    if not status.get("devices") or (status.get("devices") == before.get("devices") and status.get("allocation")):
        return
    if before.get("allocation") is not None and status.get("allocation") is None:
        allocated = _allocated(status)
        kept = [each for each in status["devices"] if _identity(each) in allocated]
        status["devices"] = kept
        if not kept:
            del status["devices"]


def validate(new: Obj, old: Obj, names: frozenset[str]) -> list[FieldError]:
    status: Obj = new.get("status") or {}
    before: Obj = old.get("status") or {}
    allocation: Obj | None = status.get("allocation")
    found: list[FieldError] = []
    if allocation is not None:
        if before.get("allocation") is None:
            found += _allocation("status.allocation", allocation, names)
        elif before["allocation"] != allocation:
            found.append(invalid("status.allocation", None, "field cannot be modified once set"))
    found += _consumers(new, status, before)
    if status.get("devices") != before.get("devices"):
        found += _device_statuses(status)
    return found


# --- the allocation --------------------------------------------------------------------------------


def _allocation(path: str, allocation: Obj, names: frozenset[str]) -> list[FieldError]:
    devices: Obj = allocation.get("devices") or {}
    results: list[Obj] = devices.get("results") or []
    here = f"{path}.devices.results"
    found = limited(here, results, _MOST_RESULTS)
    for position, result in enumerate(results if not found else ()):
        found += _result(f"{here}[{position}]", result, names)
    config: list[Obj] = devices.get("config") or []
    here = f"{path}.devices.config"
    too_many = limited(here, config, _MOST_CONFIGURATIONS)
    found += too_many
    for position, each in enumerate(config if not too_many else ()):
        found += _configuration(f"{here}[{position}]", each, names)
    if allocation.get("nodeSelector") is not None:
        found += validate_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")
    return found


def _result(path: str, result: Obj, names: frozenset[str]) -> list[FieldError]:
    request: str = result.get("request") or ""
    found = [] if request in names else [invalid(f"{path}.request", request, UNKNOWN_REQUEST)]
    found += driver(f"{path}.driver", result.get("driver") or "")
    found += _pool(f"{path}.pool", result.get("pool") or "")
    return found + name(f"{path}.device", result.get("device") or "")


def _pool(path: str, value: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    for position, part in enumerate(value.split("/")):
        if not part:
            return [invalid(path, value, f"segment {position}: must not be empty")]
    return []


def _configuration(path: str, given: Obj, names: frozenset[str]) -> list[FieldError]:
    source: str = given.get("source") or ""
    found = one_of(f"{path}.source", source, _SOURCES) if source else [required(f"{path}.source")]
    found += requests_named(f"{path}.requests", given.get("requests") or [], names, _MOST_RESULTS)
    return found + configuration(path, given)


# --- who it is reserved for ------------------------------------------------------------------------


def _consumers(new: Obj, status: Obj, before: Obj) -> list[FieldError]:
    path = "status.reservedFor"
    consumers: list[Obj] = status.get("reservedFor") or []
    found = limited(path, consumers, _MOST_CONSUMERS)
    found += repeated(path, consumers, [consumer.get("uid") for consumer in consumers])
    for position, consumer in enumerate(consumers if len(consumers) <= _MOST_CONSUMERS else ()):
        found += [
            required(f"{path}[{position}].{field}") for field in ("resource", "name", "uid") if not consumer.get(field)
        ]
    if consumers and status.get("allocation") is None:
        return [*found, forbidden(path, "may not be specified when `allocated` is not set")]
    known = {consumer.get("uid") for consumer in before.get("reservedFor") or ()}
    if (new.get("metadata") or {}).get("deletionTimestamp") and any(each.get("uid") not in known for each in consumers):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        found.append(forbidden(path, why))
    return found


# --- what drivers say ------------------------------------------------------------------------------


def _identity(device: Obj) -> tuple[object, ...]:
    return (*(device.get(field) for field in _DEVICE), device.get("shareID"))


def _allocated(status: Obj) -> list[tuple[object, ...]]:
    allocation: Obj = status.get("allocation") or {}
    return [_identity(result) for result in (allocation.get("devices") or {}).get("results") or ()]


def _device_statuses(status: Obj) -> list[FieldError]:
    path = "status.devices"
    devices: list[Obj] = status.get("devices") or []
    identities = [_identity(each) for each in devices]
    found = repeated(path, devices, identities)
    allocated = _allocated(status)
    for position, (device, identity) in enumerate(zip(devices, identities, strict=True)):
        here = f"{path}[{position}]"
        if identity not in allocated:
            told = {"Driver": identity[0], "Pool": identity[1], "Device": identity[2], "ShareID": identity[3] or ""}
            found.append(invalid(here, told, "must be an allocated device in the claim"))
        found += limited(f"{here}.conditions", device.get("conditions") or [], _MOST_CONDITIONS)
        found += raw_object(f"{here}.data", device.get("data"), needed=False)
        found += _network(f"{here}.networkData", device.get("networkData") or {})
    return found


def _network(path: str, network: Obj) -> list[FieldError]:
    found: list[FieldError] = []
    for field, limit in (("interfaceName", _LONGEST_INTERFACE), ("hardwareAddress", _LONGEST_HARDWARE)):
        if len(network.get(field) or "") > limit:
            found.append(fields.too_long(f"{path}.{field}", limit))
    addresses: Sequence[str] = network.get("ips") or []
    found += limited(f"{path}.ips", addresses, _MOST_ADDRESSES) + repeated(f"{path}.ips", addresses, addresses)
    return found + [
        invalid(f"{path}.ips[{position}]", address, _ADDRESS)
        for position, address in enumerate(addresses)
        if not _is_cidr(address)
    ]


def _is_cidr(text: str) -> bool:
    if "/" not in text:
        return False
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True
