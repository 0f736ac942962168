"""A crash before and after every single write of a two-level gang that needs room made: all or nothing, always."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from muster.api.groups import DISRUPTION_TARGET
from muster.api.resources import COMPOSITE_POD_GROUPS, PODS, PRIORITY_CLASSES, Resource
from muster.client.local import LocalClient
from muster.engine import options
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.client.clocks import QuickClock
from tests.engine.conftest import World, a_world, eventually
from tests.engine.faulty import FaultyClient

POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)
NODES, SEATS, VICTIMS, MEMBERS = 2, 8, 12, 12
UNIT = 4  # victims live in gangs of four that leave together
NEEDED = MEMBERS + VICTIMS - NODES * SEATS  # victims that must go


class Crashing(FaultyClient):
    """A client whose process dies at one write: before it is sent, or after it took effect."""

    def __init__(self, inner: LocalClient, at: int, after: bool) -> None:
        super().__init__(inner)
        self.at = at
        self.dies_after = after
        self.writes = 0
        self.dead = asyncio.Event()

    async def _call(self, verb: str, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        if self.dead.is_set():
            await asyncio.Event().wait()
        if verb in ("bind", "patch", "delete") and "events" not in name:
            self.writes += 1
            if self.writes == self.at:
                if self.dies_after:
                    await super()._call(verb, name, method, *args, **kwargs)
                self.dead.set()
                await asyncio.Event().wait()
        return await super()._call(verb, name, method, *args, **kwargs)


async def a_full_cluster(world: World) -> None:
    """Two nodes with three gangs of no importance, and a composite of two gangs that is more important."""
    for number in range(NODES):
        await world.node(f"n{number}", cpu=str(SEATS))
    high = {"metadata": {"name": "high"}, "value": 1000}
    await world.direct.create(PRIORITY_CLASSES, high)
    for number in range(VICTIMS):
        name, group = f"victim{number:02}", f"old{number // UNIT}"
        if number % UNIT == 0:
            old = a_pod_group(group, min_count=UNIT, disruptionMode={"all": {}})
            await world.direct.create(POD_GROUPS, in_version(old, "v1beta1"))
        made = await world.pod(name, group=group)
        await world.direct.bind("default", name, made["metadata"]["uid"], f"n{number % NODES}")
    composite: dict[str, Any] = {
        "metadata": {"name": "tree", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "priorityClassName": "high"},
    }
    composite["spec"]["workloadRef"] = {"workloadName": "tree", "templateName": "root"}
    await world.direct.create(COMPOSITE_POD_GROUPS, composite)
    for name in ("left", "right"):
        group = a_pod_group(name, min_count=MEMBERS // 2)
        group["spec"]["workloadRef"] = {"workloadName": "tree", "templateName": name}
        group["spec"] |= {"parentCompositePodGroupName": "tree", "priorityClassName": "high"}
        await world.direct.create(POD_GROUPS, in_version(group, "v1beta1"))
        for number in range(MEMBERS // 2):
            await world.pod(f"{name}-{number}", group=name, priorityClassName="high")


async def reap(world: World, crowded: list[str]) -> None:
    """The kubelets' part: pods that were told to leave are gone a moment later. Notes nodes with too many pods."""
    while True:
        found = await pods(world)
        seats = Counter(pod["spec"].get("nodeName") for pod in found)
        crowded += [node for node, count in seats.items() if node and count > SEATS]
        for pod in found:
            if pod["metadata"].get("deletionTimestamp"):
                meta = pod["metadata"]
                await world.direct.delete(PODS, meta["name"], meta["namespace"], grace_period_seconds=0)
        await asyncio.sleep(0.002)


def an_engine(world: World, client: FaultyClient) -> Engine:
    source = options.source(None)
    return Engine(client, options.config(source), Settings(patience=0.0), clock=QuickClock())


async def pods(world: World) -> list[dict[str, Any]]:
    return (await world.direct.list(PODS)).items


async def check(world: World) -> None:
    """What must be true when everything has settled."""
    found = await pods(world)
    members = [pod for pod in found if not pod["metadata"]["name"].startswith("victim")]
    victims = [pod for pod in found if pod["metadata"]["name"].startswith("victim")]
    assert len(members) == MEMBERS
    assert all(pod["spec"].get("nodeName") for pod in members), "the whole tree runs"
    assert len(victims) == VICTIMS - NEEDED, "no more were evicted than had to be"
    for pod in victims:
        marks = [each for each in pod["status"].get("conditions", []) if each["type"] == DISRUPTION_TARGET]
        assert all(mark["status"] == "False" for mark in marks), "no mark is left on a pod that stays"
    assert not any(pod["status"].get("nominatedNodeName") for pod in found if not pod["spec"].get("nodeName"))


async def finished(world: World, engine: Engine) -> None:
    async def all_bound() -> bool:
        found = await pods(world)
        return all(pod["spec"].get("nodeName") for pod in found) and len(found) <= NODES * SEATS

    await eventually(all_bound, 10)
    await engine.settled()


async def crash_and_recover(at: int, after: bool) -> bool:
    """One life that ends at a write, and the next one. False when there is no such write any more."""
    async with a_world() as world:
        await a_full_cluster(world)
        crowded: list[str] = []
        kubelets = asyncio.create_task(reap(world, crowded))
        doomed = Crashing(LocalClient(world.server), at, after)
        first = an_engine(world, doomed)
        life = asyncio.create_task(first.run())
        done = asyncio.create_task(finished(world, first))
        dead = asyncio.create_task(doomed.dead.wait())
        await asyncio.wait({done, dead}, return_when=asyncio.FIRST_COMPLETED)
        crashed = doomed.dead.is_set()
        for task in (done, dead, life):
            task.cancel()
        await asyncio.gather(done, dead, life, return_exceptions=True)
        second = an_engine(world, FaultyClient(LocalClient(world.server)))
        await world.launch(second)
        try:
            await finished(world, second)
            await check(world)
            assert not crowded, "no node was ever overcommitted"
        finally:
            kubelets.cancel()
        return crashed


async def test_without_a_crash_the_tree_replaces_as_many_pods_as_it_must():
    assert await crash_and_recover(10**6, False) is False


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.slow
async def test_a_crash_at_any_write_leaves_all_or_nothing(after: bool):
    at = 1
    while await crash_and_recover(at, after):
        at += 1
    assert at > 2 * NEEDED + 2 * MEMBERS, "every mark, nomination, delete and bind was a place to die"
