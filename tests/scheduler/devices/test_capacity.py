"""How much of a device's capacity a request consumes."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.quantity import NANOS
from muster.scheduler.devices.capacity import consumed_by
from muster.scheduler.devices.pools import Pools
from tests.build.devices import DRIVER, a_node, a_slice


def consumed(requested: int | None, policy: dict[str, Any] | None, value: int = 40) -> float | None:
    """What a request of so much memory takes of a device that has `value`."""
    capacity: dict[str, Any] = {"value": str(value)} | ({"requestPolicy": policy} if policy is not None else {})
    pools = Pools()
    pools.set_slice(a_slice("s", [{"name": "d", "capacity": {"memory": capacity}, "allowMultipleAllocations": True}]))
    (device,) = pools.at(a_node())[0].devices
    found = consumed_by(device, () if requested is None else (("memory", requested * NANOS),))
    return None if found is None else found[f"{DRIVER}/memory"] / NANOS


VALUES = {"default": "8", "validValues": ["8", "16", "32"]}
RANGE = {"default": "4", "validRange": {"min": "4", "max": "30", "step": "6"}}


@pytest.mark.parametrize(
    ("requested", "policy", "expected"),
    [
        (None, None, 40),
        (None, VALUES, 8),
        (None, RANGE, 4),
        (10, None, 10),
        (41, None, None),
        (1, VALUES, 8),
        (9, VALUES, 16),
        (33, VALUES, None),
        (1, RANGE, 4),
        (5, RANGE, 10),
        (28, RANGE, 28),
        (29, RANGE, None),
        (5, {"default": "1"}, 5),
        (5, {"default": "1", "validRange": {"min": "2"}}, 5),
    ],
)
def test_requests_are_rounded_up_by_the_policy(
    requested: int | None, policy: dict[str, Any] | None, expected: int | None
) -> None:
    assert consumed(requested, policy) == expected


def test_steps_smaller_than_a_unit_are_exact() -> None:
    policy = {"default": "100m", "validRange": {"min": "100m", "step": "100m"}}
    assert consumed(1, policy, 2) == 1


def test_a_device_without_the_capacity_does_not_fit() -> None:
    pools = Pools()
    pools.set_slice(a_slice("s", [{"name": "d"}]))
    (device,) = pools.at(a_node())[0].devices
    assert consumed_by(device, (("memory", 1),)) is None
    assert consumed_by(device, ()) == {}
