"""EndpointSlices follow the pods that a Service selects."""

from __future__ import annotations

from typing import Any

from muster.api.resources import ENDPOINT_SLICES, PODS, SERVICES
from tests.controllers.conftest import World


async def service(world: World, **spec: Any) -> Any:
    body = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    made = await world.create(SERVICES, "web", spec=body)
    await world.advance(0.1)
    return made


async def pod(world: World, name: str, address: str = "10.0.0.1", *, ready: bool = True, **spec: Any) -> None:
    await world.pod(name, metadata={"labels": {"app": "web"}}, node="n", **spec)
    status = {"podIP": address, "podIPs": [{"ip": address}]}
    await world.client.patch(PODS, name, {"status": status}, "default", subresource="status")
    await world.phase(name, "Running", ready=ready)
    await world.advance(0.1)


async def slices(world: World) -> list[Any]:
    return (await world.client.list(ENDPOINT_SLICES, "default")).items


async def test_ready_pods_are_endpoints_of_their_service(world: World):
    await world.start("endpointslice-controller")
    await world.node("n", metadata={"labels": {"topology.kubernetes.io/zone": "z"}})
    made = await service(world)
    assert [each.get("endpoints") or [] for each in await slices(world)] == [[]]

    await pod(world, "p")
    await pod(world, "q", "10.0.0.2", ready=False)
    (found,) = await slices(world)
    labels = found["metadata"]["labels"]
    assert labels["kubernetes.io/service-name"] == "web"
    assert labels["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"
    assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    assert [(each["port"], each["protocol"]) for each in found["ports"]] == [(8080, "TCP")]
    ready = {each["addresses"][0]: each["conditions"]["ready"] for each in found["endpoints"]}
    assert ready == {"10.0.0.1": True, "10.0.0.2": False}
    assert {each["zone"] for each in found["endpoints"]} == {"z"}

    await world.phase("p", "Failed")
    await world.advance(0.1)
    (found,) = await slices(world)
    assert [each["addresses"] for each in found["endpoints"]] == [["10.0.0.2"]]


async def test_named_ports_are_those_of_each_pod(world: World):
    await world.start("endpointslice-controller")
    await service(world, ports=[{"name": "http", "port": 80, "targetPort": "web"}])
    for number, (name, port) in enumerate((("p", 8080), ("q", 9090))):
        container = {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}]}
        await pod(world, name, f"10.0.0.{number}", containers=[container])
    found = {
        each["ports"][0]["port"]: each["endpoints"][0]["addresses"][0] for each in await slices(world) if each["ports"]
    }
    assert found == {8080: "10.0.0.0", 9090: "10.0.0.1"}


async def test_a_slice_has_at_most_a_hundred_endpoints(world: World):
    await world.start("endpointslice-controller")
    for number in range(120):
        await world.pod(f"p{number}", metadata={"labels": {"app": "web"}}, node="n")
        status = {"podIP": f"10.0.1.{number}", "phase": "Running"}
        await world.client.patch(PODS, f"p{number}", {"status": status}, "default", subresource="status")
    await service(world)
    await world.advance(1)
    assert sorted(len(each["endpoints"]) for each in await slices(world)) == [20, 100]


async def test_services_without_a_selector_and_slices_of_others_are_left_alone(world: World):
    await world.start("endpointslice-controller")
    await world.create(SERVICES, "manual", spec={"ports": [{"port": 80}]})
    labels = {"kubernetes.io/service-name": "web"}
    own = {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": []}
    await world.create(ENDPOINT_SLICES, "mine", metadata={"labels": labels}, **own)
    await service(world)
    assert sorted(each["metadata"]["name"].split("-")[0] for each in await slices(world)) == ["mine", "web"]


async def test_a_slice_that_is_deleted_comes_back(world: World):
    await world.start("endpointslice-controller")
    await service(world)
    await pod(world, "p")
    (found,) = await slices(world)
    await world.client.delete(ENDPOINT_SLICES, found["metadata"]["name"], "default")
    await world.advance(0.2)
    (again,) = await slices(world)
    assert again["metadata"]["name"] != found["metadata"]["name"]
    assert again["endpoints"][0]["addresses"] == ["10.0.0.1"]


async def test_a_terminating_pod_serves_but_is_not_ready(world: World):
    await world.start("endpointslice-controller")
    await service(world)
    await pod(world, "p")
    await world.client.delete(PODS, "p", "default")
    await world.advance(0.2)
    (found,) = await slices(world)
    assert found["endpoints"][0]["conditions"] == {"ready": False, "serving": True, "terminating": True}
