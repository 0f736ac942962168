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

    def copy(self) -> DeviceUsage:
        other = DeviceUsage()
        other._whole = self._whole.copy()
        other._shares = self._shares.copy()
        other._consumed = {device: consumed.copy() for device, consumed in self._consumed.items()}
        other._counters = self._counters.copy()
        return other

    # --- reading -----------------------------------------------------------------------------------

    def taken(self, device: DeviceId) -> bool:
        """Whether the device as a whole is in use."""
        return self._whole[device] > 0

    def shared(self, device: DeviceId) -> bool:
        """Whether a share of the device is in use."""
        return self._shares[device] > 0

    def consumed(self, device: DeviceId) -> Mapping[str, int]:
        """What the shares of a device take of its capacities."""
        return self._consumed.get(device, {})

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

    def _charge(self, device: DeviceId, known: Device | None, sign: int) -> None:
        """Counters are charged once for a device, with the first use of it, and given back with the last."""
        if known is not None and known.consumes and self._whole[device] + self._shares[device] == 1:
            for counter, amount in known.consumes:
                self._counters[counter] += sign * amount


def _decrease(counts: Counter[DeviceId], device: DeviceId) -> None:
    counts[device] -= 1
    if counts[device] <= 0:
        del counts[device]
