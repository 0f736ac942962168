"""StatefulSets: names, order, claims, rollouts and their limits."""

from __future__ import annotations

from typing import Any

from muster.api.resources import CONTROLLER_REVISIONS, CORE_EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from tests.controllers.conftest import World

LABELS = {"app": "web"}


async def stateful_set(world: World, replicas: int = 3, image: str = "i", **spec: Any) -> Any:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}
    body = {"replicas": replicas, "serviceName": "web", "selector": {"matchLabels": LABELS}, "template": template}
    return await world.create(STATEFUL_SETS, "web", spec={**body, **spec})


async def start(world: World, *more: str) -> None:
    await world.start("statefulset-controller", *more)


async def names(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in await world.pods()]


async def all_ready(world: World) -> None:
    """Every pod gets ready, and those that follow from it, until nothing is left to do."""
    for _ in range(20):
        waiting = [pod for pod in await world.pods() if (pod.get("status") or {}).get("phase") != "Running"]
        if not waiting:
            return
        for pod in waiting:
            await world.phase(pod["metadata"]["name"], "Running", ready=True)
    raise AssertionError("pods kept coming")


async def status(world: World) -> Any:
    return (await world.get(STATEFUL_SETS, "web"))["status"]


async def set_image(world: World, image: str) -> None:
    container = {"name": "c", "image": image}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await world.client.patch(STATEFUL_SETS, "web", patch, "default", type="strategic")
    await world.settle()


async def images(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await world.pods()}


async def test_pods_are_made_one_after_the_other(world: World):
    await start(world)
    await stateful_set(world)
    await world.settle()
    assert await names(world) == ["web-0"]

    await world.phase("web-0", "Running", ready=True)
    assert await names(world) == ["web-0", "web-1"]

    await world.phase("web-1", "Running", ready=False)
    assert await names(world) == ["web-0", "web-1"]

    await all_ready(world)
    await world.phase("web-1", "Running", ready=True)
    await all_ready(world)
    assert await names(world) == ["web-0", "web-1", "web-2"]
    found = await status(world)
    assert (found["replicas"], found["readyReplicas"], found["availableReplicas"]) == (3, 3, 3)
    assert found["currentRevision"] == found["updateRevision"]


async def test_parallel_makes_all_at_once(world: World):
    await start(world)
    await stateful_set(world, podManagementPolicy="Parallel")
    await world.settle()
    assert await names(world) == ["web-0", "web-1", "web-2"]


async def test_a_pod_has_its_name_and_its_index(world: World):
    await start(world)
    await stateful_set(world, replicas=1, ordinals={"start": 5})
    await world.settle()
    (pod,) = await world.pods()
    assert pod["metadata"]["name"] == "web-5"
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-5"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "5"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-5", "web")
    revision = pod["metadata"]["labels"]["controller-revision-hash"]
    assert (await world.get(CONTROLLER_REVISIONS, revision))["revision"] == 1


async def going(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in await world.pods() if "deletionTimestamp" in pod["metadata"]]


async def test_it_shrinks_from_the_highest_ordinal_one_at_a_time(world: World):
    await start(world)
    await stateful_set(world)
    for ordinal in range(3):
        await world.settle()
        target = {"metadata": {"name": f"web-{ordinal}"}, "target": {"kind": "Node", "name": "n"}}
        await world.client.request("POST", PODS.path("default", f"web-{ordinal}", "binding"), target)
        await world.phase(f"web-{ordinal}", "Running", ready=True)

    await world.client.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}}, "default")
    await world.settle()
    assert await going(world) == ["web-2"]

    await world.client.delete(PODS, "web-2", "default", grace_period_seconds=0)
    await world.settle()
    assert await going(world) == ["web-1"]

    await world.client.delete(PODS, "web-1", "default", grace_period_seconds=0)
    await world.settle()
    assert await names(world) == ["web-0"]
    said = {each["message"] for each in (await world.client.list(CORE_EVENTS, "default")).items}
    assert "delete Pod web-2 in StatefulSet web successful" in said


async def test_a_pod_that_ended_is_made_anew(world: World):
    await start(world)
    await stateful_set(world, replicas=1)
    await world.settle()
    before = (await world.pods())[0]["metadata"]["uid"]
    await world.phase("web-0", "Failed")
    (after,) = await world.pods()
    assert after["metadata"]["name"] == "web-0"
    assert after["metadata"]["uid"] != before


async def test_a_new_template_is_rolled_out_from_the_top(world: World):
    await start(world)
    await stateful_set(world)
    await world.settle()
    await all_ready(world)

    await set_image(world, "new")
    assert await images(world) == {"web-0": "i", "web-1": "i", "web-2": "new"}
    found = await status(world)
    assert found["updatedReplicas"] == 1
    assert found["currentRevision"] != found["updateRevision"]

    await all_ready(world)
    assert await images(world) == {"web-0": "new", "web-1": "new", "web-2": "new"}
    found = await status(world)
    assert found["currentRevision"] == found["updateRevision"]
    assert found["currentReplicas"] == 3


async def test_pods_below_the_partition_keep_the_old_template(world: World):
    await start(world)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await stateful_set(world, updateStrategy=strategy)
    await world.settle()
    await all_ready(world)
    await set_image(world, "new")
    await all_ready(world)
    assert await images(world) == {"web-0": "i", "web-1": "i", "web-2": "new"}

    await world.client.delete(PODS, "web-0", "default")
    await world.settle()
    await all_ready(world)
    assert (await images(world))["web-0"] == "i"


async def test_on_delete_waits_for_the_user(world: World):
    await start(world)
    await stateful_set(world, replicas=2, updateStrategy={"type": "OnDelete"})
    await world.settle()
    await all_ready(world)
    await set_image(world, "new")
    assert await images(world) == {"web-0": "i", "web-1": "i"}
    await world.client.delete(PODS, "web-0", "default")
    await world.settle()
    assert (await images(world))["web-0"] == "new"


async def test_no_more_than_max_unavailable_are_replaced_at_a_time(world: World):
    await start(world)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    await stateful_set(world, replicas=4, podManagementPolicy="Parallel", updateStrategy=rolling)
    await world.settle()
    await all_ready(world)
    await set_image(world, "new")
    assert sorted(await images(world)) == ["web-0", "web-1", "web-2", "web-3"]
    assert list((await images(world)).values()).count("new") == 2


async def test_undoing_gives_the_old_revision_a_new_number(world: World):
    await start(world)
    await stateful_set(world, replicas=1)
    await world.settle()
    await all_ready(world)
    first = (await status(world))["updateRevision"]
    await set_image(world, "new")
    await all_ready(world)
    await set_image(world, "i")
    await all_ready(world)
    assert (await status(world))["updateRevision"] == first
    assert (await world.get(CONTROLLER_REVISIONS, first))["revision"] == 3


async def test_old_revisions_beyond_the_limit_go(world: World):
    await start(world)
    await stateful_set(world, replicas=1, revisionHistoryLimit=1)
    await world.settle()
    await all_ready(world)
    for image in ("a", "b", "c"):
        await set_image(world, image)
        await all_ready(world)
    await world.client.patch(STATEFUL_SETS, "web", {"metadata": {"labels": {"x": "y"}}}, "default")
    await world.settle()
    assert len((await world.client.list(CONTROLLER_REVISIONS, "default")).items) == 2


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def claims(world: World) -> dict[str, Any]:
    found = (await world.client.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
    return {each["metadata"]["name"]: each for each in found}


async def test_every_pod_has_its_claims_and_they_outlive_it(world: World):
    await start(world)
    await stateful_set(world, replicas=2, volumeClaimTemplates=[CLAIM])
    await world.settle()
    await all_ready(world)
    found = await claims(world)
    assert sorted(found) == ["data-web-0", "data-web-1"]
    assert found["data-web-0"]["metadata"]["labels"] == LABELS
    volumes = (await world.pods())[0]["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}} in volumes

    await world.client.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 0}}, "default")
    await world.settle()
    assert await names(world) == []
    assert sorted(await claims(world)) == ["data-web-0", "data-web-1"]


async def test_claims_go_when_the_retention_policy_says_so(world: World):
    await start(world, "garbage-collector")
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await stateful_set(world, 2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    await world.settle()
    await all_ready(world)
    owners = (await claims(world))["data-web-0"]["metadata"]["ownerReferences"]
    assert [each["kind"] for each in owners] == ["StatefulSet"]

    await world.client.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}}, "default")
    await world.settle()
    assert sorted(await claims(world)) == ["data-web-0"]

    await world.client.delete(STATEFUL_SETS, "web", "default")
    await world.settle()
    assert await claims(world) == {}


async def test_pods_of_its_name_without_a_controller_are_adopted(world: World):
    await start(world)
    await world.pod("web-0", metadata={"labels": LABELS})
    await stateful_set(world, replicas=1)
    await world.settle()
    (pod,) = await world.pods()
    assert [each["kind"] for each in pod["metadata"]["ownerReferences"]] == ["StatefulSet"]
