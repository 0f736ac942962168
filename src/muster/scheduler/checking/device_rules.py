"""Devices that were chosen for claims, checked on the API objects before any claim is written.

Nothing of the search is used: devices are looked up in the slices as published, what is in use is read from the claims,
and every rule of a request is applied again. Only the answers of selectors are shared, which the language gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from muster.api import quantity, selectors
from muster.api.devices import (
    ALL,
    DeviceClaim,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceSlice,
    SliceDevice,
)
from muster.api.types import Node, Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.devices.device import DeviceId

ClaimKey = tuple[str, str]  # namespace and name
Identity = tuple[str, str, str]  # driver, pool and name of a device


class ChosenDevice(Protocol):
    """A device for a request of a claim."""

    @property
    def request(self) -> str: ...

    @property
    def device(self) -> Identified: ...

    @property
    def consumed(self) -> Mapping[str, int] | None:
        """How much of its capacities is taken, in billionths; None for the whole device."""
        ...


class Identified(Protocol):
    @property
    def id(self) -> Identity: ...


Choice = Mapping[ClaimKey, Sequence[ChosenDevice]]


def allocation_fault(cluster: Cluster, choice: Choice, placed: Sequence[tuple[Pod, int]]) -> str | None:
    """The first fault of devices chosen for claims of pods on slots, in words."""
    return _Check(cluster, choice).fault(placed)


class _Check:
    def __init__(self, cluster: Cluster, choice: Choice) -> None:
        self.cluster = cluster
        self.choice = choice
        self.claims = cluster.devices.claims
        self.coming: dict[Identity, list[ClaimKey]] = {}  # claims that are about to get a device
        for key, promise in cluster.devices.promised.items():
            for device in {pick.device.id for pick in promise.picks}:
                self.coming.setdefault(device, []).append(key)

    def fault(self, placed: Sequence[tuple[Pod, int]]) -> str | None:
        for key, chosen in self.choice.items():
            claim = self.claims.claims.get(key)
            if claim is None:
                return f"the claim {key[1]} is gone"
            wrong = self._claim(claim.spec.devices, chosen)
            if wrong is not None:
                return f"claim {key[0]}/{key[1]}: {wrong}"
        return self._twice() or self._counters() or self._out_of_reach(placed)

    # --- one claim ---------------------------------------------------------------------------------

    def _claim(self, spec: DeviceClaim, chosen: Sequence[ChosenDevice]) -> str | None:
        for request in spec.requests or ():
            mine = [each for each in chosen if each.request.partition("/")[0] == request.name]
            names = {each.request for each in mine}
            ways: dict[str, ExactDeviceRequest | DeviceSubRequest] = (
                {request.name: request.exactly}
                if request.exactly is not None
                else {f"{request.name}/{way.name}": way for way in request.first_available or ()}
            )
            if len(names) != 1 or not names <= ways.keys():
                return f"request {request.name} is not satisfied in one way"
            way = ways[names.pop()]
            if way.allocation_mode != ALL and len(mine) != way.count:
                return f"request {request.name} has {len(mine)} of {way.count} devices"
            for each in mine:
                wrong = self._device(way, each)
                if wrong is not None:
                    return f"request {request.name}: {'/'.join(each.device.id)} {wrong}"
        return self._constraints(spec, chosen)

    def _device(self, way: ExactDeviceRequest | DeviceSubRequest, chosen: ChosenDevice) -> str | None:
        found = self._published(chosen.device.id)
        if found is None:
            return "is not published"
        slice_, device = found
        device_class = self.claims.classes.get(way.device_class_name)
        if device_class is None:
            return f"is of a class {way.device_class_name} that does not exist"
        for selector in (*(device_class.spec.selectors or ()), *(way.selectors or ())):
            if selector.cel is None or not self.cluster.device_room.selects(
                selector.cel.expression, DeviceId(*chosen.device.id)
            ):
                return "is not what a selector asks for"
        if not _tolerated(device.taints or (), way.tolerations or ()):
            return "has a taint that is not tolerated"
        wanted = (way.capacity.requests if way.capacity is not None else None) or {}
        for name, amount in wanted.items():
            qualified = name if "/" in name else f"{slice_.spec.driver}/{name}"
            has = _capacity(slice_, device).get(qualified)
            taken = has if chosen.consumed is None else chosen.consumed.get(qualified)
            if has is None or taken is None or taken < quantity.parse(amount).nanos:
                return f"has too little {name}"
        return None

    def _constraints(self, spec: DeviceClaim, chosen: Sequence[ChosenDevice]) -> str | None:
        for constraint in spec.constraints or ():
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            covered = constraint.requests
            values = [
                self._attribute(each.device.id, name)
                for each in chosen
                if not covered or each.request in covered or each.request.partition("/")[0] in covered
            ]
            if None in values:
                return f"a device has no attribute {name}"
            if constraint.match_attribute is not None and len(set(values)) > 1:
                return f"devices differ in {name}"
            if constraint.match_attribute is None and len(set(values)) < len(values):
                return f"devices have the same {name}"
        return None

    # --- all claims --------------------------------------------------------------------------------

    def _twice(self) -> str | None:
        """Nobody else has a device, and all shares of one fit into its capacities."""
        whole: Counter[Identity] = Counter()
        shares: dict[Identity, Counter[str]] = {}
        for key, chosen in self.choice.items():
            for each in chosen:
                if self._administers(key, each.request):
                    continue
                if each.consumed is None:
                    whole[each.device.id] += 1
                else:
                    shares.setdefault(each.device.id, Counter()).update(each.consumed)
        for device in (*whole, *shares):
            others = [key for key in self._holders(device) if key not in self.choice]
            if (device in whole and (others or whole[device] > 1)) or (device in whole and device in shares):
                return f"the device {'/'.join(device)} is in use"
            if device in shares:
                for other in others:
                    shares[device].update(self._consumed_by(other, device))
                if not self._fits(device, shares[device]):
                    return f"the device {'/'.join(device)} has too little left"
        return None

    def _holders(self, device: Identity) -> list[ClaimKey]:
        """The claims that have a device, or are about to get it."""
        return [*self.claims.holders.get(DeviceId(*device), ()), *self.coming.get(device, ())]

    def _consumed_by(self, key: ClaimKey, device: Identity) -> dict[str, int]:
        total: Counter[str] = Counter()
        promise = self.cluster.devices.promised.get(key)
        for pick in promise.picks if promise is not None else ():
            if pick.device.id == device:
                total.update(pick.consumed or {})
        allocation = self.claims.claims[key].status.allocation
        for each in (allocation.devices.results if allocation is not None else None) or ():
            if (each.driver, each.pool, each.device) == device:
                total.update(
                    {name: quantity.parse(found).nanos for name, found in (each.consumed_capacity or {}).items()}
                )
        return dict(total)

    def _fits(self, device: Identity, consumed: Mapping[str, int]) -> bool:
        found = self._published(device)
        has = _capacity(*found) if found is not None else {}
        return all(amount <= has.get(name, 0) for name, amount in consumed.items())

    def _counters(self) -> str | None:
        """Shared counters of the pools concerned are enough for all devices in use."""
        pools = {each.device.id[:2] for chosen in self.choice.values() for each in chosen}
        for driver, pool in pools:
            slices = self._current(driver, pool)
            left = {
                (found.name, name): quantity.parse(counter.value).nanos
                for slice_ in slices
                for found in slice_.spec.shared_counters or ()
                for name, counter in (found.counters or {}).items()
            }
            if not left:
                continue
            for device in self._in_use(driver, pool):
                published = self._published(device)
                for consumption in (published[1].consumes_counters if published is not None else None) or ():
                    for name, counter in (consumption.counters or {}).items():
                        left[consumption.counter_set, name] -= quantity.parse(counter.value).nanos
            if any(amount < 0 for amount in left.values()):
                return f"the counters of pool {pool} are exceeded"
        return None

    def _in_use(self, driver: str, pool: str) -> set[Identity]:
        held: set[Identity] = {device for device in self.claims.holders if device[:2] == (driver, pool)}
        for key, chosen in self.choice.items():
            held |= {
                each.device.id
                for each in chosen
                if each.device.id[:2] == (driver, pool) and not self._administers(key, each.request)
            }
        return held

    def _out_of_reach(self, placed: Sequence[tuple[Pod, int]]) -> str | None:
        """Every pod's node can use the devices of every claim of the pod."""
        for pod, slot in placed:
            node = self.cluster.node_objects[self.cluster.names[slot]]
            made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()}
            for entry in pod.spec.resource_claims or ():
                name = entry.resource_claim_name or made.get(entry.name)
                if name and not self._reachable((pod.metadata.namespace, name), node):
                    return f"{node.metadata.name} cannot use the devices of the claim {name}"
        return None

    def _reachable(self, key: ClaimKey, node: Node) -> bool:
        if key in self.choice:
            return all(self._reaches(each.device.id, node) for each in self.choice[key])
        claim = self.claims.claims.get(key)
        allocation = claim.status.allocation if claim is not None else None
        if allocation is None:
            return False
        selector, meta = allocation.node_selector, node.metadata
        return selector is None or selectors.node_matches(selector, meta.name, meta.labels)

    def _reaches(self, device: Identity, node: Node) -> bool:
        found = self._published(device)
        if found is None:
            return False
        slice_, own = found
        where = own if slice_.spec.per_device_node_selection else slice_.spec
        if where.node_name:
            return where.node_name == node.metadata.name
        meta = node.metadata
        return where.node_selector is None or selectors.node_matches(where.node_selector, meta.name, meta.labels)

    # --- reading the objects -----------------------------------------------------------------------

    def _current(self, driver: str, pool: str) -> list[ResourceSlice]:
        slices = self.cluster.devices.pools.slices(driver, pool)
        newest = max((each.spec.pool.generation for each in slices), default=0)
        return [each for each in slices if each.spec.pool.generation == newest]

    def _published(self, device: Identity) -> tuple[ResourceSlice, SliceDevice] | None:
        for slice_ in self._current(*device[:2]):
            for found in slice_.spec.devices or ():
                if found.name == device[2]:
                    return slice_, found
        return None

    def _attribute(self, device: Identity, name: str) -> object:
        found = self._published(device)
        attributes = (found[1].attributes if found is not None else None) or {}
        domain, _, bare = name.partition("/")
        return attributes.get(name) or (attributes.get(bare) if domain == device[0] else None)

    def _administers(self, key: ClaimKey, request: str) -> bool:
        claim = self.claims.claims[key]
        exact = next((each.exactly for each in claim.spec.devices.requests or () if each.name == request), None)
        return exact is not None and bool(exact.admin_access)


def _tolerated(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    for taint in taints:
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        if not any(
            each.key in ("", taint.key)
            and each.effect in ("", taint.effect)
            and (each.operator == "Exists" or each.value == taint.value)
            for each in tolerations
        ):
            return False
    return True


def _capacity(slice_: ResourceSlice, device: SliceDevice) -> dict[str, int]:
    return {
        name if "/" in name else f"{slice_.spec.driver}/{name}": quantity.parse(found.value).nanos
        for name, found in (device.capacity or {}).items()
    }
