"""DynamicResources: gangs and pods get the devices that their claims ask for, or wait and say why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.devices import ResourceClaimStatus
from muster.api.types import Pod
from muster.scheduler.interface import decisions as d
from tests.build.devices import (
    DRIVER,
    a_class,
    a_gpu_gang,
    a_gpu_pod,
    a_request,
    a_slice,
    gpus,
    gpus_of,
    own_claim,
    shared_claim,
    using_claim,
)
from tests.build.objects import a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld


def a_world(nodes: int = 2, each: int = 4, **labels: str) -> TestWorld:
    world = TestWorld([a_node(f"n{number}", cpu=64, **labels) for number in range(nodes)])
    world.add(a_class("gpu", f"device.driver == '{DRIVER}'"))
    return world.add(*(gpus_of(f"n{number}", each) for number in range(nodes)))


def devices_of(world: TestWorld) -> dict[str, list[str]]:
    """The devices of every claim that has some, as pool/name."""
    return {
        decision.claim.name: [f"{each['pool']}/{each['device']}" for each in decision.allocation["devices"]["results"]]
        for decision in world.log
        if isinstance(decision, d.AllocateClaim) and decision.allocation is not None
    }


def message_of(world: TestWorld, pod: str) -> str:
    conditions = world.pod(pod).status.conditions or ()
    return next(condition.message for condition in conditions if condition.type == "PodScheduled")


def test_a_gang_gets_a_device_for_each_pod_or_none_at_all() -> None:
    world = a_world()
    a_gpu_gang(world, "g", 8)
    world.run()
    assert len(world.bound()) == 8
    used = [device for found in devices_of(world).values() for device in found]
    assert sorted(used) == [f"n{node}/gpu-{number}" for node in range(2) for number in range(4)]
    assert all(
        world.bound()[claim.removesuffix("-gpu")] == found[0].split("/")[0]
        for claim, found in devices_of(world).items()
    )


def test_a_gang_that_lacks_one_device_waits_with_nothing_allocated_and_starts_when_one_appears() -> None:
    world = a_world()
    a_gpu_gang(world, "g", 9)
    world.run()
    assert world.bound() == {}
    assert devices_of(world) == {}
    assert "the cluster has 8 of 9 seats" in message_of(world, "g-0")
    assert "2 cannot allocate all claims" in message_of(world, "g-0")
    world.add(a_node("n9", cpu=64), gpus_of("n9", 1)).run()
    assert len(world.bound()) == 9


def test_devices_of_a_claim_are_free_again_when_it_has_none() -> None:
    world = a_world(1, 1)
    world.add(own_claim("a"), a_gpu_pod("a")).run()
    world.add(own_claim("b"), a_gpu_pod("b")).run()
    assert set(world.bound()) == {"a"}
    world.remove("Pod", "a")
    world.run()
    assert set(world.bound()) == set()  # its claim still has the device
    claim = world.get("ResourceClaim", "a-gpu")
    world.add(msgspec.structs.replace(claim, status=ResourceClaimStatus())).run()
    assert set(world.bound()) == {"b"}


def test_pods_of_different_shapes_on_one_node_choose_their_devices_together() -> None:
    world = TestWorld([a_node("n0", cpu=64)]).add(
        a_class("gpu"), a_class("big", "device.attributes['gpu.example.com'].big")
    )
    devices = [
        {"name": "a", "attributes": {"big": {"bool": True}}},
        {"name": "b", "attributes": {"big": {"bool": False}}},
    ]
    world.add(a_slice("n0", devices, nodeName="n0"), a_gang("g", min_count=2))
    world.add(
        own_claim("g-0"), own_claim("g-1", a_request("r", "big")), a_gpu_pod("g-0", "g"), a_gpu_pod("g-1", "g", cpu=2)
    )
    world.run()
    assert devices_of(world) == {"g-0-gpu": ["n0/b"], "g-1-gpu": ["n0/a"]}


def test_a_claim_that_pods_share_gets_its_devices_once() -> None:
    world = a_world()
    world.add(shared_claim("shared"), a_gang("g", min_count=3))
    world.add(*(using_claim(f"g-{number}", "shared", "g") for number in range(3))).run()
    assert len(set(world.bound().values())) == 1, "a device of one node keeps all its users there"
    assert list(devices_of(world)) == ["shared"]
    consumers = [each.consumer.name for each in world.log if isinstance(each, d.AllocateClaim)]
    assert consumers == ["g-0", "g-1", "g-2"]


def test_a_device_that_a_rack_shares_keeps_a_gang_in_the_rack() -> None:
    nodes = [a_node(f"n{number}", cpu=2, rack=f"r{number // 2}") for number in range(6)]
    world = TestWorld(nodes).add(a_class("gpu"))
    for rack in ("r1", "r2"):
        selector = {"matchExpressions": [{"key": "example.com/rack", "operator": "In", "values": [rack]}]}
        world.add(a_slice(rack, [{"name": "domain"}], nodeSelector={"nodeSelectorTerms": [selector]}))
    world.add(a_pod("busy", node="n2", cpu=2), shared_claim("domain"), a_gang("g", min_count=4))
    world.add(*(using_claim(f"g-{number}", "domain", "g") for number in range(4))).run()
    assert set(world.bound().values()) == {"n2", "n4", "n5"}
    assert {name: node for name, node in world.bound().items() if name.startswith("g-")}.keys() == {
        f"g-{n}" for n in range(4)
    }
    assert devices_of(world) == {"domain": ["r2/domain"]}


def with_entry(**entry: Any) -> Pod:
    return a_pod("p", resourceClaims=[{"name": "gpu", **entry}])


@pytest.mark.parametrize(
    ("pod", "objects", "text"),
    [
        (with_entry(resourceClaimName="x"), [], 'resourceclaim "x" not found'),
        (
            with_entry(resourceClaimTemplateName="t"),
            [],
            'the ResourceClaim for "gpu" has not been created yet from the ResourceClaimTemplate "t"',
        ),
        (a_gpu_pod("p"), [own_claim("q")], 'resourceclaim "p-gpu" not found'),
        (
            with_entry(resourceClaimName="x"),
            [shared_claim("x", a_request("r", "other"))],
            "claim ns/x: request r: device class other does not exist",
        ),
        (
            with_entry(resourceClaimName="x"),
            [shared_claim("x", a_request("r", selectors=[{"cel": {"expression": "device.attributes['a.b'].c == 1"}}]))],
            "1 claim ns/x: request r: selector #0 (device.attributes['a.b'].c == 1) on device gpu.example.com/n0/gpu-0:"
            " CEL runtime error: no such key: c",
        ),
    ],
)
def test_what_is_missing_is_said_on_the_pod(pod: Pod, objects: list[Any], text: str) -> None:
    world = a_world(1).add(*objects, pod).run()
    assert text in message_of(world, "p")
    assert world.bound() == {}


def test_a_claim_or_a_class_that_appears_wakes_the_pod() -> None:
    world = a_world(1).add(a_gpu_pod("p")).run()
    world.add(own_claim("p", a_request("r", "late"))).run()
    assert world.bound() == {}
    world.add(a_class("late", "device.driver.endsWith('example.com')")).run()
    assert world.bound() == {"p": "n0"}


def test_an_allocated_claim_decides_where_its_pod_goes() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    world = a_world().add(shared_claim("x", allocation=allocation), using_claim("p", "x")).run()
    assert world.bound() == {"p": "n1"}
    assert [each.allocation for each in world.log if isinstance(each, d.AllocateClaim)] == [None]
    world.add(a_pod("full", node="n1", cpu=63), using_claim("q", "x")).run()
    assert "1 resourceclaim not available on the node" in message_of(world, "q")


def test_eviction_frees_devices_for_a_pod_of_higher_priority() -> None:
    world = a_world(1, 2)
    for name in ("a", "b"):
        world.add(own_claim(name), a_gpu_pod(name)).run()
    world.add(own_claim("high"), a_gpu_pod("high", priority=10)).run()
    evicted = [each.pod.name for each in world.log if isinstance(each, d.Evict)]
    assert len(evicted) == 1, evicted
    claim = world.get("ResourceClaim", f"{evicted[0]}-gpu")
    world.add(msgspec.structs.replace(claim, status=ResourceClaimStatus())).run()
    assert world.bound()["high"] == "n0"


def test_a_bind_that_is_refused_gives_the_devices_back() -> None:
    world = a_world(1, 1)
    world.add(own_claim("a"), a_gpu_pod("a"))
    state = world.scheduler.state
    world.scheduler.next(0.0)
    assert state.cluster.devices.promised
    world.remove("Pod", "a")
    assert not state.cluster.devices.promised


def test_pods_without_claims_are_not_concerned() -> None:
    world = TestWorld([a_node("n0")]).add(a_slice("n0", gpus(1), nodeName="n0"), a_pod("p")).run()
    assert world.bound() == {"p": "n0"}


def allocated_to(world: TestWorld, pod: str, node: str) -> None:
    """Give the claim of a pod a device of a node, as a scheduler did that crashed before the bind."""
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": "gpu-0"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    status = {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"pod-{pod}"}],
    }
    world.add(msgspec.structs.replace(own_claim(pod), status=msgspec.convert(status, ResourceClaimStatus)))


def test_a_crash_after_the_claims_were_written_leaves_the_gang_on_their_devices() -> None:
    world = a_world()
    world.add(a_gang("g", min_count=2), own_claim("g-1"), a_gpu_pod("g-0", "g"), a_gpu_pod("g-1", "g"))
    allocated_to(world, "g-0", "n1")
    assert world.run().bound()["g-0"] == "n1"


def test_devices_that_keep_a_gang_from_fitting_anywhere_are_taken_back() -> None:
    world = a_world()
    world.add(a_pod("busy", node="n1", cpu=64), a_gang("g", min_count=2), own_claim("g-1"))
    allocated_to(world, "g-0", "n1")
    world.add(a_gpu_pod("g-0", "g"), a_gpu_pod("g-1", "g")).run()
    assert [each.claim.name for each in world.log if isinstance(each, d.DeallocateClaim)] == ["g-0-gpu"]
    assert {world.bound()[name] for name in ("g-0", "g-1")} == {"n0"}


def test_devices_that_serve_somebody_who_runs_are_not_taken_back() -> None:
    world = a_world().add(shared_claim("x"), using_claim("a", "x")).run()
    node = world.bound()["a"]
    world.add(a_pod("busy", node=node, cpu=63), using_claim("b", "x")).run()
    assert "b" not in world.bound()
    assert not any(isinstance(each, d.DeallocateClaim) for each in world.log)
