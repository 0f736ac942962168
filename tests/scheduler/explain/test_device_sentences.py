"""What an explanation says of devices: how many match, who has them, and which pools cannot be used."""

from __future__ import annotations

import pytest

from muster.scheduler.explain.explain import explain, find
from muster.views.failures import ViewFailure
from muster.views.topology import topology
from tests.build.devices import DRIVER, a_class, a_gpu_gang, a_gpu_pod, a_request, a_slice, gpus_of, own_claim
from tests.build.objects import a_node, a_pod
from tests.build.scheduler import TestWorld

MODEL = f"device.attributes['{DRIVER}'].model"


def a_world(nodes: int = 3, each: int = 2) -> TestWorld:
    world = TestWorld([a_node(f"n{at}", cpu=64, rack=f"r{at % 2}") for at in range(nodes)])
    world.add(a_class("gpu", f"device.driver == '{DRIVER}'"))
    return world.add(*(gpus_of(f"n{at}", each, attributes={"model": {"string": "a"}}) for at in range(nodes)))


def sentences(world: TestWorld, pod: str) -> tuple[str, ...]:
    target = find(world.scheduler, "Pod", "ns", pod)
    assert target is not None
    return explain(world.scheduler, target).devices


def test_devices_that_others_have_are_counted_by_who_has_them() -> None:
    world = a_world()
    a_gpu_gang(world, "training", 5)
    world.run()
    world.add(own_claim("p", a_request("r", count=2)), a_gpu_pod("p")).run()
    (found,) = sentences(world, "p")
    assert "request r (class gpu): 6 devices match, 1 of them free" in found
    assert "taken by podgroup ns/training (5)" in found


def test_the_expression_that_nothing_matches_is_shown_with_the_nodes() -> None:
    world = a_world()
    selectors = [{"cel": {"expression": f"{MODEL} == 'b'"}}]
    world.add(own_claim("p", a_request("r", selectors=selectors)), a_gpu_pod("p")).run()
    assert sentences(world, "p") == (f"request r (class gpu): no device matches `{MODEL} == 'b'` on 3 of 3 nodes",)


def test_an_incomplete_pool_is_named_with_what_is_missing() -> None:
    world = a_world(1, 1)
    world.add(
        a_node("n7", cpu=64), a_slice("n7", [{"name": "g"}], {"name": "n7", "resourceSliceCount": 3}, nodeName="n7")
    )
    world.add(own_claim("p", a_request("r", count=2)), a_gpu_pod("p")).run()
    assert "cannot be used: the pool n7 (being updated: 1 of 3 slices)" in sentences(world, "p")


def test_devices_with_taints_and_expressions_with_faults_are_told() -> None:
    world = TestWorld([a_node("n0", cpu=64)]).add(a_class("gpu"))
    world.add(gpus_of("n0", 2, taints=[{"key": "bad", "effect": "NoSchedule"}]))
    world.add(own_claim("p"), a_gpu_pod("p")).run()
    assert sentences(world, "p") == (
        "request r (class gpu): 2 devices match, 0 of them free; 2 with taints that it does not tolerate",
    )
    wrong = [{"cel": {"expression": "device.attributes['a.b'].c == 1"}}]
    world.add(own_claim("q", a_request("r", selectors=wrong)), a_gpu_pod("q")).run()
    (found,) = sentences(world, "q")
    assert "selector #0 (device.attributes['a.b'].c == 1) on device gpu.example.com/n0/gpu-0" in found


def test_pods_without_claims_have_no_sentence() -> None:
    world = a_world().add(a_pod("p", cpu=65)).run()
    assert sentences(world, "p") == ()


def test_the_topology_counts_devices_of_a_class() -> None:
    world = a_world()
    a_gpu_gang(world, "training", 3)
    world.run()
    found = topology(world.scheduler, ("example.com/rack",), device_class="gpu")
    assert found.total_seats == 3
    assert sum(int(place.used["gpu"].split("/")[0]) for place in found.places) == 3
    assert [place.used["gpu"].split("/")[1] for place in found.places] == ["4", "2"]
    with pytest.raises(ViewFailure, match='there is no DeviceClass "other"'):
        topology(world.scheduler, device_class="other")


def test_a_device_of_several_nodes_counts_once() -> None:
    world = TestWorld([a_node(f"n{at}", cpu=8) for at in range(3)]).add(a_class("gpu"))
    world.add(a_slice("fabric", [{"name": "f"}], allNodes=True)).run()
    assert topology(world.scheduler, device_class="gpu").total_seats == 1
