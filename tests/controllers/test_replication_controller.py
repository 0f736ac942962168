"""ReplicationControllers keep their pods as ReplicaSets do, by a selector that is a plain map."""

from __future__ import annotations

from muster.api.resources import PODS, REPLICATION_CONTROLLERS
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
