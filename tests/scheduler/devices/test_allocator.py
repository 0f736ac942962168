"""The allocator finds devices exactly where trying everything finds them, and what it picks may be picked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from muster.api.devices import ResourceClaim
from muster.scheduler.devices.allocator import Allocated, NotAllocated, SelectorError, allocate
from muster.scheduler.devices.claim_request import Selector, claim_request
from muster.scheduler.devices.device import Device, DeviceId
from muster.scheduler.devices.pools import Pools
from muster.scheduler.devices.usage import DeviceUsage
from muster.scheduler.placement.budget import Budget
from tests.build.devices import DRIVER, a_claim, a_class, a_node, a_request, a_slice
from tests.scheduler.devices.worlds import feasible, random_claim, random_devices

CASES = int(os.environ.get("DEVICE_CASES", "1000"))

CLASSES = {"gpu": a_class("gpu"), "model-a": a_class("model-a", "a")}


def matches(selector: Selector, device: Device) -> bool:
    """Selectors in these tests name the model."""
    return device.attributes[f"{DRIVER}/model"].value == selector.expression


def run(claims: list[ResourceClaim], pools: Pools, usage: DeviceUsage, steps: int = 10**6) -> Allocated | NotAllocated:
    requests = [claim_request(claim.spec.devices, CLASSES) for claim in claims]
    return allocate(requests, pools.at(a_node()), usage, matches, Budget(steps))


def names(outcome: Allocated | NotAllocated) -> list[list[str]]:
    assert isinstance(outcome, Allocated), outcome
    return [[pick.device.id.name for pick in picks] for picks in outcome.claims]


@dataclass
class World:
    """Devices of one pool, some of them in use, and claims for them."""

    devices: list[dict[str, Any]]
    claims: list[ResourceClaim]
    in_use: set[str]
    limit: int  # of the counter, beyond what devices in use take

    @classmethod
    def random(cls, seed: int) -> World:
        random = Random(seed)
        devices = random_devices(random)
        claims = [random_claim(random) for _ in range(random.randint(1, 2))]
        in_use = {device["name"] for device in devices if random.random() < 0.15}
        return cls(devices, claims, in_use, random.randint(0, 5))

    def allocate(self) -> Allocated | NotAllocated:
        spent = sum(
            int(consumption["counters"]["slices"]["value"])
            for device in self.devices
            for consumption in device.get("consumesCounters", ())
            if device["name"] in self.in_use
        )
        counters = [{"name": "set", "counters": {"slices": {"value": str(self.limit + spent)}}}]
        pools, pool = Pools(), {"name": "p", "resourceSliceCount": 2}
        pools.set_slice(a_slice("a", self.devices, pool=pool))
        pools.set_slice(a_slice("b", [], pool=pool, sharedCounters=counters))
        usage = DeviceUsage()
        for name in sorted(self.in_use):
            key = DeviceId(DRIVER, "p", name)
            usage.take(key, pools.device(key))
        return run(self.claims, pools, usage)


@pytest.mark.parametrize("block", range(10))
def test_devices_are_found_exactly_where_they_exist(block: int) -> None:
    found = 0
    for seed in range(block * CASES // 10, (block + 1) * CASES // 10):
        world = World.random(seed)
        outcome = world.allocate()
        expected = feasible(world.claims, world.devices, {"slices": world.limit}, world.in_use)
        assert isinstance(outcome, Allocated) == expected, f"seed {seed}: {outcome}"
        found += expected
    assert 0 < found < CASES // 10


# --- directed cases --------------------------------------------------------------------------------


def gpus(count: int, **attributes: object) -> list[dict[str, Any]]:
    body = {name: {"int": value} for name, value in attributes.items()}
    return [{"name": f"d{number}", "attributes": {"model": {"string": "a"}, **body}} for number in range(count)]


def pools_of(*slices: Any) -> Pools:
    pools = Pools()
    for slice_ in slices:
        pools.set_slice(slice_)
    return pools


def test_the_first_devices_in_the_order_of_pools_and_slices_are_taken() -> None:
    pools = pools_of(a_slice("z", gpus(2), pool="b"), a_slice("y", gpus(2), pool="a"))
    outcome = run([a_claim(a_request("r", count=3))], pools, DeviceUsage())
    assert isinstance(outcome, Allocated)
    assert [pick.device.id[1:] for pick in outcome.claims[0]] == [("a", "d0"), ("a", "d1"), ("b", "d0")]


def test_pools_with_binding_conditions_come_last() -> None:
    slow = [device | {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]} for device in gpus(1)]
    pools = pools_of(a_slice("a", slow), a_slice("b", gpus(1)))
    outcome = run([a_claim(a_request("r"))], pools, DeviceUsage())
    assert isinstance(outcome, Allocated)
    assert outcome.claims[0][0].device.id.pool == "b"


def test_an_earlier_request_leaves_the_rare_device_to_a_later_one() -> None:
    devices = gpus(2)
    devices[1]["attributes"]["model"] = {"string": "b"}
    claim = a_claim(a_request("any"), a_request("rare", "model-a"))
    assert names(run([claim], pools_of(a_slice("s", devices)), DeviceUsage())) == [["d1", "d0"]]


def test_the_first_alternative_that_leaves_a_solution_is_used() -> None:
    ways = [{"name": "two", "deviceClassName": "gpu", "count": 2}, {"name": "one", "deviceClassName": "gpu"}]
    request = {"name": "r", "firstAvailable": ways}
    pools = pools_of(a_slice("s", gpus(2)))
    alone = run([a_claim(request)], pools, DeviceUsage())
    beside = run([a_claim(request), a_claim(a_request("other"))], pools, DeviceUsage())
    assert isinstance(alone, Allocated)
    assert isinstance(beside, Allocated)
    assert [pick.request for pick in alone.claims[0]] == ["r/two", "r/two"]
    assert [pick.request for pick in beside.claims[0]] == ["r/one"]


def test_twins_of_a_device_that_led_nowhere_cost_no_steps() -> None:
    claim = a_claim(a_request("r", count=8), a_request("other", "model-a", count=1))
    devices = [device | {"attributes": {"model": {"string": "b"}}} for device in gpus(32)]
    budget = Budget(10**6)
    request = claim_request(claim.spec.devices, CLASSES)
    outcome = allocate([request], pools_of(a_slice("s", devices)).at(a_node()), DeviceUsage(), matches, budget)
    assert outcome == NotAllocated("cannot allocate all claims")
    assert budget.spent < 100


def test_a_search_that_runs_out_of_steps_has_decided_nothing() -> None:
    outcome = run([a_claim(a_request("r", count=3))], pools_of(a_slice("s", gpus(4))), DeviceUsage(), steps=2)
    assert outcome == NotAllocated("cannot allocate all claims", decided=False)


def test_nothing_of_an_incomplete_pool_is_allocated_and_a_request_for_all_says_so() -> None:
    pools = pools_of(a_slice("s", gpus(2), pool={"name": "p", "resourceSliceCount": 2}), a_slice("t", gpus(1)))
    assert names(run([a_claim(a_request("r"))], pools, DeviceUsage())) == [["d0"]]
    assert isinstance(run([a_claim(a_request("r", count=2))], pools, DeviceUsage()), NotAllocated)
    everything = run([a_claim(a_request("r", allocationMode="All"))], pools, DeviceUsage())
    assert everything == NotAllocated(
        "request r: asks for all devices, but resource pool p is currently being updated", error=True, claim=0
    )


def test_an_invalid_pool_is_an_error_only_where_nothing_else_serves() -> None:
    broken = a_slice("s", [*gpus(1), *gpus(1)])
    assert run([a_claim(a_request("r"))], pools_of(broken), DeviceUsage()) == NotAllocated(
        "invalid resource pools were encountered", error=True
    )
    assert names(run([a_claim(a_request("r"))], pools_of(broken, a_slice("t", gpus(1))), DeviceUsage())) == [["d0"]]


def test_access_for_administration_takes_a_device_in_use_and_leaves_it_to_others() -> None:
    pools, usage = pools_of(a_slice("s", gpus(1))), DeviceUsage()
    usage.take(DeviceId(DRIVER, "s", "d0"), None)
    assert isinstance(run([a_claim(a_request("r"))], pools, usage), NotAllocated)
    assert names(run([a_claim(a_request("r", adminAccess=True))], pools, usage)) == [["d0"]]
    two = [a_claim(a_request("r", adminAccess=True)), a_claim(a_request("r"))]
    assert names(run(two, pools, DeviceUsage())) == [["d0"], ["d0"]]


def test_an_error_of_a_selector_ends_the_search() -> None:
    def fails(selector: Selector, device: Device) -> bool:
        raise SelectorError("no such key: model")

    request = claim_request(a_claim(a_request("r", "model-a")).spec.devices, CLASSES)
    outcome = allocate([request], pools_of(a_slice("s", gpus(1))).at(a_node()), DeviceUsage(), fails, Budget(100))
    assert outcome == NotAllocated("request r: no such key: model", error=True, claim=0)


def test_a_claim_without_requests_needs_no_device() -> None:
    assert names(run([a_claim()], Pools(), DeviceUsage())) == [[]]


def test_equal_claims_may_have_shares_of_one_device() -> None:
    device = {
        "name": "d",
        "attributes": {"model": {"string": "a"}},
        "capacity": {"memory": {"value": "8"}},
        "allowMultipleAllocations": True,
    }
    pools = Pools()
    pools.set_slice(a_slice("a", [device]))
    claim = a_claim(a_request("r", capacity={"requests": {"memory": "4"}}))
    assert names(run([claim, claim], pools, DeviceUsage())) == [["d"], ["d"]]
    assert isinstance(run([claim, claim, claim], pools, DeviceUsage()), NotAllocated)
