"""A claim that several pods use gets devices with which all of them can be placed, if there are any."""

from __future__ import annotations

import msgspec

from muster.api.devices import ResourceSlice
from muster.scheduler.interface import decisions as d
from tests.build.devices import DRIVER, a_class, a_gpu_pod, a_request, a_slice, own_claim, shared_claim, using_claim
from tests.build.objects import a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld

MODEL = f"device.attributes['{DRIVER}'].model"


def a_domain(rack: str, *names: str) -> ResourceSlice:
    """Devices that all nodes of a rack can use."""
    term = {"matchExpressions": [{"key": "example.com/rack", "operator": "In", "values": [rack]}]}
    devices = [{"name": name, "attributes": {"model": {"string": "domain"}}} for name in names]
    return a_slice(f"rack-{rack}", devices, nodeSelector={"nodeSelectorTerms": [term]})


def racks(*sizes: int, cpu: int = 2) -> TestWorld:
    nodes = [a_node(f"r{rack}-{at}", cpu=cpu, rack=f"r{rack}") for rack, size in enumerate(sizes) for at in range(size)]
    world = TestWorld(nodes).add(a_class("domain", f"{MODEL} == 'domain'"), a_class("gpu", f"{MODEL} == 'gpu'"))
    return world.add(*(a_domain(f"r{rack}", "nvlink") for rack in range(len(sizes))))


def gang(world: TestWorld, size: int, **fields: float) -> TestWorld:
    world.add(shared_claim("nvlink", a_request("r", "domain")), a_gang("g", min_count=size))
    return world.add(*(using_claim(f"g-{at}", "nvlink", "g", **fields) for at in range(size)))


def pools(world: TestWorld) -> list[str]:
    found = [each.allocation for each in world.log if isinstance(each, d.AllocateClaim)]
    return [result["pool"] for one in found if one is not None for result in one["devices"]["results"]]


def message_of(world: TestWorld, pod: str) -> str:
    conditions = world.pod(pod).status.conditions or ()
    return next(condition.message for condition in conditions if condition.type == "PodScheduled")


def test_the_one_domain_with_room_is_found_whichever_it_is() -> None:
    for roomy in range(4):
        world = racks(*(4 if rack == roomy else 2 for rack in range(4)))
        gang(world, 8).run()
        assert pools(world) == [f"rack-r{roomy}"]
        assert set(world.bound().values()) == {f"r{roomy}-{at}" for at in range(4)}


def test_the_smallest_domain_that_suffices_is_taken() -> None:
    world = gang(racks(4, 2, 3), 4).run()
    assert pools(world) == ["rack-r1"]


def test_without_such_a_domain_the_gang_is_proven_not_to_fit() -> None:
    world = gang(racks(2, 2, 2), 5)
    world.run()
    assert world.bound() == {}
    assert "may exist" not in message_of(world, "g-0")
    world.add(a_node("r1-9", cpu=2, rack="r1")).run()
    assert pools(world) == ["rack-r1"]


def test_several_claims_of_a_gang_are_chosen_together() -> None:
    world = racks(2, 2).add(a_domain("r1", "nvlink", "fabric"), a_class("fabric", f"{MODEL} == 'fabric'"))
    devices = [{"name": "f", "attributes": {"model": {"string": "fabric"}}}]
    world.add(a_slice("fabric", devices, nodeName="r1-1"))
    world.add(shared_claim("nvlink", a_request("r", "domain")), shared_claim("fabric", a_request("r", "fabric")))
    world.add(a_gang("g", min_count=2), using_claim("g-0", "nvlink", "g"))
    both = using_claim("g-1", "nvlink", "g")
    entry = (using_claim("g-1", "fabric", "g").spec.resource_claims or ())[0]
    entries = (*(both.spec.resource_claims or ()), msgspec.structs.replace(entry, name="fabric"))
    world.add(msgspec.structs.replace(both, spec=msgspec.structs.replace(both.spec, resource_claims=entries))).run()
    assert world.bound()["g-1"] == "r1-1"
    assert sorted(pools(world)) == ["fabric", "rack-r1"]


def test_a_shared_device_of_one_node_is_taken_where_all_its_users_fit() -> None:
    world = TestWorld([a_node("n0", cpu=1), a_node("n1", cpu=3), a_node("n2", cpu=2)]).add(a_class("gpu"))
    world.add(*(a_slice(f"n{at}", [{"name": "g"}], nodeName=f"n{at}") for at in range(3)))
    world.add(shared_claim("x"), a_gang("g", min_count=3))
    world.add(*(using_claim(f"g-{at}", "x", "g", cpu=1) for at in range(3))).run()
    assert set(world.bound().values()) == {"n1"}


def test_a_shared_claim_leaves_the_device_that_another_claim_of_the_gang_needs() -> None:
    world = TestWorld([a_node("n0", cpu=8)]).add(a_class("gpu"), a_class("a", f"{MODEL} == 'a'"))
    devices = [{"name": model, "attributes": {"model": {"string": model}}} for model in "ab"]
    world.add(a_slice("n0", devices, nodeName="n0"), shared_claim("x"), a_gang("g", min_count=3))
    world.add(own_claim("g-2", a_request("r", "a")), using_claim("g-0", "x", "g"), using_claim("g-1", "x", "g"))
    world.add(a_gpu_pod("g-2", "g"), a_pod("other")).run()
    assert len([pod for pod in world.bound() if pod.startswith("g-")]) == 3


def test_a_set_that_only_seems_to_have_room_is_left_for_the_next() -> None:
    world = racks(2, 3, cpu=3)
    world.add(shared_claim("nvlink", a_request("r", "domain")), a_gang("g", min_count=4))
    for at, cpu in enumerate((2, 2, 2, 1)):  # seats of each shape alone add up in the smaller rack
        world.add(using_claim(f"g-{at}", "nvlink", "g", cpu=cpu))
    world.run()
    assert pools(world) == ["rack-r1"]
