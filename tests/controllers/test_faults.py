"""Controllers get there although watches break, answers are lost and the server refuses now and then."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import DEPLOYMENTS, JOBS, POD_GROUPS, PODS, Resource
from muster.client.clock import SystemClock
from muster.client.local import LocalClient
from muster.client.protocol import Page, WatchEvent
from muster.controllers.informers import Informer
from muster.controllers.objects import PodView
from muster.controllers.workqueue import WorkQueue
from tests.controllers.conftest import World

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)
INDEX = "batch.kubernetes.io/job-completion-index"


class FlakyClient(LocalClient):
    """A client of a bad day: one call in `odds` goes wrong, before or after the server has done it."""

    def __init__(self, core: Any, seed: int, odds: int = 6) -> None:
        super().__init__(core)
        self._rng = random.Random(seed)
        self._odds = odds
        self._outdated: set[str] = set()
        self.calm = False

    def _unlucky(self) -> bool:
        return not self.calm and self._rng.randrange(self._odds) == 0

    async def list(self, resource: Resource, *args: Any, **named: Any) -> Page:
        self._outdated.discard(resource.plural)
        return await super().list(resource, *args, **named)

    async def watch(self, resource: Resource, *args: Any, **named: Any) -> AsyncIterator[WatchEvent]:
        if resource.plural in self._outdated:
            raise ApiError(410, "Expired", "too old resource version")
        async for event in super().watch(resource, *args, **named):
            if self._unlucky():
                if self._rng.random() < 0.5:
                    raise ConnectionError("the watch broke")
                self._outdated.add(resource.plural)
                raise ApiError(410, "Expired", "too old resource version")
            yield event
            if self._rng.randrange(20) == 0:
                yield event  # the same news twice

    async def _call(self, method: str, *args: Any, **named: Any) -> bytes:
        if method == "GET" or not self._unlucky():
            return await super()._call(method, *args, **named)
        match self._rng.randrange(3):
            case 0:
                raise ApiError(500, "InternalError", "not now")
            case 1:
                raise ConnectionError("never arrived")
            case _:
                await super()._call(method, *args, **named)
                raise TimeoutError("the answer was lost")


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


@pytest.mark.parametrize("seed", range(10))
async def test_a_cache_is_what_the_server_has_however_the_watch_behaves(world: World, seed: int):
    flaky = FlakyClient(world.server, seed, odds=4)
    informer = Informer(PODS, PodView)
    seen: set[str] = set()
    informer.on_change(lambda old, new: seen.add((new or old).metadata.uid))
    world.follow(informer.run(flaky, world.clock))
    rng = random.Random(seed)
    for step in range(60):
        name = f"p{rng.randrange(8)}"
        if await world.get(PODS, name) is None:
            await world.pod(name)
        elif rng.random() < 0.5:
            await world.client.delete(PODS, name, "default")
        else:
            await world.client.patch(PODS, name, {"metadata": {"labels": {"step": str(step)}}}, "default")
        if rng.random() < 0.5:
            await world.advance(rng.random())

    flaky.calm = True
    await world.advance(60)

    truth = {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in await world.pods()}
    assert {name: pod.metadata.resource_version for (_, name), pod in informer.objects.items()} == truth


async def test_a_key_that_changes_while_it_is_worked_on_is_worked_on_again():
    queue = WorkQueue(SystemClock())
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert queue.idle is False

    queue.add("a")
    queue.done("a")

    assert await queue.get() == "a"
    queue.done("a")
    assert queue.idle


async def test_an_object_that_cannot_be_read_does_not_stop_the_others(world: World):
    await world.start("podgroup-protection-controller")
    await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": {"basic": {}}})
    await world.pod("odd")
    await world.client.patch(PODS, "odd", {"status": {"conditions": [{}]}}, "default", subresource="status")

    await world.client.delete(POD_GROUPS, "g", "default")
    await world.advance(5)

    assert await world.get(POD_GROUPS, "g") is None
