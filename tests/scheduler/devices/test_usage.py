"""What allocations take is given back exactly when the last of them goes."""

from __future__ import annotations

from muster.api.quantity import NANOS
from muster.scheduler.devices.device import CounterKey, DeviceId
from muster.scheduler.devices.pools import Pools
from muster.scheduler.devices.usage import DeviceUsage
from tests.build.devices import DRIVER, a_slice

DEVICE = DeviceId(DRIVER, "s", "d")
COUNTER = CounterKey(DRIVER, "s", "set", "slices")


def known():
    pools = Pools()
    counters = [{"counterSet": "set", "counters": {"slices": {"value": "3"}}}]
    pools.set_slice(a_slice("s", [{"name": "d", "consumesCounters": counters, "allowMultipleAllocations": True}]))
    return pools.device(DEVICE)


def test_a_whole_device() -> None:
    usage, device = DeviceUsage(), known()
    usage.take(DEVICE, device)
    usage.take(DEVICE, device)  # two claims name it: somebody else's mistake, which must not free it early
    assert usage.taken(DEVICE)
    assert usage.counted(COUNTER) == 3 * NANOS
    usage.release(DEVICE, device)
    assert usage.taken(DEVICE)
    assert usage.counted(COUNTER) == 3 * NANOS
    usage.release(DEVICE, device)
    assert not usage.taken(DEVICE)
    assert usage.counted(COUNTER) == 0


def test_shares_add_up_and_charge_counters_once() -> None:
    usage, device = DeviceUsage(), known()
    usage.take_share(DEVICE, device, {"memory": 2})
    usage.take_share(DEVICE, device, {"memory": 3})
    assert not usage.taken(DEVICE)
    assert usage.shared(DEVICE)
    assert usage.consumed(DEVICE) == {"memory": 5}
    assert usage.counted(COUNTER) == 3 * NANOS
    usage.release_share(DEVICE, device, {"memory": 2})
    assert usage.consumed(DEVICE) == {"memory": 3}
    usage.release_share(DEVICE, device, {"memory": 3})
    assert not usage.shared(DEVICE)
    assert usage.consumed(DEVICE) == {}
    assert usage.counted(COUNTER) == 0


def test_a_device_that_no_slice_lists_is_in_use_all_the_same() -> None:
    usage = DeviceUsage()
    usage.take(DEVICE, None)
    assert usage.taken(DEVICE)
    assert usage.counted(COUNTER) == 0


def test_counters_follow_the_slice_of_a_device_in_use() -> None:
    usage = DeviceUsage()
    usage.take(DEVICE, None)  # its slice comes later
    usage.republished(DEVICE, known())
    assert usage.counted(COUNTER) == 3 * NANOS
    usage.republished(DEVICE, known())
    assert usage.counted(COUNTER) == 3 * NANOS
    usage.release(DEVICE, known())
    assert usage.counted(COUNTER) == 0
    usage.republished(DEVICE, known())
    assert usage.counted(COUNTER) == 0, "nobody uses it"
