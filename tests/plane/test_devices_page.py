"""The examples of docs/devices.md, each on a cluster as the page starts it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from muster.api.resources import (
    JOBS,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from muster.client.protocol import Client
from muster.nodes.simulated_devices import drivers_of_file
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
RESOURCES: dict[str, Resource] = {
    "ResourceClaim": RESOURCE_CLAIMS,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES,
    "PodGroup": POD_GROUPS._replace(version="v1beta1"),
    "Pod": PODS,
    "Job": JOBS,
}

Obj = dict[str, Any]


def example(heading: str, fence: str = "```yaml") -> list[Obj]:
    """The objects of the first block below a heading."""
    below = PAGE.read_text().partition(f"# {heading}\n")[2]
    return list(yaml.safe_load_all(below.partition(f"{fence}\n")[2].partition("```")[0]))


@asynccontextmanager
async def cluster(*devices: str, per_rack: int = 2) -> AsyncIterator[Client]:
    nodes = NodeOptions(4, nodes_per_rack=per_rack, devices=devices)
    async with Plane(Options(https=False, nodes=nodes, freeze=False)) as plane:
        yield plane.client


@asynccontextmanager
async def with_file() -> AsyncIterator[Client]:
    (content,) = example("Devices as a file says them", "```")
    async with cluster(*drivers_of_file(content)) as client:
        yield client


async def run(client: Client, heading: str, pods: int) -> tuple[list[Obj], list[Obj]]:
    """Create an example's objects; its pods and claims once so many pods run."""
    for obj in example(heading):
        await client.create(RESOURCES[obj["kind"]], obj, "default")
    for _ in range(300):
        found = (await client.list(PODS)).items
        if sum((pod.get("status") or {}).get("phase") == "Running" for pod in found) == pods:
            return found, (await client.list(RESOURCE_CLAIMS)).items
        await asyncio.sleep(0.1)
    raise AssertionError([pod.get("status") for pod in (await client.list(PODS)).items])


def devices(claim: Obj) -> list[str]:
    return [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]


async def test_a_gpu_with_its_nic() -> None:
    async with cluster("gpu:8", "nic:2") as client:
        _, claims = await run(client, "A GPU with its NIC", 4)
    assert len(claims) == 4
    for claim in claims:
        roots = {int(name.split("-")[1]) // 2 for name in devices(claim)}
        assert len(devices(claim)) == 3
        assert len(roots) == 1, "two GPUs and a NIC of one PCIe root"


async def test_a_gpu_by_attribute() -> None:
    async with with_file() as client:
        pods, (claim,) = await run(client, "A GPU by attribute", 1)
    assert claim["status"]["reservedFor"][0]["name"] == "notebook"
    assert devices(claim)[0].startswith("gpu-")
    assert claim["status"]["allocation"]["devices"]["results"][0]["pool"] == pods[0]["spec"]["nodeName"]


async def test_a_part_of_a_gpu() -> None:
    async with with_file() as client:
        pods, claims = await run(client, "A part of a GPU", 8)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0"}
    assert sorted(name for claim in claims for name in devices(claim)) == [
        f"mig-{device}-part-{part}" for device in range(2) for part in range(4)
    ]


async def test_a_gang_in_one_nvlink_domain() -> None:
    async with with_file() as client:
        pods, (claim,) = await run(client, "A gang in one NVLink domain", 4)
    used = {pod["spec"]["nodeName"] for pod in pods}
    assert used in ({"node-0", "node-1"}, {"node-2", "node-3"})
    (consumer,) = claim["status"]["reservedFor"]
    assert (consumer["resource"], consumer["name"]) == ("podgroups", "large")


async def test_a_bind_waits_for_the_conditions_of_its_device() -> None:
    device = {"name": "d", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    fabric = {"driver": "gpu.example.com", "pool": pool, "allNodes": True, "devices": [device]}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
    async with cluster("gpu:1") as client:
        for each in (await client.list(RESOURCE_SLICES)).items:
            await client.delete(RESOURCE_SLICES, each["metadata"]["name"])
        await client.create(RESOURCE_SLICES, {"metadata": {"name": "fabric"}, "spec": fabric})
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        await client.create(RESOURCE_CLAIMS, claim, "default")
        entry = {"name": "gpu", "resourceClaimName": "c"}
        spec = {"resourceClaims": [entry], "containers": [{"name": "c", "image": "i"}]}
        await client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
        for _ in range(200):
            claim = await client.get(RESOURCE_CLAIMS, "c", "default")
            if (claim.get("status") or {}).get("allocation"):
                break
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        assert not (await client.get(PODS, "p", "default"))["spec"].get("nodeName"), "the device is not ready"
        ready = {"type": "Ready", "status": "True", "reason": "Attached", "message": ""}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        told = {"driver": "gpu.example.com", "pool": "fabric", "device": "d", "conditions": [ready]}
        claim["status"]["devices"] = [told]
        await client.update(RESOURCE_CLAIMS, claim, subresource="status")
        for _ in range(200):
            if (await client.get(PODS, "p", "default"))["spec"].get("nodeName"):
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the pod was not bound")
