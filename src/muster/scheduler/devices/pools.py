"""Pools: which devices of which pools a node can use.

A pool is published in slices that carry its generation and the number of its slices. Only the newest generation
counts, and only if all of its slices are there: until then the pool is incomplete and nothing of it is allocated. A
pool that contradicts itself is invalid, with the same effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from muster.api import quantity
from muster.api.devices import DeviceTaint, DeviceTaintRule, ResourceSlice, ResourceSliceSpec
from muster.api.types import Node
from muster.scheduler.devices.device import CounterKey, Device, DeviceId, Numbers, Reach, devices_of

K = TypeVar("K")

PoolKey = tuple[str, str]  # driver and name

UPDATING = "is currently being updated"
INVALID = "is currently invalid"


@dataclass(frozen=True, slots=True)
class Pool:
    """What one node can use of a pool. With a `fault` nothing of it may be allocated; `detail` explains the fault."""

    driver: str
    name: str
    devices: tuple[Device, ...]
    counters: Mapping[CounterKey, int]
    fault: str = ""
    detail: str = ""
    local: bool = False  # no other node can use any of the devices


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice with its devices read."""

    slice: ResourceSlice
    devices: tuple[Device, ...]

    def reaches(self, node: Node) -> bool:
        spec, meta = self.slice.spec, node.metadata
        if spec.per_device_node_selection:
            return any(device.reach.includes(meta.name, meta.labels) for device in self.devices)
        return Reach(spec.node_name or "", spec.node_selector).includes(meta.name, meta.labels)


class Pools:
    """All slices and taint rules of the cluster, and what they give each node."""

    def __init__(self) -> None:
        self._slices: dict[str, _Slice] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._by_node: dict[str, set[str]] = {}  # names of slices of one node
        self._of_many: set[str] = set()  # names of the other slices
        self._by_pool: dict[PoolKey, set[str]] = {}
        self._devices: dict[DeviceId, Device] = {}
        self._numbers = Numbers()
        self._kinds: dict[int, tuple[Device, int]] = {}  # by twin: one of them, and how many there are
        self._counters_stay_local: bool | None = None
        self.kinds_version = 0  # counts changes of what `kinds` and `is_local` say

    # --- objects -----------------------------------------------------------------------------------

    def set_slice(self, slice_: ResourceSlice) -> bool:
        """Add or update a slice; False if nothing of it changed."""
        name = slice_.metadata.name
        old = self._slices.get(name)
        if old is not None:
            if old.slice.spec == slice_.spec:
                return False
            self._forget(name, old)
        self._remember(name, slice_)
        return True

    def remove_slice(self, name: str) -> ResourceSlice | None:
        """Remove a slice; what it was, if it was known."""
        old = self._slices.get(name)
        if old is None:
            return None
        self._forget(name, old)
        return old.slice

    def set_rule(self, rule: DeviceTaintRule) -> bool:
        """Add or update a taint rule; False if it taints the same devices in the same way."""
        old = self._rules.get(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        if old is not None and old.spec == rule.spec:
            return False
        self._read_again()
        return True

    def remove_rule(self, name: str) -> bool:
        if self._rules.pop(name, None) is None:
            return False
        self._read_again()
        return True

    def _remember(self, name: str, slice_: ResourceSlice) -> None:
        spec = slice_.spec
        devices = tuple(devices_of(slice_, self._taints_by_rules(slice_), self._numbers))
        self._slices[name] = _Slice(slice_, devices)
        self._by_pool.setdefault((spec.driver, spec.pool.name), set()).add(name)
        if spec.node_name:
            self._by_node.setdefault(spec.node_name, set()).add(name)
        else:
            self._of_many.add(name)
        for device in devices:
            self._devices[device.id] = device
            first, count = self._kinds.get(device.twin, (device, 0))
            self._kinds[device.twin] = first, count + 1
            self.kinds_version += not count
        self._look_at_counters(spec)

    def _forget(self, name: str, old: _Slice) -> None:
        spec = old.slice.spec
        del self._slices[name]
        _discard(self._by_pool, (spec.driver, spec.pool.name), name)
        if spec.node_name:
            _discard(self._by_node, spec.node_name, name)
        self._of_many.discard(name)
        for device in old.devices:
            if self._devices.get(device.id) is device:
                del self._devices[device.id]
            first, count = self._kinds.pop(device.twin)
            if count > 1:
                self._kinds[device.twin] = first, count - 1
            self.kinds_version += count == 1
        self._look_at_counters(spec)

    def _look_at_counters(self, spec: ResourceSliceSpec) -> None:
        """A slice that has counters, or whose devices use them, came or went."""
        if spec.shared_counters or any(device.consumes_counters for device in spec.devices or ()):
            self._counters_stay_local = None
            self.kinds_version += 1

    def _read_again(self) -> None:
        for name, known in list(self._slices.items()):
            self._forget(name, known)
            self._remember(name, known.slice)

    def _taints_by_rules(self, slice_: ResourceSlice) -> Iterable[tuple[DeviceTaint, str]]:
        for _, rule in sorted(self._rules.items()):
            selector = rule.spec.device_selector
            if selector is None:
                continue
            of_driver = selector.driver in (None, slice_.spec.driver)
            if of_driver and selector.pool in (None, slice_.spec.pool.name):
                yield rule.spec.taint, selector.device or ""

    # --- reading -----------------------------------------------------------------------------------

    def slices(self, driver: str, pool: str) -> list[ResourceSlice]:
        """The slices of a pool, of all generations."""
        return [self._slices[name].slice for name in sorted(self._by_pool.get((driver, pool), ()))]

    def device(self, device: DeviceId) -> Device | None:
        """A device that some slice lists."""
        return self._devices.get(device)

    def kinds(self) -> Iterator[Device]:
        """One device of each set of twins in the cluster."""
        return (device for device, _ in self._kinds.values())

    def is_local(self, device: Device) -> bool:
        """Whether nothing that is done on other nodes can make a difference to the device or its twins."""
        return bool(device.reach.node_name) and (not device.consumes or self._counters_are_local())

    def _counters_are_local(self) -> bool:
        """Whether each pool with shared counters is for one node."""
        if self._counters_stay_local is None:
            pools = ([self._slices[name].slice.spec for name in names] for names in self._by_pool.values())
            self._counters_stay_local = all(
                specs[0].node_name and all(spec.node_name == specs[0].node_name for spec in specs)
                for specs in pools
                if any(spec.shared_counters for spec in specs)
            )
        return self._counters_stay_local

    @property
    def shared_between_nodes(self) -> bool:
        """Whether there are slices that more than one node may use."""
        return bool(self._of_many)

    def at(self, node: Node) -> tuple[Pool, ...]:
        """The pools of a node in the order in which devices are tried: without binding conditions first."""
        names = self._by_node.get(node.metadata.name, set())
        if self._of_many:
            names = names | {name for name in self._of_many if self._slices[name].reaches(node)}
        by_pool: dict[PoolKey, list[_Slice]] = {}
        for name in sorted(names):
            one = self._slices[name]
            by_pool.setdefault((one.slice.spec.driver, one.slice.spec.pool.name), []).append(one)
        pools = (self._pool(key, slices, node) for key, slices in sorted(by_pool.items()))
        found = [pool for pool in pools if pool is not None]
        return tuple(found if len(found) == 1 else sorted(found, key=_with_binding_conditions))

    def _pool(self, key: PoolKey, candidates: list[_Slice], node: Node) -> Pool | None:
        """A pool as one node sees it; None if a newer generation has nothing for the node."""
        generation = max(found.slice.spec.pool.generation for found in candidates)
        kept = [found for found in candidates if found.slice.spec.pool.generation == generation]
        everywhere = [self._slices[name] for name in sorted(self._by_pool[key])]
        wanted = kept[0].slice.spec.pool.resource_slice_count
        meta = node.metadata
        devices = tuple(
            device
            for found in kept
            for device in found.devices
            if not found.slice.spec.per_device_node_selection or device.reach.includes(meta.name, meta.labels)
        )
        local = all(found.slice.spec.node_name for found in kept) or all(device.reach.node_name for device in devices)
        current = [found for found in everywhere if found.slice.spec.pool.generation == generation]
        if len(kept) != wanted:
            if any(found.slice.spec.pool.generation > generation for found in everywhere):
                return None
            if len(current) != wanted:
                return Pool(*key, devices, {}, UPDATING, f"{len(current)} of {wanted} slices", local)
        counters, detail = _counters(key, current)
        detail = detail or _repeated_name(devices) or _undeclared(current, counters)
        return Pool(*key, devices, counters, INVALID if detail else "", detail, local)


def _with_binding_conditions(pool: Pool) -> bool:
    return any(device.binding_conditions for device in pool.devices)


def _counters(key: PoolKey, slices: list[_Slice]) -> tuple[dict[CounterKey, int], str]:
    """The counters that the slices of a pool declare, and what is wrong with them."""
    declared: dict[CounterKey, int] = {}
    names: set[str] = set()
    for found in slices:
        for counter_set in found.slice.spec.shared_counters or ():
            if counter_set.name in names:
                return declared, f"counter set {counter_set.name} is declared twice"
            names.add(counter_set.name)
            for name, counter in (counter_set.counters or {}).items():
                declared[CounterKey(*key, counter_set.name, name)] = quantity.parse(counter.value).nanos
    return declared, ""


def _repeated_name(devices: tuple[Device, ...]) -> str:
    if len({device.id.name for device in devices}) == len(devices):
        return ""
    twice = [name for name, count in Counter(device.id.name for device in devices).items() if count > 1]
    return f"device {min(twice)} is listed twice"


def _undeclared(slices: list[_Slice], counters: Mapping[CounterKey, int]) -> str:
    for found in slices:
        for device in found.devices:
            for key, _ in device.consumes:
                if key not in counters:
                    return f"device {device.id.name} consumes an undeclared counter {key.counter_set}/{key.counter}"
    return ""


def _discard(index: dict[K, set[str]], key: K, name: str) -> None:
    names = index[key]
    names.discard(name)
    if not names:
        del index[key]
