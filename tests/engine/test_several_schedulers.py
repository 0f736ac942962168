"""Several Musters on one cluster: no node gets more than it has, no gang starts in half, and all of them get on."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from muster.api.errors import ApiError
from muster.api.resources import LEASES, PODS, Resource
from muster.client.clock import MonotonicClock
from muster.engine import binding_lease, options
from muster.engine.binding_lease import NAME, NAMESPACE
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.testing import a_pod, a_pod_group
from tests.build.manifests import in_version
from tests.engine.conftest import World, eventually
from tests.engine.faulty import FaultyClient

GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


async def a_scheduler(world: World, name: str, *, slow: float = 0.002) -> tuple[Engine, FaultyClient]:
    """An engine that serves one name through a connection of its own, on which every request takes a while."""
    client = FaultyClient(world.direct)
    client.slow = slow
    source = options.source(None, (name,))
    settings = Settings(share_cluster=True)
    engine = Engine(client, options.config(source), settings, clock=MonotonicClock(), config_source=source)
    await world.launch(engine)
    return engine, client


async def create_gang(world: World, scheduler: str, name: str, size: int, cpu: str) -> None:
    await world.direct.create(GROUPS, in_version(a_pod_group(name, min_count=size), "v1beta1"), "default")
    for number in range(size):
        pod = a_pod(f"{name}-{number}", cpu=cpu, group=name, schedulerName=scheduler)
        await world.direct.create(PODS, pod)


async def bound(world: World) -> dict[str, str]:
    page = await world.direct.list(PODS)
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in page.items}
    return {name: node for name, node in nodes.items() if node}


async def delete_gangs(world: World, *names: str) -> None:
    for pod in (await world.direct.list(PODS)).items:
        await world.direct.delete(PODS, pod["metadata"]["name"], "default", grace_period_seconds=0)
    for name in names:
        await world.direct.delete(GROUPS, name, "default")


async def test_two_schedulers_race_for_the_same_nodes_and_one_gang_starts_whole(world: World):
    for number in range(4):
        await world.node(f"n{number}", cpu="2")
    first, _ = await a_scheduler(world, "first")
    second, _ = await a_scheduler(world, "second")
    winners: Counter[str] = Counter()
    for number in range(10):
        names = (f"a{number}", f"b{number}")
        await asyncio.gather(
            create_gang(world, "first", names[0], 4, "2"), create_gang(world, "second", names[1], 4, "2")
        )

        async def one_is_bound() -> bool:
            return len(await bound(world)) >= 4

        await eventually(one_is_bound)
        await first.settled()
        await second.settled()
        placed = await bound(world)
        assert len(placed) == 4, "the other gang got nothing"
        assert len({name.partition("-")[0] for name in placed}) == 1
        assert max(Counter(placed.values()).values()) == 1, "every pod fills a node"
        winners[next(iter(placed))[0]] += 1
        await delete_gangs(world, *names)
    assert sum(winners.values()) == 10


async def test_both_schedulers_get_on_under_load(world: World):
    for number in range(4):
        await world.node(f"n{number}", cpu="100")
    await a_scheduler(world, "first")
    await a_scheduler(world, "second")
    await asyncio.gather(
        *(
            create_gang(world, scheduler, f"{scheduler}{number}", 10, "1")
            for number in range(10)
            for scheduler in ("first", "second")
        )
    )

    async def all_are_bound() -> bool:
        return len(await bound(world)) == 200

    await eventually(all_are_bound, 20.0)


async def test_a_scheduler_on_its_own_writes_the_lease_once(world: World):
    await world.node(cpu="100")
    engine, client = await a_scheduler(world, "first")
    for number in range(5):
        await create_gang(world, "first", f"g{number}", 2, "1")

    async def all_are_bound() -> bool:
        return len(await bound(world)) == 10

    await eventually(all_are_bound)
    await engine.settled()
    writes = [name for verb, name in client.calls if verb == "update"]
    assert writes == [f"leases/{NAME}"]


async def test_the_lease_is_given_back_at_the_end(world: World):
    await world.node()
    await a_scheduler(world, "first")
    await create_gang(world, "first", "g", 1, "1")

    async def is_bound() -> bool:
        return len(await bound(world)) == 1

    await eventually(is_bound)
    await world.stop()
    lease = await world.direct.get(LEASES, NAME, NAMESPACE)
    assert lease["spec"]["holderIdentity"] == ""


async def test_a_holder_that_is_dead_loses_the_lease(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(binding_lease, "DURATION", 1.0)
    lease = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"holderIdentity": "dead"}}
    await world.direct.create(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})
    await world.node()
    await a_scheduler(world, "first")
    await create_gang(world, "first", "g", 1, "1")

    async def is_bound() -> bool:
        return len(await bound(world)) == 1

    await eventually(is_bound, 15.0)


async def test_without_the_right_to_leases_binds_go_on(world: World):
    def refuse(verb: str, name: str) -> None:
        if "leases" in name and verb != "watch":
            raise ApiError(403, "Forbidden", "leases is forbidden")

    await world.node()
    _, client = await a_scheduler(world, "first")
    client.before = refuse
    await create_gang(world, "first", "g", 1, "1")

    async def is_bound() -> bool:
        return len(await bound(world)) == 1

    await eventually(is_bound)
