"""Which kinds of devices a claim can have at all, in use or not, anywhere in the cluster.

A kind is a set of twins: devices that only their names and their nodes tell apart. There are few of them, so that this
says cheaply which claims compete with each other, and whether what happens on other nodes can concern a claim.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.scheduler.devices.allocator import Matches, SelectorError, tolerates_all
from muster.scheduler.devices.claim_request import Alternative, ClaimRequest
from muster.scheduler.devices.device import Device
from muster.scheduler.devices.pools import Pools

Kinds = frozenset[int]


class DeviceKinds:
    """The kinds that alternatives of requests can have, remembered until the slices have other kinds."""

    def __init__(self, pools: Pools, matches: Matches) -> None:
        self._pools = pools
        self._matches = matches
        self._version = -1
        self._known: dict[Alternative, Kinds | None] = {}
        self._by_twin: dict[int, Device] = {}
        self._local: dict[tuple[ClaimRequest, ...], bool] = {}

    def of(self, way: Alternative) -> Kinds | None:
        """The kinds that match; None if a selector cannot be evaluated on one of them."""
        self._refresh()
        if way not in self._known:
            try:
                self._known[way] = frozenset(
                    device.twin
                    for device in self._by_twin.values()
                    if tolerates_all(way.tolerations, device.taints)
                    and all(self._matches(selector, device) for selector in way.selectors)
                )
            except SelectorError:
                self._known[way] = None
        return self._known[way]

    def are_local(self, claims: tuple[ClaimRequest, ...]) -> bool:
        """Whether nothing that is done on other nodes can make a difference to these claims."""
        self._refresh()
        found = self._local.get(claims)
        if found is None:
            found = self._local[claims] = all(self._is_local(way) for claim in claims for way in claim.ways)
        return found

    def are_plain(self, kinds: Iterable[int]) -> bool:
        """Whether devices of these kinds are only ever used whole, and without a counter."""
        self._refresh()
        found = (self._by_twin[kind] for kind in kinds)
        return all(not device.shareable and not device.consumes for device in found)

    def consume_counters(self, kinds: Iterable[int]) -> bool:
        self._refresh()
        return any(self._by_twin[kind].consumes for kind in kinds)

    def _is_local(self, way: Alternative) -> bool:
        kinds = self.of(way)
        return kinds is not None and all(self._pools.is_local(self._by_twin[kind]) for kind in kinds)

    def _refresh(self) -> None:
        if self._version != self._pools.kinds_version:
            self._version = self._pools.kinds_version
            self._known.clear()
            self._local.clear()
            self._by_twin = {device.twin: device for device in self._pools.kinds()}
