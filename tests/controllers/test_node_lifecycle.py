"""Nodes that fall silent are tainted and lose their pods; nodes that never spoke are left alone."""

from __future__ import annotations

from typing import Any

from muster.api.resources import LEASES, NODES, PODS
from muster.client.clock import micro_timestamp
from tests.controllers.conftest import World

NAME = "node-lifecycle-controller"


def ready(status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "2027-01-15T08:00:00Z"}]}


async def renew(world: World, name: str = "n") -> None:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro_timestamp(world.clock.now())}
    if await world.get(LEASES, name, "kube-node-lease") is None:
        await world.create(LEASES, name, "kube-node-lease", spec=spec)
    else:
        await world.client.patch(LEASES, name, {"spec": spec}, "kube-node-lease")
    await world.settle()


async def taints(world: World, name: str = "n") -> set[tuple[str, str]]:
    node = await world.get(NODES, name)
    return {(each["key"].split("/")[1], each["effect"]) for each in node["spec"].get("taints", [])}


UNREACHABLE = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def test_a_node_that_stops_renewing_becomes_unreachable(world: World):
    await world.start(NAME)
    await world.node("n", status=ready())
    await renew(world)
    await world.advance(39)
    assert await taints(world) == set()

    await world.advance(2)

    assert await taints(world) == UNREACHABLE
    condition = (await world.get(NODES, "n"))["status"]["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("Unknown", "NodeStatusUnknown")


async def test_a_node_that_goes_on_renewing_is_left_alone(world: World):
    await world.start(NAME)
    await world.node("n", status=ready())
    for _ in range(10):
        await renew(world)
        await world.advance(20)

    assert await taints(world) == set()


async def test_a_node_that_never_had_a_lease_is_not_judged(world: World):
    await world.start(NAME)
    await world.node("n", status=ready("Unknown"))
    await world.pod("p", node="n", tolerations=[])

    await world.advance(1000)

    assert await taints(world) == set()
    assert "deletionTimestamp" not in (await world.get(PODS, "p"))["metadata"]


async def test_a_node_that_is_back_loses_its_taints(world: World):
    await world.start(NAME)
    await world.node("n", status=ready())
    await renew(world)
    await world.advance(50)

    await renew(world)
    await world.client.patch(NODES, "n", {"status": ready()}, subresource="status")
    await world.settle()

    assert await taints(world) == set()


async def test_a_node_that_says_it_is_not_ready_is_tainted_so(world: World):
    await world.start(NAME)
    await world.node("n", status=ready("False"))
    await renew(world)

    assert await taints(world) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}


async def test_other_taints_stay(world: World):
    await world.start(NAME)
    await world.node("n", status=ready(), spec={"taints": [{"key": "a/mine", "effect": "NoSchedule"}]})
    await renew(world)

    await world.advance(50)

    assert await taints(world) == {("mine", "NoSchedule"), *UNREACHABLE}


async def test_pods_leave_a_lost_node_when_their_patience_ends(world: World):
    await world.start(NAME)
    await world.node("n", status=ready())
    await renew(world)
    await world.pod("usual", node="n")
    key = "node.kubernetes.io/unreachable"
    hasty = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}]
    await world.pod("hasty", node="n", tolerations=hasty)
    await world.pod("stoic", node="n", tolerations=[{"operator": "Exists"}])
    await world.advance(41)

    await world.advance(11)
    assert await going(world) == {"hasty"}

    await world.advance(295)
    assert await going(world) == {"hasty", "usual"}


async def going(world: World) -> set[str]:
    return {pod["metadata"]["name"] for pod in await world.pods() if "deletionTimestamp" in pod["metadata"]} | (
        {"hasty", "usual", "stoic"} - {pod["metadata"]["name"] for pod in await world.pods()}
    )


async def test_a_pod_says_that_it_was_taken_off_a_lost_node(world: World):
    await world.start(NAME)
    await world.node("n", status=ready())
    await renew(world)
    await world.pod("p", node="n")
    await world.phase("p", "Running", ready=True)

    await world.advance(400)

    conditions = {each["type"]: each for each in (await world.get(PODS, "p"))["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "DeletionByTaintManager"


async def test_a_deleted_node_takes_its_pods_with_it(world: World):
    await world.start(NAME)
    await world.node("n", status=ready())
    await renew(world)
    await world.pod("p", node="n")
    await world.phase("p", "Running")

    await world.client.delete(NODES, "n")
    await world.settle()

    assert await world.get(PODS, "p") is None
