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

_MOST_NUMBERS = 200_000


class NodeDevices:
    """Pools and signatures by slot, computed when they are asked for. Equal signatures have the same number."""

    def __init__(self, columns: NodeColumns, pools: Pools, usage: DeviceUsage) -> None:
        self._columns = columns
        self._all = pools
        self._usage = usage
        self._pools: dict[int, tuple[Pool, ...]] = {}
        self._signatures: dict[int, int] = {}
        self._unused: dict[int, tuple[Signature, ...]] = {}  # by slot, each pool while nothing of it is in use
        self._numbers: dict[Signature, int] = {}
        self.generation = 0  # counts how often numbers were given anew

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
        self._unused.pop(slot, None)
        self._signatures.pop(slot, None)

    def forget_all(self) -> None:
        self._pools.clear()
        self._unused.clear()
        self._signatures.clear()

    def used(self, device: Device | None) -> None:
        """A device was taken or given back (None: one that no slice lists)."""
        slot = self._columns.index.get(device.reach.node_name) if device is not None else None
        if device is not None and slot is not None and (not device.consumes or self._all.is_local(device)):
            self._signatures.pop(slot, None)
        else:
            self._signatures.clear()

    @contextmanager
    def signature_kept(self, slot: int) -> Generator[None]:
        """Within this, devices change hands among the pods on trial on the slot, which its signature leaves out."""
        kept = self._signatures.get(slot)
        yield
        if kept is not None:
            self._signatures[slot] = kept

    # --- signatures --------------------------------------------------------------------------------

    def known_signature(self, slot: int) -> int | None:
        return self._signatures.get(slot)

    def signature(self, slot: int) -> int:
        """The number of what decides which claims a node can serve, as its devices are used now."""
        pools = self.pools(slot)
        unused = self._unused.get(slot)
        if unused is None:
            unused = self._unused[slot] = tuple(_unused(pool) for pool in pools)
        told = tuple(
            self._in_use(pool, plain) if self._usage.touches(pool.driver, pool.name) else plain
            for pool, plain in zip(pools, unused, strict=True)
        )
        if len(self._numbers) >= _MOST_NUMBERS:
            self._numbers.clear()
            self._signatures.clear()
            self.generation += 1
        found = self._numbers.setdefault(told, len(self._numbers))
        if all(pool.local for pool in pools):
            self._signatures[slot] = found  # what is tried on other nodes does not change it
        return found

    def _in_use(self, pool: Pool, plain: Signature) -> Signature:
        usage = self._usage
        uses: list[object] = []
        for position, device in enumerate(pool.devices):
            if usage.taken(device.id):
                uses.append(position)
            elif usage.shared(device.id):
                uses.append((position, *sorted(usage.consumed(device.id).items())))
        spent = tuple(usage.counted(key) for key in sorted(pool.counters))
        return (*plain, tuple(uses), spent)


def _unused(pool: Pool) -> Signature:
    counters = tuple((key[2:], amount) for key, amount in sorted(pool.counters.items()))
    return pool.driver, pool.fault, tuple(device.twin for device in pool.devices), counters
