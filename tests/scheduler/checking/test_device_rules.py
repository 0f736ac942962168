"""Devices that were chosen wrongly are refused, whatever the search believes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.cache.device_choice import choose_devices
from muster.scheduler.cache.devices import Promise
from muster.scheduler.checking.device_rules import allocation_fault
from muster.scheduler.devices.allocator import Pick
from tests.build.devices import DRIVER, a_class, a_gpu_pod, a_request, a_slice, own_claim, shared_claim, using_claim
from tests.build.objects import a_node
from tests.build.scheduler import TestWorld

KEY = ("ns", "p-gpu")
GOOD: dict[str, Any] = {
    "attributes": {"good": {"bool": True}, "root": {"int": 1}},
    "capacity": {"memory": {"value": "8"}},
}
BAD: dict[str, Any] = {
    "attributes": {"good": {"bool": False}, "root": {"int": 2}},
    "capacity": {"memory": {"value": "2"}},
}

Chosen = dict[tuple[str, str], Promise]


def a_world(*requests: dict[str, Any], **claim: Any) -> TestWorld:
    world = TestWorld([a_node("n0"), a_node("n1")])
    world.add(a_class("gpu"), a_class("good", f"device.attributes['{DRIVER}'].?good.orValue(false)"))
    devices = [{"name": "a", **GOOD}, {"name": "b", **GOOD}, {"name": "c", **BAD}, {"name": "d"}]
    shared = {"name": "s", "allowMultipleAllocations": True, **GOOD}
    tainted = {"name": "t", "taints": [{"key": "bad", "effect": "NoSchedule"}], **GOOD}
    drawing = [
        {"name": name, "consumesCounters": [{"counterSet": "set", "counters": {"parts": {"value": "3"}}}], **GOOD}
        for name in ("x", "y")
    ]
    counters = [{"name": "set", "counters": {"parts": {"value": "4"}}}]
    pool = {"name": "n0", "resourceSliceCount": 2}
    world.add(a_slice("n0", [*devices, shared, tainted, *drawing], pool=pool, nodeName="n0"))
    world.add(a_slice("n0-counters", [], pool=pool, nodeName="n0", sharedCounters=counters))
    return world.add(own_claim("p", *requests, **claim), a_gpu_pod("p"))


def chosen(world: TestWorld, *names: str, **consumed: int) -> Chosen:
    """Devices by name for the first request of the claim, as if the search had picked them."""
    devices = world.scheduler.state.cluster.devices
    request = devices.claims.request(KEY)
    way = request.requests[0][0]
    found = {device.id.name: device for device in devices.nodes.pools(0)[0].devices}
    shares = {f"{DRIVER}/{name}": amount * 10**9 for name, amount in consumed.items()} or None
    return {KEY: Promise(tuple(Pick(way.name, found[name], way, shares) for name in names), "n0", 1)}


def fault(world: TestWorld, choice: Chosen, slot: int = 0) -> str | None:
    picks = {key: promise.picks for key, promise in choice.items()}
    return allocation_fault(world.scheduler.state.cluster, picks, [(world.pod("p"), slot)])


def test_what_the_search_chooses_is_accepted() -> None:
    world = a_world(a_request("r", "good", count=2))
    choice = choose_devices(world.scheduler.state.cluster.devices, [(world.pod("p"), 0)])
    assert choice is not None
    assert fault(world, dict(choice)) is None


def in_use(world: TestWorld) -> None:
    result = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "a"}
    world.add(shared_claim("other", allocation={"devices": {"results": [result]}}))


def shares_in_use(world: TestWorld) -> None:
    result = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "s", "shareID": "1"}
    result |= {"consumedCapacity": {f"{DRIVER}/memory": "5"}}  # type: ignore[dict-item]
    world.add(shared_claim("other", allocation={"devices": {"results": [result]}}))


def promised(world: TestWorld) -> None:
    world.add(shared_claim("other"), using_claim("q", "other"))
    world.scheduler.state.cluster.devices.promised[("ns", "other")] = chosen(world, "a")[KEY]


def nothing(world: TestWorld) -> None:
    pass


ONE, TWO, GOOD_ONE = a_request("r"), a_request("r", count=2), a_request("r", "good")
MATCH = [{"matchAttribute": f"{DRIVER}/root"}]
DISTINCT = [{"distinctAttribute": f"{DRIVER}/root"}]
BIG = a_request("r", capacity={"requests": {"memory": "4"}})


@pytest.mark.parametrize(
    ("request_", "constraints", "names", "before", "text"),
    [
        (ONE, [], "a", in_use, "is in use"),
        (ONE, [], "a", promised, "is in use"),
        (TWO, [], "aa", nothing, "is in use"),
        (TWO, [], "a", nothing, "has 1 of 2 devices"),
        (ONE, [], "", nothing, "is not satisfied in one way"),
        (GOOD_ONE, [], "c", nothing, "is not what a selector asks for"),
        (GOOD_ONE, [], "d", nothing, "is not what a selector asks for"),
        (ONE, [], "t", nothing, "taint that is not tolerated"),
        (TWO, MATCH, "ac", nothing, f"devices differ in {DRIVER}/root"),
        (TWO, MATCH, "ad", nothing, f"a device has no attribute {DRIVER}/root"),
        (TWO, DISTINCT, "ab", nothing, f"devices have the same {DRIVER}/root"),
        (BIG, [], "c", nothing, "has too little memory"),
        (TWO, [], "xy", nothing, "the counters of pool n0 are exceeded"),
    ],
)
def test_what_may_not_be_chosen_is_refused(
    request_: dict[str, Any], constraints: list[Any], names: str, before: Callable[[TestWorld], None], text: str
) -> None:
    world = a_world(request_, constraints=constraints)
    before(world)
    assert text in (fault(world, chosen(world, *names)) or "")


def test_shares_must_fit_beside_those_of_others() -> None:
    world = a_world(BIG)
    shares_in_use(world)
    assert "has too little left" in (fault(world, chosen(world, "s", memory=4)) or "")
    assert fault(a_world(BIG), chosen(a_world(BIG), "s", memory=4)) is None


def test_a_node_must_reach_the_devices() -> None:
    world = a_world(ONE)
    assert "n1 cannot use the devices of the claim p-gpu" in (fault(world, chosen(world, "a"), slot=1) or "")


def test_a_device_that_is_no_longer_published_is_refused() -> None:
    world = a_world(ONE)
    choice = chosen(world, "a")
    (pick,) = choice[KEY].picks
    gone = replace(pick, device=replace(pick.device, id=pick.device.id._replace(name="gone")))
    assert "is not published" in (fault(world, {KEY: replace(choice[KEY], picks=(gone,))}) or "")
