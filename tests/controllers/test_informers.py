"""Object stores: what the server has, with indexes and handlers."""

from __future__ import annotations

import random

import msgspec
import pytest

from muster.api.resources import POD_GROUPS, PODS
from muster.controllers.informers import Informers, ObjectStore
from muster.controllers.objects import PodView
from tests.controllers.conftest import World
from tests.controllers.flaky import FlakyClient


@pytest.mark.parametrize("seed", range(10))
async def test_a_cache_is_what_the_server_has_however_the_watch_behaves(world: World, seed: int):
    flaky = FlakyClient(world.server, seed, odds=4)
    store = ObjectStore(flaky, PODS, world.clock, PodView)
    seen: set[str] = set()
    store.on_change(lambda old, new: seen.add((new or old).metadata.uid))
    world.follow(store.run())
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
    assert {name: pod.metadata.resource_version for (_, name), pod in store.objects.items()} == truth


def a_pod(name: str, version: int, node: str = "") -> PodView:
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}}, PodView)


def a_store(world: World) -> ObjectStore:
    return ObjectStore(world.client, PODS, world.clock, PodView)


def by_node(pod: PodView) -> str | None:
    return pod.spec.node_name or None


async def test_an_index_follows_its_objects(world: World):
    store = a_store(world)
    store.replace([a_pod("a", 1, "n1")])
    index = store.index("by-node", by_node)
    assert [pod.metadata.name for pod in index.get("n1")] == ["a"], "an index knows what was there before it"

    store.update(a_pod("b", 2))
    store.update(a_pod("a", 3, "n2"))
    assert index.get("n1") == []
    assert "n1" not in index
    assert [pod.metadata.name for pod in index.get("n2")] == ["a"]

    store.delete(a_pod("a", 4, "n2"))
    assert index.get("n2") == []
    assert store.index("by-node", by_node) is index


async def test_handlers_get_old_and_new(world: World):
    store = a_store(world)
    seen: list[tuple[str | None, str | None]] = []

    def version(pod: PodView | None) -> str | None:
        return pod.metadata.resource_version if pod is not None else None

    store.on_change(lambda old, new: seen.append((version(old), version(new))))

    store.replace([a_pod("a", 1), a_pod("b", 2)])
    store.update(a_pod("a", 3))
    store.delete(a_pod("a", 4))
    store.replace([])

    assert seen == [(None, "1"), (None, "2"), ("1", "3"), ("4", None), ("2", None)]


async def test_one_store_serves_all_versions_of_a_resource(world: World):
    informers = Informers(world.client, world.clock)

    assert informers.of(POD_GROUPS) is informers.of(POD_GROUPS._replace(version="v1beta1"))
    assert informers.of(PODS) is not informers.of(POD_GROUPS)
    assert len(informers.all) == 2


async def test_a_resource_that_is_not_served_counts_as_listed_and_is_not_watched(world: World):
    informers = Informers(world.client, world.clock, served=frozenset({("", "pods")}))
    pods, groups = informers.of(PODS), informers.of(POD_GROUPS)
    world.follow(informers.run())
    await world.client.create(
        POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}, "default"
    )

    await informers.wait_synced()
    await world.settle()

    assert pods.served
    assert not groups.served
    assert groups.objects == {}
