"""The different devices that a claim of several pods could get, as far as that makes a difference to where they can go.

What matters is which nodes can use all devices of the claim. So there is one option for every such set of nodes: those
of devices that several nodes can use, smallest sets first, and then single nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from muster.scheduler.cache.arrays import Bools
from muster.scheduler.cache.device_claims import ClaimKey
from muster.scheduler.cache.devices import Devices, NodeSteps, Promise
from muster.scheduler.devices.allocator import Allocated, allocate
from muster.scheduler.devices.claim_request import ClaimRequest
from muster.scheduler.devices.device import Device
from muster.scheduler.devices.pools import Pool

MOST_SETS = 64  # sets of several nodes that are told apart for one claim


class ClaimOptions:
    """The options of one claim on some slots. `complete`: no set of nodes is missing."""

    def __init__(self, devices: Devices, key: ClaimKey, slots: Sequence[int], size: int) -> None:
        self._devices = devices
        self._request: ClaimRequest = devices.claims.request(key)
        self._slots = slots
        self._size = size
        self.complete = True
        self.kinds = self._kinds()

    def wide(self) -> Iterator[tuple[Bools, Promise]]:
        """Options that several nodes can use, with these nodes; the smallest sets first."""
        seen: set[bytes] = set()
        for mask in self._sets():
            first = int(np.flatnonzero(mask)[0])
            found = self._allocate(first, mask)
            if found is None:
                continue
            reached = self._reach(found, mask)
            if reached.tobytes() not in seen:
                seen.add(reached.tobytes())
                yield reached, found

    def on(self, slot: int, *, each_kind: bool) -> Iterator[Promise]:
        """The option for one node alone; with `each_kind`, one for every kind of device, if others want them too."""
        only = np.zeros(self._size, dtype=np.bool_)
        only[slot] = True
        seen: set[tuple[int, ...]] = set()
        for kind in (None, *(device.twin for device in self.kinds)) if each_kind else (None,):
            found = self._allocate(slot, only, kind)
            taken = tuple(sorted(pick.device.twin for pick in found.picks)) if found is not None else ()
            if found is not None and taken not in seen:
                seen.add(taken)
                yield found

    # --- sets of nodes -----------------------------------------------------------------------------

    def _kinds(self) -> list[Device]:
        kinds = self._devices.kinds
        wanted: set[int] = set()
        for way in self._request.ways:
            found = kinds.of(way)
            if found is None:
                self.complete = False
                continue
            wanted |= found
        return [device for device in self._devices.pools.kinds() if device.twin in wanted]

    def _sets(self) -> list[Bools]:
        """Sets of at least two nodes that can use a device, or several devices together."""
        found: dict[bytes, Bools] = {}
        for device in self._kinds_of_many():
            mask = np.zeros(self._size, dtype=np.bool_)
            for slot in self._slots:
                meta = self._devices.nodes.node(slot).metadata
                mask[slot] = device.reach.includes(meta.name, meta.labels)
            found[mask.tobytes()] = mask
        if self._request.fewest_devices > 1 or any(way.takes_all for way in self._request.ways):
            self._add_intersections(found)
        sets = [mask for mask in found.values() if np.count_nonzero(mask) > 1]
        if len(sets) > MOST_SETS:
            self.complete = False
        return sorted(sets, key=lambda mask: (int(np.count_nonzero(mask)), mask.tobytes()))[:MOST_SETS]

    def _kinds_of_many(self) -> list[Device]:
        return [device for device in self.kinds if not device.reach.node_name and not device.binds_to_node]

    def _add_intersections(self, found: dict[bytes, Bools]) -> None:
        waiting = list(found.values())
        while waiting:
            mask = waiting.pop()
            for other in list(found.values()):
                both = mask & other
                if both.tobytes() not in found:
                    if len(found) > 4 * MOST_SETS:
                        self.complete = False
                        return
                    found[both.tobytes()] = both
                    waiting.append(both)

    # --- devices -----------------------------------------------------------------------------------

    def _allocate(self, slot: int, mask: Bools, preferred: int | None = None) -> Promise | None:
        """Devices that all nodes of a set can use, those of one kind if possible."""
        devices = self._devices
        pools = [self._reaching(pool, mask) for pool in devices.widest_first(slot)]
        if preferred is not None:
            pools = [
                replace(pool, devices=tuple(sorted(pool.devices, key=lambda device: device.twin != preferred)))
                for pool in sorted(pools, key=lambda pool: all(device.twin != preferred for device in pool.devices))
            ]
        found = allocate([self._request], pools, devices.usage, devices.matches, NodeSteps())
        if isinstance(found, Allocated):
            return Promise(found.claims[0], devices.nodes.node(slot).metadata.name, 1)
        self.complete = self.complete and found.decided
        return None

    def _reaching(self, pool: Pool, mask: Bools) -> Pool:
        nodes = [self._devices.nodes.node(slot).metadata for slot in np.flatnonzero(mask).tolist()]
        usable = (
            device
            for device in pool.devices
            if not (device.binds_to_node and len(nodes) > 1)
            and all(device.reach.includes(node.name, node.labels) for node in nodes)
        )
        return replace(pool, devices=tuple(usable))

    def _reach(self, promise: Promise, mask: Bools) -> Bools:
        reached = mask.copy()
        for slot in self._slots:
            if not reached[slot]:
                reached[slot] = promise.reaches(self._devices.nodes.node(slot))
        return reached
