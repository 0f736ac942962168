"""ReplicationControllers keep their pods as ReplicaSets do, by a selector that is a plain map."""

from __future__ import annotations

from muster.api.resources import PODS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS
from tests.controllers.conftest import World


async def test_it_keeps_as_many_pods_as_it_should(world: World):
    await world.start("replication-controller")
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.create(REPLICATION_CONTROLLERS, "r", spec={"replicas": 2, "template": template})
    await world.settle()
    first, second = await world.pods()
    assert first["metadata"]["ownerReferences"][0]["kind"] == "ReplicationController"

    await world.client.delete(PODS, first["metadata"]["name"], "default")
    await world.settle()
    assert len(await world.pods()) == 2
    await world.phase(second["metadata"]["name"], "Running", ready=True)
    status = (await world.get(REPLICATION_CONTROLLERS, "r"))["status"]
    assert (status["replicas"], status["readyReplicas"]) == (2, 1)


async def test_it_adopts_pods_that_its_labels_select(world: World):
    await world.start("replication-controller")
    await world.pod("orphan", metadata={"labels": {"app": "x"}})
    await world.pod("other", metadata={"labels": {"app": "y"}})
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.create(REPLICATION_CONTROLLERS, "r", spec={"replicas": 1, "template": template})
    await world.settle()
    owned = [pod["metadata"]["name"] for pod in await world.pods() if pod["metadata"].get("ownerReferences")]
    assert owned == ["orphan"]


async def test_pods_that_cannot_be_made_are_said_in_a_condition_until_they_can(world: World):
    await world.start("replication-controller", "resourcequota-controller")
    await world.create(RESOURCE_QUOTAS, "q", spec={"hard": {"pods": "1"}})
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.create(REPLICATION_CONTROLLERS, "r", spec={"replicas": 2, "template": template})
    await world.settle()
    status = (await world.get(REPLICATION_CONTROLLERS, "r"))["status"]
    (failure,) = status["conditions"]
    assert (failure["type"], failure["status"], failure["reason"]) == ("ReplicaFailure", "True", "FailedCreate")
    assert "exceeded quota: q" in failure["message"]
    assert status["replicas"] == 1, "what could be made is counted"

    await world.client.patch(REPLICATION_CONTROLLERS, "r", {"spec": {"replicas": 1}}, "default")
    await world.settle()
    assert "conditions" not in (await world.get(REPLICATION_CONTROLLERS, "r"))["status"]


async def test_a_pod_whose_labels_do_not_match_any_more_is_let_go_and_replaced(world: World):
    await world.start("replication-controller")
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.create(REPLICATION_CONTROLLERS, "r", spec={"replicas": 1, "template": template})
    await world.settle()
    (pod,) = await world.pods()
    name = pod["metadata"]["name"]
    await world.client.patch(PODS, name, {"metadata": {"labels": {"app": "mine"}}}, "default")
    await world.settle()
    pods = {each["metadata"]["name"]: each["metadata"].get("ownerReferences") for each in await world.pods()}
    assert pods.pop(name) is None
    ((owner,),) = pods.values()
    assert owner["name"] == "r"
