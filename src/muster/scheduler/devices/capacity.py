"""How much of a device's capacity a request consumes, and whether the request fits the device at all.

A request is rounded up by the policy of the capacity: to a valid value, or into a range in steps. Without a request a
shareable device gives the policy's default, and without one everything. All amounts are billionths of a unit.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api import quantity
from muster.api.devices import Amount, CapacityPolicy, CapacityRange
from muster.scheduler.devices.device import Capacity, Device


def consumed_by(device: Device, requests: tuple[tuple[str, int], ...]) -> Mapping[str, int] | None:
    """What a request takes of every capacity of the device; None if the device can never satisfy it."""
    wanted: dict[str, int] = {}
    for name, amount in requests:
        qualified = name if "/" in name else f"{device.id.driver}/{name}"
        if qualified not in device.capacity:
            return None
        wanted[qualified] = amount
    consumed: dict[str, int] = {}
    for name, capacity in device.capacity.items():
        amount = _consumed(capacity, wanted.get(name))
        if amount is None or amount > capacity.amount:
            return None
        consumed[name] = amount
    return consumed


def _consumed(capacity: Capacity, requested: int | None) -> int | None:
    policy = capacity.policy
    if requested is None:
        return capacity.amount if policy is None or policy.default is None else _nanos(policy.default)
    if policy is None:
        return requested
    return _rounded(policy, requested)


def _rounded(policy: CapacityPolicy, requested: int) -> int | None:
    """The least amount that the policy allows and that is enough; None if there is none."""
    if policy.valid_values:
        return min((value for value in map(_nanos, policy.valid_values) if value >= requested), default=None)
    if policy.valid_range is not None:
        return _in_range(policy.valid_range, requested)
    return requested


def _in_range(bounds: CapacityRange, requested: int) -> int | None:
    least = _nanos(bounds.min) if bounds.min is not None else 0
    amount = max(requested, least)
    if bounds.step is not None and (step := _nanos(bounds.step)) > 0:
        amount = least + -(-(amount - least) // step) * step
    return None if bounds.max is not None and amount > _nanos(bounds.max) else amount


def _nanos(amount: Amount) -> int:
    return quantity.parse(amount).nanos
