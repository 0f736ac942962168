"""Deployments and ReplicaSets keep pods running and roll changes out."""

from __future__ import annotations

from typing import Any

from muster.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from tests.controllers.conftest import World

NAMES = ("replicaset-controller", "deployment-controller", "garbage-collector")


def template(image: str = "web:1") -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}


async def a_deployment(world: World, replicas: int = 4, **spec: Any) -> Any:
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return await world.create(DEPLOYMENTS, "web", spec=body)


async def run_pods(world: World, *, at_most: int = 10**6) -> int:
    """Play kubelet: pods become ready, those that are to go are gone."""
    started = 0
    for pod in await world.pods():
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            await world.client.delete(PODS, name, "default", grace_period_seconds=0)
        elif pod["status"]["phase"] == "Pending" and started < at_most:
            started += 1
            await world.phase(name, "Running", ready=True)
    await world.settle()
    return started


async def images(world: World) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in await world.pods())


def conditions(obj: Any) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in obj["status"].get("conditions", [])}


async def test_a_deployment_has_its_pods(world: World):
    await world.start(*NAMES)
    await a_deployment(world)
    await world.settle()
    await run_pods(world)

    status = (await world.get(DEPLOYMENTS, "web"))["status"]
    assert len(await world.pods()) == 4
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (4, 4, 4)
    assert status["updatedReplicas"] == 4
    assert "unavailableReplicas" not in status


async def test_a_finished_rollout_says_so(world: World):
    await world.start(*NAMES)
    deployment = await a_deployment(world)
    await world.settle()
    assert conditions(await world.get(DEPLOYMENTS, "web"))["Available"] == ("False", "MinimumReplicasUnavailable")

    await run_pods(world)

    found = await world.get(DEPLOYMENTS, "web")
    assert conditions(found) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert found["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


async def test_a_pod_that_is_lost_is_replaced(world: World):
    await world.start(*NAMES)
    await a_deployment(world)
    await world.settle()

    await world.client.delete(PODS, (await world.pods())[0]["metadata"]["name"], "default")
    await world.settle()

    assert len(await world.pods()) == 4


async def test_scaling_up_and_down(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 2)
    await world.settle()
    await run_pods(world)

    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default", subresource="scale")
    await world.settle()
    assert len(await world.pods()) == 5

    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, "default", subresource="scale")
    await world.settle()
    await run_pods(world)
    assert len(await world.pods()) == 1


async def test_pods_that_run_are_the_last_to_go(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 3)
    await world.settle()
    await run_pods(world, at_most=1)
    running = [pod["metadata"]["name"] for pod in await world.pods() if pod["status"]["phase"] == "Running"]

    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, "default")
    await world.settle()

    assert [pod["metadata"]["name"] for pod in await world.pods()] == running


async def test_a_new_image_is_rolled_out_within_its_limits(world: World):
    await world.start(*NAMES)
    await a_deployment(world)
    await world.settle()
    await run_pods(world)

    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"template": template("web:2")}}, "default")
    await world.settle()
    for _ in range(20):
        pods = await world.pods()
        standing = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        ready = [pod for pod in standing if pod["status"]["phase"] == "Running"]
        assert len(standing) <= 5
        assert len(ready) >= 3
        if not await run_pods(world, at_most=1) and len(standing) == len(pods) == 4:
            break

    assert await images(world) == ["web:2"] * 4
    status = (await world.get(DEPLOYMENTS, "web"))["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (4, 4, 4)


async def test_a_broken_rollout_that_is_replaced_costs_no_healthy_pod(world: World):
    await world.start(*NAMES)
    await a_deployment(world)
    await world.settle()
    await run_pods(world)
    for image in ("web:broken", "web:3"):
        await world.client.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image)}}, "default")
        await world.settle()

    ready = [pod for pod in await world.pods() if pod["status"]["phase"] == "Running"]
    assert len([pod for pod in ready if "deletionTimestamp" not in pod["metadata"]]) == 3
    for _ in range(10):
        await run_pods(world)
    assert await images(world) == ["web:3"] * 4


async def test_an_undone_rollout_uses_the_old_set_again(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 1)
    await world.settle()
    for image in ("web:2", "web:1"):
        for _ in range(4):
            await run_pods(world)
        await world.client.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image)}}, "default")
        await world.settle()
    for _ in range(4):
        await run_pods(world)

    sets = (await world.client.list(REPLICA_SETS, "default")).items
    assert len(sets) == 2
    assert await images(world) == ["web:1"]
    found = await world.get(DEPLOYMENTS, "web")
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_recreate_stops_the_old_before_it_starts_the_new(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 2, strategy={"type": "Recreate"})
    await world.settle()
    await run_pods(world)
    for pod in await world.pods():
        await world.client.patch(PODS, pod["metadata"]["name"], {"metadata": {"finalizers": ["a.b/c"]}}, "default")

    await world.client.patch(DEPLOYMENTS, "web", {"spec": {"template": template("web:2")}}, "default")
    await world.settle()
    assert await images(world) == ["web:1"] * 2

    for pod in await world.pods():
        await world.client.patch(PODS, pod["metadata"]["name"], {"metadata": {"finalizers": None}}, "default")
    await world.advance(5)
    assert await images(world) == ["web:2"] * 2


async def test_a_rollout_that_hangs_is_reported(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 1, progressDeadlineSeconds=60)

    await world.advance(61)

    assert conditions(await world.get(DEPLOYMENTS, "web"))["Progressing"] == ("False", "ProgressDeadlineExceeded")


async def test_a_paused_deployment_does_not_roll(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 1)
    await world.settle()
    await run_pods(world)

    change = {"spec": {"paused": True, "template": template("web:2")}}
    await world.client.patch(DEPLOYMENTS, "web", change, "default")
    await world.advance(5)

    assert await images(world) == ["web:1"]


async def test_a_deleted_deployment_takes_sets_and_pods_with_it(world: World):
    await world.start(*NAMES)
    await a_deployment(world)
    await world.settle()

    await world.client.delete(DEPLOYMENTS, "web", "default", propagation_policy="Foreground")
    await world.settle()

    assert await world.get(DEPLOYMENTS, "web") is None
    assert (await world.client.list(REPLICA_SETS, "default")).items == []
    assert await world.pods() == []


async def test_a_pod_counts_as_available_after_it_was_ready_long_enough(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 1, minReadySeconds=20)
    await world.settle()
    await run_pods(world)
    assert "availableReplicas" not in (await world.get(DEPLOYMENTS, "web"))["status"]

    await world.advance(21)

    assert (await world.get(DEPLOYMENTS, "web"))["status"]["availableReplicas"] == 1


async def test_what_an_orphaning_deletion_left_is_taken_in_again(world: World):
    await world.start(*NAMES)
    await a_deployment(world, 2)
    await world.settle()
    before = {pod["metadata"]["uid"] for pod in await world.pods()}
    await world.client.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
    await world.settle()
    assert {pod["metadata"]["uid"] for pod in await world.pods()} == before

    await a_deployment(world, 2)
    await world.advance(5)

    assert {pod["metadata"]["uid"] for pod in await world.pods()} == before
    assert len((await world.client.list(REPLICA_SETS, "default")).items) == 1


async def test_a_stray_pod_that_fits_counts_as_a_replica(world: World):
    await world.start(*NAMES)
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    await world.create(REPLICA_SETS, "rs", spec=spec)
    await world.settle()

    await world.pod("stray", metadata={"labels": {"app": "web"}})
    await world.settle()

    assert len(await world.pods()) == 2
    kept = await world.get(PODS, "stray")
    assert kept is None or kept["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
