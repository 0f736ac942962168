"""Devices as an allocation sees them, read once from the slice that lists them.

`content` numbers what a selector can see of a device: two devices with the same number match the same selectors.
`twin` numbers all that tells devices apart except what they are called and which node has them: where one of several
twins in a node's pool cannot be used, the others cannot either, and nodes with equal twins serve claims alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from muster.api import quantity, selectors
from muster.api.devices import (
    AttributeValue,
    CapacityPolicy,
    CounterConsumption,
    DeviceTaint,
    ResourceSlice,
    SliceDevice,
)
from muster.api.types import NodeSelector

T = TypeVar("T")


class DeviceId(NamedTuple):
    """What identifies a device in the cluster."""

    driver: str
    pool: str
    name: str


class Attribute(NamedTuple):
    """The value of an attribute with its type: equal numbers of different types are not equal attributes."""

    type: str
    value: bool | int | str


class CounterKey(NamedTuple):
    """A counter that devices of a pool share."""

    driver: str
    pool: str
    counter_set: str
    counter: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device, in billionths of a unit, and the rules for requests of a part of it."""

    amount: int
    policy: CapacityPolicy | None


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes that can use a device: one by name, those that a selector matches, or all."""

    node_name: str = ""
    selector: NodeSelector | None = None

    def includes(self, node: str, labels: Mapping[str, str] | None) -> bool:
        if self.node_name:
            return self.node_name == node
        return self.selector is None or selectors.node_matches(self.selector, node, labels)


@dataclass(frozen=True, slots=True)
class Device:
    """A device. Attributes and capacities have qualified names (`domain/name`)."""

    id: DeviceId
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Capacity]
    taints: tuple[DeviceTaint, ...]
    consumes: tuple[tuple[CounterKey, int], ...]
    reach: Reach
    binds_to_node: bool
    binding_conditions: tuple[str, ...]
    binding_failure_conditions: tuple[str, ...]
    shareable: bool
    content: int
    twin: int


class Numbers:
    """Numbers for equal values, in the order of their first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))


def devices_of(
    slice_: ResourceSlice, extra_taints: Iterable[tuple[DeviceTaint, str]], numbers: Numbers
) -> list[Device]:
    """The devices of a slice, in its order. `extra_taints` come from taint rules, each for one device or, with an
    empty name, for all of them."""
    rules = list(extra_taints)
    return [_device(slice_, device, rules, numbers) for device in slice_.spec.devices or ()]


def _device(
    slice_: ResourceSlice, device: SliceDevice, rules: list[tuple[DeviceTaint, str]], numbers: Numbers
) -> Device:
    spec = slice_.spec
    driver, pool = spec.driver, spec.pool.name
    attributes = {name: _attribute(value) for name, value in _qualified(driver, device.attributes).items()}
    capacity = {
        name: Capacity(quantity.parse(value.value).nanos, value.request_policy)
        for name, value in _qualified(driver, device.capacity).items()
    }
    taints = (*(device.taints or ()), *(taint for taint, name in rules if name in ("", device.name)))
    consumes = tuple(_consumption(driver, pool, device.consumes_counters or ()))
    reach = _reach(slice_, device)
    conditions = device.binding_conditions or ()
    failures = device.binding_failure_conditions or ()
    shareable = bool(device.allow_multiple_allocations)
    seen = (driver, shareable, tuple(sorted(attributes.items())), tuple(sorted(_capacity_key(capacity))))
    told = tuple((taint.key, taint.value, taint.effect) for taint in taints)
    content = numbers.of(("content", seen))
    drawn = tuple((key.counter_set, key.counter, amount) for key, amount in consumes)
    where = reach.selector if not reach.node_name else "one node"
    twin = numbers.of(("twin", content, told, drawn, where, bool(device.binds_to_node), conditions, failures))
    return Device(
        id=DeviceId(driver, pool, device.name),
        attributes=attributes,
        capacity=capacity,
        taints=taints,
        consumes=consumes,
        reach=reach,
        binds_to_node=bool(device.binds_to_node),
        binding_conditions=conditions,
        binding_failure_conditions=failures,
        shareable=shareable,
        content=content,
        twin=twin,
    )


def _qualified(driver: str, values: Mapping[str, T] | None) -> dict[str, T]:
    """Values by qualified name: one without a domain is of the driver's, unless it is also written out."""
    found = values or {}
    return {f"{driver}/{name}": value for name, value in found.items() if "/" not in name} | {
        name: value for name, value in found.items() if "/" in name
    }


def _attribute(value: AttributeValue) -> Attribute:
    if value.truth is not None:
        return Attribute("bool", value.truth)
    if value.number is not None:
        return Attribute("int", value.number)
    if value.version is not None:
        return Attribute("version", value.version)
    return Attribute("string", value.text or "")


def _capacity_key(capacity: Mapping[str, Capacity]) -> Iterable[tuple[str, int, str]]:
    return ((name, found.amount, repr(found.policy)) for name, found in capacity.items())


def _consumption(
    driver: str, pool: str, consumptions: Iterable[CounterConsumption]
) -> Iterable[tuple[CounterKey, int]]:
    for consumption in consumptions:
        for name, counter in sorted((consumption.counters or {}).items()):
            yield CounterKey(driver, pool, consumption.counter_set, name), quantity.parse(counter.value).nanos


def _reach(slice_: ResourceSlice, device: SliceDevice) -> Reach:
    where = device if slice_.spec.per_device_node_selection else slice_.spec
    return Reach(where.node_name or "", where.node_selector)
