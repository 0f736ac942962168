"""Controllers get there although watches break, answers are lost and the server refuses now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.resources import DEPLOYMENTS, JOBS, POD_GROUPS, PODS, Resource
from muster.client.local import LocalClient
from muster.client.protocol import WatchEvent
from tests.controllers.conftest import World
from tests.controllers.flaky import FlakyClient

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)
INDEX = "batch.kubernetes.io/job-completion-index"


class LaggingClient(LocalClient):
    """A client whose watch of pods stands still until it is let go."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.flowing = asyncio.Event()

    async def watch(self, resource: Resource, *args: Any, **named: Any) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(resource, *args, **named):
            if resource == PODS:
                await self.flowing.wait()
            yield event


async def lagging_world(world: World) -> LaggingClient:
    steady = world.client
    lagging = world.client = LaggingClient(world.server)
    await world.start()
    world.client = steady
    return lagging


async def touch(world: World, resource: Resource, name: str) -> None:
    """Make controllers look again and again."""
    for turn in range(5):
        await world.client.patch(resource, name, {"metadata": {"labels": {"turn": str(turn)}}}, "default")
        await world.settle()


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
async def test_no_pod_is_made_twice_while_the_watch_lags(world: World, mode: str):
    lagging = await lagging_world(world)
    await world.job(parallelism=10, completions=10, completionMode=mode)
    await touch(world, JOBS, "j")
    assert len(await world.pods()) == 10

    lagging.flowing.set()
    await touch(world, JOBS, "j")
    assert len(await world.pods()) == 10


async def test_no_more_pods_go_than_should_while_the_watch_lags(world: World):
    lagging = await lagging_world(world)
    lagging.flowing.set()
    await world.job(parallelism=10, completions=20)
    await world.settle()
    lagging.flowing.clear()

    await world.client.patch(JOBS, "j", {"spec": {"parallelism": 6}}, "default")
    await touch(world, JOBS, "j")
    assert len(await world.pods()) == 6
    assert (await world.get(JOBS, "j"))["status"]["active"] == 6
    lagging.flowing.set()


async def flaky_world(world: World, seed: int) -> FlakyClient:
    steady = world.client
    flaky = world.client = FlakyClient(world.server, seed)  # what the controllers get
    await world.start()
    world.client = steady
    return flaky


@pytest.mark.parametrize("seed", range(8))
async def test_an_indexed_job_has_each_index_once(world: World, seed: int):
    flaky = await flaky_world(world, seed)
    await world.job(parallelism=20, completions=20, completionMode="Indexed")

    await world.advance(120)
    flaky.calm = True
    await world.advance(60)

    live = [pod for pod in await world.pods() if "deletionTimestamp" not in pod["metadata"]]
    assert sorted(int(pod["metadata"]["labels"][INDEX]) for pod in live) == list(range(20))
    assert (await world.get(JOBS, "j"))["status"]["active"] == 20


@pytest.mark.parametrize("seed", range(8))
async def test_a_deployment_ends_with_the_right_number(world: World, seed: int):
    flaky = await flaky_world(world, seed)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 12, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await world.create(DEPLOYMENTS, "d", spec=spec)

    await world.advance(120)
    await world.client.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 7}}, "default")
    await world.advance(120)
    flaky.calm = True
    await world.advance(60)

    assert len(await world.pods()) == 7


@pytest.mark.parametrize("seed", range(8))
async def test_deletions_reach_everything_they_should(world: World, seed: int):
    flaky = await flaky_world(world, seed)
    owner = await world.create(CONFIG_MAPS, "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    for index in range(20):
        await world.create(CONFIG_MAPS, f"child{index}", metadata={"ownerReferences": [reference]})
    await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": {"gang": {"minCount": 1}}})
    await world.pod("member", schedulingGroup={"podGroupName": "g"})

    await world.client.delete(POD_GROUPS, "g", "default")
    await world.client.delete(CONFIG_MAPS, "owner", "default")
    await world.advance(60)
    assert await world.get(POD_GROUPS, "g") is not None

    await world.client.delete(PODS, "member", "default")
    await world.advance(120)
    flaky.calm = True
    await world.advance(60)
    assert (await world.client.list(CONFIG_MAPS, "default")).items == []
    assert await world.get(POD_GROUPS, "g") is None


async def test_an_object_that_cannot_be_read_does_not_stop_the_others(world: World):
    await world.start("podgroup-protection-controller")
    await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": {"basic": {}}})
    await world.pod("odd")
    await world.client.patch(PODS, "odd", {"status": {"conditions": [{}]}}, "default", subresource="status")

    await world.client.delete(POD_GROUPS, "g", "default")
    await world.advance(5)

    assert await world.get(POD_GROUPS, "g") is None
