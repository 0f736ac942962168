"""On clusters where kube-controller-manager protects PodGroups, Muster protects composites and nothing else."""

from __future__ import annotations

import asyncio

from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.controllers import ControllerManager
from muster.controllers.external_clusters import ON_NATIVE
from tests.controllers.conftest import World
from tests.controllers.test_podgroup_protection import a_composite, a_group


async def started(world: World) -> None:
    world.manager = ControllerManager(world.client, clock=world.clock, collections=(), controllers=ON_NATIVE)
    world.follow(world.manager.run())
    await asyncio.wait_for(world.manager.ready.wait(), 5)
    await world.settle()


async def without_finalizers(world: World) -> None:
    """What a server without our admission would have stored."""
    for resource, name in ((COMPOSITE_POD_GROUPS, "root"), (POD_GROUPS, "leaf")):
        await world.client.patch(resource, name, {"metadata": {"finalizers": None}}, "default")


async def test_a_composite_gets_its_finalizer_and_a_pod_group_is_left_alone(world: World):
    await a_composite(world, "root")
    await a_group(world, "leaf", parent="root")
    await without_finalizers(world)
    await started(world)
    assert (await world.get(COMPOSITE_POD_GROUPS, "root"))["metadata"]["finalizers"] == [COMPOSITE_PROTECTION]
    assert not (await world.get(POD_GROUPS, "leaf"))["metadata"].get("finalizers")


async def test_a_composite_stays_until_its_last_child_is_gone(world: World):
    await a_composite(world, "root")
    await a_group(world, "leaf", parent="root")
    await started(world)
    await world.client.delete(COMPOSITE_POD_GROUPS, "root", "default")
    await world.settle()
    assert await world.get(COMPOSITE_POD_GROUPS, "root") is not None
    await world.client.delete(POD_GROUPS, "leaf", "default")
    await world.settle()
    assert (await world.get(POD_GROUPS, "leaf"))["metadata"]["finalizers"] == [POD_GROUP_PROTECTION]
    await world.client.patch(POD_GROUPS, "leaf", {"metadata": {"finalizers": None}}, "default")
    await world.settle()
    assert await world.get(COMPOSITE_POD_GROUPS, "root") is None
