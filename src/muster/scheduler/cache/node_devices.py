"""The devices of each node, and what decides which claims they can serve: nodes where that is equal are asked once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from muster.api.types import Node
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.devices.device import Device
from muster.scheduler.devices.pools import Pool, Pools
from muster.scheduler.devices.usage import DeviceUsage

Signature = tuple[object, ...]


class NodeDevices:
    """Pools and signatures by slot, computed when they are asked for."""

    def __init__(self, columns: NodeColumns, pools: Pools, usage: DeviceUsage) -> None:
        self._columns = columns
        self._all = pools
        self._usage = usage
        self._pools: dict[int, tuple[Pool, ...]] = {}
        self._signatures: dict[int, Signature] = {}

    def node(self, slot: int) -> Node:
        return self._columns.node_objects[self._columns.names[slot]]

    def pools(self, slot: int) -> tuple[Pool, ...]:
        found = self._pools.get(slot)
        if found is None:
            found = self._pools[slot] = self._all.at(self.node(slot))
        return found

    # --- changes -----------------------------------------------------------------------------------

    def forget(self, slot: int) -> None:
        """The node at this slot is new, or its labels or slices may be others."""
        self._pools.pop(slot, None)
        self._signatures.pop(slot, None)

    def forget_all(self) -> None:
        self._pools.clear()
        self._signatures.clear()

    def used(self, device: Device | None) -> None:
        """A device was taken or given back (None: one that no slice lists)."""
        slot = self._columns.index.get(device.reach.node_name) if device is not None else None
        if slot is None or (device is not None and device.consumes):
            self._signatures.clear()
        else:
            self._signatures.pop(slot, None)

    @contextmanager
    def signature_kept(self, slot: int) -> Generator[None]:
        """Within this, devices change hands among the pods on trial on the slot, which its signature leaves out."""
        kept = self._signatures.get(slot)
        yield
        if kept is not None:
            self._signatures[slot] = kept

    # --- signatures --------------------------------------------------------------------------------

    def known_signature(self, slot: int) -> Signature | None:
        return self._signatures.get(slot)

    def signature(self, slot: int) -> Signature:
        """What decides which claims a node can serve, as its devices are used now."""
        pools = self.pools(slot)
        found = tuple(self._pool_signature(pool) for pool in pools)
        if all(device.reach.node_name for pool in pools for device in pool.devices):
            self._signatures[slot] = found  # what is tried on other nodes does not change it
        return found

    def _pool_signature(self, pool: Pool) -> Signature:
        usage = self._usage
        devices: list[tuple[int, bool, tuple[tuple[str, int], ...]]] = []
        for device in pool.devices:
            shares = tuple(sorted(usage.consumed(device.id).items())) if usage.shared(device.id) else ()
            devices.append((device.twin, usage.taken(device.id), shares))
        left = tuple((key[2:], amount - usage.counted(key)) for key, amount in sorted(pool.counters.items()))
        return pool.driver, pool.fault, tuple(devices), left
