"""Which devices are in use: as a whole, by shares of their capacity, and what that takes of shared counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from muster.scheduler.devices.device import CounterKey, Device, DeviceId


class DeviceUsage:
    """What allocations of claims take. Several may name one device: only the last one that goes frees it."""

    def __init__(self) -> None:
        self._whole: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._consumed: dict[DeviceId, Counter[str]] = {}
        self._counters: Counter[CounterKey] = Counter()
        self._charged: dict[DeviceId, tuple[tuple[CounterKey, int], ...]] = {}
        self._pools: Counter[tuple[str, str]] = Counter()  # uses of devices by driver and pool

    # --- reading -----------------------------------------------------------------------------------

    def taken(self, device: DeviceId) -> bool:
        """Whether the device as a whole is in use."""
        return device in self._whole

    def shared(self, device: DeviceId) -> bool:
        """Whether a share of the device is in use."""
        return device in self._shares

    def consumed(self, device: DeviceId) -> Mapping[str, int]:
        """What the shares of a device take of its capacities."""
        return self._consumed.get(device, {})

    def touches(self, driver: str, pool: str) -> bool:
        """Whether anything of a pool is in use."""
        return self._pools[driver, pool] > 0

    def counted(self, counter: CounterKey) -> int:
        """What the devices in use take of a shared counter."""
        return self._counters[counter]

    # --- changing ----------------------------------------------------------------------------------

    def take(self, device: DeviceId, known: Device | None) -> None:
        """Take a device as a whole. `known` says which counters it consumes, if a slice lists it."""
        self._whole[device] += 1
        self._charge(device, known, 1)

    def release(self, device: DeviceId, known: Device | None) -> None:
        self._charge(device, known, -1)
        _decrease(self._whole, device)

    def take_share(self, device: DeviceId, known: Device | None, consumed: Mapping[str, int]) -> None:
        """Take a share of a device."""
        self._shares[device] += 1
        self._consumed.setdefault(device, Counter()).update(consumed)
        self._charge(device, known, 1)

    def release_share(self, device: DeviceId, known: Device | None, consumed: Mapping[str, int]) -> None:
        self._charge(device, known, -1)
        _decrease(self._shares, device)
        self._consumed[device].subtract(consumed)
        if not self._shares[device]:
            del self._consumed[device]

    def republished(self, device: DeviceId, known: Device | None) -> None:
        """A slice with the device came, changed or went (None): what its use takes of counters may be different."""
        if device in self._whole or device in self._shares:
            self._charge_counters(device, known)

    def _charge(self, device: DeviceId, known: Device | None, sign: int) -> None:
        """Counters are charged once for a device, with the first use of it, and given back with the last."""
        self._pools[device.driver, device.pool] += sign
        if self._whole[device] + self._shares[device] == 1:
            self._charge_counters(device, known if sign > 0 else None)

    def _charge_counters(self, device: DeviceId, known: Device | None) -> None:
        for counter, amount in self._charged.pop(device, ()):
            self._counters[counter] -= amount
        if known is not None and known.consumes:
            self._charged[device] = known.consumes
            for counter, amount in known.consumes:
                self._counters[counter] += amount


def _decrease(counts: Counter[DeviceId], device: DeviceId) -> None:
    counts[device] -= 1
    if counts[device] <= 0:
        del counts[device]
