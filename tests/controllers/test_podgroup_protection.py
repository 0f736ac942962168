"""Groups outlive what belongs to them, and go bottom-up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from muster.api.errors import ApiError
from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, Resource
from muster.client.local import LocalClient
from muster.client.protocol import WatchEvent
from tests.controllers.conftest import World

NAME = "podgroup-protection-controller"


async def a_group(world: World, name: str = "g", parent: str = "") -> Any:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    if parent:
        spec |= {"parentCompositePodGroupName": parent, "workloadRef": {"workloadName": "w", "templateName": name}}
    return await world.create(POD_GROUPS, name, spec=spec)


async def a_composite(world: World, name: str, parent: str = "") -> Any:
    spec: dict[str, Any] = {
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "workloadRef": {"workloadName": "w", "templateName": name},
    }
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return await world.create(COMPOSITE_POD_GROUPS, name, spec=spec)


async def test_an_unused_group_goes_when_it_is_deleted(world: World):
    await world.start(NAME)
    await a_group(world)

    await world.client.delete(POD_GROUPS, "g", "default")
    await world.settle()

    assert await world.get(POD_GROUPS, "g") is None


async def test_a_group_stays_until_its_last_pod_has_ended_or_gone(world: World):
    await world.start(NAME)
    await a_group(world)
    await world.pod("a", schedulingGroup={"podGroupName": "g"})
    await world.pod("b", schedulingGroup={"podGroupName": "g"})

    await world.client.delete(POD_GROUPS, "g", "default")
    await world.phase("a", "Succeeded")
    assert (await world.get(POD_GROUPS, "g"))["metadata"]["deletionTimestamp"]

    await world.client.delete(PODS, "b", "default")
    await world.settle()
    assert await world.get(POD_GROUPS, "g") is None


async def test_a_pod_on_its_way_out_still_holds_its_group(world: World):
    await world.start(NAME)
    await a_group(world)
    await world.pod("a", node="n", schedulingGroup={"podGroupName": "g"})
    await world.phase("a", "Running")

    await world.client.delete(PODS, "a", "default")
    await world.client.delete(POD_GROUPS, "g", "default")
    await world.settle()
    assert await world.get(POD_GROUPS, "g") is not None

    await world.client.delete(PODS, "a", "default", grace_period_seconds=0)
    await world.settle()
    assert await world.get(POD_GROUPS, "g") is None


async def test_a_tree_goes_from_the_leaves_to_the_root(world: World):
    await world.start(NAME)
    await a_composite(world, "root")
    await a_composite(world, "inner", parent="root")
    await a_group(world, "leaf", parent="inner")

    await world.client.delete(COMPOSITE_POD_GROUPS, "root", "default")
    await world.client.delete(COMPOSITE_POD_GROUPS, "inner", "default")
    await world.settle()
    assert await world.get(COMPOSITE_POD_GROUPS, "root") is not None
    assert await world.get(COMPOSITE_POD_GROUPS, "inner") is not None

    await world.client.delete(POD_GROUPS, "leaf", "default")
    await world.settle()
    assert await world.get(COMPOSITE_POD_GROUPS, "inner") is None
    assert await world.get(COMPOSITE_POD_GROUPS, "root") is None


async def test_a_finalizer_that_was_edited_away_comes_back(world: World):
    await world.start(NAME)
    await a_group(world)
    await a_composite(world, "root")

    await world.client.patch(POD_GROUPS, "g", {"metadata": {"finalizers": None}}, "default")
    await world.client.patch(COMPOSITE_POD_GROUPS, "root", {"metadata": {"finalizers": ["a.b/c"]}}, "default")
    await world.settle()

    assert (await world.get(POD_GROUPS, "g"))["metadata"]["finalizers"] == [POD_GROUP_PROTECTION]
    assert (await world.get(COMPOSITE_POD_GROUPS, "root"))["metadata"]["finalizers"] == ["a.b/c", COMPOSITE_PROTECTION]


async def test_a_group_deleted_while_nobody_watched_goes_after_a_restart(world: World):
    await a_group(world)
    await world.client.delete(POD_GROUPS, "g", "default")

    await world.start(NAME)

    assert await world.get(POD_GROUPS, "g") is None


class WithoutPodEvents(LocalClient):
    """A client whose watch of pods shows nothing and has expired once it ends."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server)
        self.expired = asyncio.Event()

    async def watch(self, resource: Resource, *args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        if resource == PODS and not self.expired.is_set():
            await self.expired.wait()
            raise ApiError(410, "Expired", "too old resource version")
        async for event in super().watch(resource, *args, **options):
            yield event


async def test_a_group_goes_although_the_watch_never_showed_the_pods_that_held_it(world: World):
    world.client = client = WithoutPodEvents(world)
    await world.start(NAME)
    await a_group(world)
    await world.pod("a", schedulingGroup={"podGroupName": "g"})
    await client.delete(POD_GROUPS, "g", "default")
    await world.settle()
    assert await world.get(POD_GROUPS, "g") is not None  # the server knows the pod, the watch does not

    await client.delete(PODS, "a", "default")
    client.expired.set()  # what is listed now has no pod
    await world.advance(30.0)

    assert await world.get(POD_GROUPS, "g") is None
