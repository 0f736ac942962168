"""Pods leave devices that got a taint they do not tolerate, at the time that their tolerations allow."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.devices import CLAIM_FINALIZER
from muster.api.resources import DEVICE_TAINT_RULES, EVENTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from muster.controllers.device_taint_eviction import DeviceTaintEviction
from tests.controllers.conftest import World

NAME = DeviceTaintEviction.name
DRIVER = "gpu.example.com"
ADDED = "2020-01-01T00:00:00Z"


def taint(**fields: Any) -> dict[str, Any]:
    return {"key": "broken", "effect": "NoExecute", "timeAdded": ADDED, **fields}


async def a_slice(world: World, *taints: dict[str, Any]) -> Any:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "d", "taints": list(taints)}, {"name": "e"}]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": devices}
    return await world.create(RESOURCE_SLICES, "s", spec=spec)


async def a_user(world: World, name: str = "p", *, node: str = "n", **result: Any) -> Any:
    """A pod on a node with a claim that has the device."""
    entry = {"name": "gpu", "resourceClaimName": f"{name}-claim"}
    pod = await world.pod(name, resourceClaims=[entry], **({"nodeName": node} if node else {}))
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = await world.create(RESOURCE_CLAIMS, f"{name}-claim", spec={"devices": {"requests": [request]}})
    claim["metadata"]["finalizers"] = [CLAIM_FINALIZER]
    claim = await world.client.update(RESOURCE_CLAIMS, claim)
    found = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d", **result}
    consumer = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    claim["status"] = {"allocation": {"devices": {"results": [found]}}, "reservedFor": [consumer]}
    await world.client.update(RESOURCE_CLAIMS, claim, subresource="status")
    return pod


async def left(world: World) -> list[str]:
    await world.settle()
    return [pod["metadata"]["name"] for pod in (await world.client.list(PODS)).items if not _going(pod)]


def _going(pod: Any) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


async def test_a_pod_whose_device_is_tainted_is_deleted_with_a_reason(world: World):
    await world.start(NAME)
    await a_slice(world, taint())
    await a_user(world)
    await a_user(world, "other", device="e")
    assert await left(world) == ["other"]
    events = (await world.client.list(EVENTS, "default")).items
    assert [each["reason"] for each in events] == ["DeviceTaintManagerEviction"]


async def test_a_rule_taints_devices_too_and_only_those_it_selects(world: World):
    await world.start(NAME)
    await a_slice(world)
    await a_user(world)
    await a_user(world, "other", device="e")
    selector = {"driver": DRIVER, "device": "d"}
    await world.create(DEVICE_TAINT_RULES, "rule", spec={"deviceSelector": selector, "taint": taint()})
    assert await left(world) == ["other"]


@pytest.mark.parametrize(
    "taints",
    [[], [taint(effect="NoSchedule")], [taint(effect="None")]],
    ids=["no taint", "for new pods only", "without effect"],
)
async def test_other_devices_keep_their_pods(world: World, taints: list[dict[str, Any]]):
    await world.start(NAME)
    await a_slice(world, *taints)
    await a_user(world)
    assert await left(world) == ["p"]


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        ({"key": "broken", "operator": "Exists", "effect": "NoExecute"}, True),
        ({"key": "other", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "broken", "operator": "Exists"}, False),
        ({"key": "broken", "operator": "Equal", "value": "x", "effect": "NoExecute"}, False),
        ({"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}, False),
        ({"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10**9}, True),
    ],
)
async def test_what_the_claim_tolerates_decides(world: World, toleration: dict[str, Any], stays: bool):
    await world.start(NAME)
    await a_slice(world, taint())
    await a_user(world, tolerations=[toleration])
    assert await left(world) == (["p"] if stays else [])


async def test_a_pod_that_does_not_run_yet_is_left_alone(world: World):
    await world.start(NAME)
    await a_slice(world, taint())
    await a_user(world, node="")
    assert await left(world) == ["p"]
