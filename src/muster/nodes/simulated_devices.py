"""Simulated device drivers: what `muster up --devices` publishes for the simulated nodes.

`gpu:8` is a driver called `gpu.example.com` with a device class of the same name and eight devices on every node, alike
but for their index and the PCIe root that they share in pairs. A file can say more (`from_file`): attributes and
capacities, partitions, and devices that all nodes of a rack can use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from muster.api import quantity
from muster.api.resources import DEVICE_CLASSES, RESOURCE_SLICES

DOMAIN = "example.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
MOST_DEVICES = 128  # in one slice
MOST_PARTITIONED = 64  # where devices use counters
MOST_SETS = 8  # of counters in one slice
LEVELS = {
    "rack": "topology.muster.dev/rack",
    "block": "topology.muster.dev/block",
    "zone": "topology.kubernetes.io/zone",
}

Obj = dict[str, Any]
_name = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_attribute = re.compile(r"([a-z0-9.-]+/)?[A-Za-z_][A-Za-z0-9_]{0,31}")


@dataclass(frozen=True, slots=True)
class SimulatedDriver:
    """So many devices of one name on every simulated node, or for every rack, block or zone (`per`).

    With `partitions`, each device can be had as a whole or in so many equal parts, which share its counters.
    """

    name: str
    count: int
    attributes: Mapping[str, str | int | bool] = field(default_factory=dict[str, str | int | bool])
    capacity: Mapping[str, str] = field(default_factory=dict[str, str])
    per: str = "node"
    partitions: int = 0

    @property
    def driver(self) -> str:
        return f"{self.name}.{DOMAIN}"

    @staticmethod
    def parse(text: str) -> SimulatedDriver:
        """`gpu:8`, or a driver of a file as JSON. Raises ValueError for anything else."""
        if text.startswith("{"):
            return _from_object(msgspec.json.decode(text), "a driver")
        name, _, number = text.partition(":")
        if not _name.fullmatch(name) or len(name) > 40:
            raise ValueError(f"{text!r} does not begin with a name in lower case, such as gpu in gpu:8")
        if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_DEVICES:
            raise ValueError(
                f"{text!r} does not end with a number of devices from 1 to {MOST_DEVICES}, such as 8 in gpu:8"
            )
        return SimulatedDriver(name, int(number))

    def device_class(self) -> Obj:
        """The class that selects the devices of this driver."""
        return {
            "apiVersion": DEVICE_CLASSES.api_version,
            "kind": DEVICE_CLASSES.kind,
            "metadata": {"name": self.driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{self.driver}"'}}]},
        }

    def slices(self, node: str, labels: Mapping[str, str]) -> list[Obj]:
        """What is published for a node with these labels. What several nodes share has the same name for each."""
        if self.per == "node":
            return self._pool(node, {"nodeName": node})
        label = LEVELS[self.per]
        value = labels.get(label, "")
        if not value:
            return []
        term = {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}
        return self._pool(value, {"nodeSelector": {"nodeSelectorTerms": [term]}})

    def _pool(self, pool: str, where: Obj) -> list[Obj]:
        parts = [self._slice(f"{pool}-{self.driver}", pool, where, devices=self._devices())]
        if self.partitions:
            sets = [self._counters(index) for index in range(self.count)]
            parts.append(self._slice(f"{pool}-{self.driver}-counters", pool, where, sharedCounters=sets))
        for each in parts:
            each["spec"]["pool"]["resourceSliceCount"] = len(parts)
        return parts

    def _slice(self, name: str, pool: str, where: Obj, **content: Any) -> Obj:
        return {
            "apiVersion": RESOURCE_SLICES.api_version,
            "kind": RESOURCE_SLICES.kind,
            "metadata": {"name": name},
            "spec": {"driver": self.driver, **where, "pool": {"name": pool, "generation": 1}, **content},
        }

    # --- devices -----------------------------------------------------------------------------------

    def _devices(self) -> list[Obj]:
        found = [self._device(f"{self.name}-{index}", index) for index in range(self.count)]
        if not self.partitions:
            return found
        for index, device in enumerate(found):
            device["consumesCounters"] = self._consumption(index, self.partitions)
            device["attributes"]["partition"] = {"string": "whole"}
        for index in range(self.count):
            for part in range(self.partitions):
                device = self._device(f"{self.name}-{index}-part-{part}", index)
                device["attributes"]["partition"] = {"string": f"1/{self.partitions}"}
                device["capacity"] = {
                    key: {"value": _share(each["value"], self.partitions)} for key, each in device["capacity"].items()
                }
                device["consumesCounters"] = self._consumption(index, 1)
                found.append(device)
        return found

    def _device(self, name: str, index: int) -> Obj:
        attributes: Obj = {
            "index": {"int": index},
            "model": {"string": f"simulated-{self.name}"},
            "driverVersion": {"version": "1.0.0"},
            PCIE_ROOT: {"string": f"pci0000:{index // 2:02x}"},
        }
        attributes |= {key: _value(value) for key, value in self.attributes.items()}
        capacity = {"memory": "80Gi", **self.capacity}
        return {
            "name": name,
            "attributes": attributes,
            "capacity": {key: {"value": value} for key, value in capacity.items()},
        }

    def _counters(self, index: int) -> Obj:
        return {"name": f"{self.name}-{index}", "counters": {"parts": {"value": str(self.partitions)}}}

    def _consumption(self, index: int, parts: int) -> list[Obj]:
        return [{"counterSet": f"{self.name}-{index}", "counters": {"parts": {"value": str(parts)}}}]


# --- files -----------------------------------------------------------------------------------------


def drivers_of_file(content: Any) -> list[str]:
    """The drivers of a file, each as text that `parse` reads. Raises ValueError, naming the field that is wrong."""
    listed = content.get("drivers") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not listed or set(content) != {"drivers"}:
        raise ValueError("drivers: a list of drivers is expected, and nothing beside it")
    for position, each in enumerate(listed):
        _from_object(each, f"drivers[{position}]")
    return [msgspec.json.encode(each).decode() for each in listed]


def _from_object(given: Any, path: str) -> SimulatedDriver:
    known = {"name", "count", "attributes", "capacity", "per", "partitions"}
    if not isinstance(given, dict):
        raise ValueError(f"{path}: an object is expected, with name and count")
    for key in given:
        if key not in known:
            raise ValueError(f"{path}.{key}: unknown field; there are {', '.join(sorted(known))}")
    name, count = given.get("name"), given.get("count", 1)
    if not isinstance(name, str) or not _name.fullmatch(name) or len(name) > 40:
        raise ValueError(f"{path}.name: a name in lower case is expected, such as gpu")
    partitions = _number(given.get("partitions", 0), 0, 16, f"{path}.partitions")
    if given.get("per", "node") not in ("node", *LEVELS):
        raise ValueError(f"{path}.per: one of node, {', '.join(LEVELS)} is expected")
    most = min(MOST_PARTITIONED // (1 + partitions), MOST_SETS) if partitions else MOST_DEVICES
    return SimulatedDriver(
        name,
        _number(count, 1, most, f"{path}.count"),
        _attributes(given.get("attributes") or {}, f"{path}.attributes"),
        _capacity(given.get("capacity") or {}, f"{path}.capacity"),
        given.get("per", "node"),
        partitions,
    )


def _number(given: Any, least: int, most: int, path: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise ValueError(f"{path}: a number from {least} to {most} is expected")
    return given


def _attributes(given: Any, path: str) -> dict[str, str | int | bool]:
    if not isinstance(given, dict) or len(given) > 24:
        raise ValueError(f"{path}: at most 24 names with values are expected")
    for key, value in given.items():
        if not isinstance(key, str) or not _attribute.fullmatch(key):
            raise ValueError(f"{path}.{key}: names are like model or example.com/model")
        if not isinstance(value, str | int | bool) or (isinstance(value, str) and len(value) > 64):
            raise ValueError(
                f"{path}.{key}: a text of at most 64 characters, a whole number or a truth value is expected"
            )
    return given


def _capacity(given: Any, path: str) -> dict[str, str]:
    if not isinstance(given, dict):
        raise ValueError(f"{path}: names with quantities are expected")
    found: dict[str, str] = {}
    for key, value in given.items():
        if not isinstance(key, str) or not _attribute.fullmatch(key):
            raise ValueError(f"{path}.{key}: names are like memory or example.com/memory")
        try:
            found[key] = quantity.render(quantity.parse(value))
        except ValueError as error:
            raise ValueError(f"{path}.{key}: {error}") from None
    return found


def _value(value: str | int | bool) -> Obj:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def _share(amount: str, parts: int) -> str:
    nanos, form = quantity.parse(amount)
    return quantity.render(quantity.Quantity(nanos // parts, form))
