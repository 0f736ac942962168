"""The engine end to end against a real API server in memory, with a scheduler of the tests and with Muster's own."""

from __future__ import annotations

from pathlib import Path

from muster.api.resources import Resource
from muster.engine import options
from muster.engine.engine import Engine, Settings
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.client.clocks import QuickClock
from tests.engine.builders import FirstNodeScheduler
from tests.engine.conftest import World, eventually


async def test_pods_that_exist_at_the_start_are_bound(world: World):
    await world.node()
    await world.pod("early")

    await world.start()

    async def bound() -> bool:
        return await world.node_of("early") == "n1"

    await eventually(bound)


async def test_pods_that_come_later_are_bound(world: World):
    await world.node()
    engine = await world.start()
    await world.pod("late")

    async def bound() -> bool:
        return await world.node_of("late") == "n1"

    await eventually(bound)
    await engine.settled()
    assert len(world.client.verbs("bind")) == 1


async def test_the_scheduler_hears_synced_after_the_first_lists(world: World):
    await world.node()
    await world.pod("early")
    scheduler = FirstNodeScheduler()

    await world.start(scheduler)

    kinds = [type(event).__name__ for event in scheduler.heard]
    assert "CacheSynced" in kinds
    before = scheduler.heard[: kinds.index("CacheSynced")]
    assert {getattr(event, "kind", "") for event in before} >= {"Pod", "Node"}


POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


async def start(world: World, log: Path | None = None) -> Engine:
    source = options.source(None)
    engine = Engine(
        world.client,
        options.config(source),
        Settings(decision_log=log),
        clock=QuickClock(),
        config_source=source,
    )
    await world.launch(engine)
    return engine


async def a_gang(world: World, name: str, size: int, minimum: int, cpu: str = "1") -> None:
    await world.direct.create(POD_GROUPS, in_version(a_pod_group(name, min_count=minimum), "v1beta1"), "default")
    for number in range(size):
        await world.pod(f"{name}-{number}", group=name, cpu=cpu)


async def test_a_gang_that_fits_is_bound_whole(world: World):
    await world.node("n1", cpu="4")
    await world.node("n2", cpu="4")
    await a_gang(world, "train", 6, 6)

    await start(world)

    async def bound() -> bool:
        return all([await world.node_of(f"train-{number}") for number in range(6)])

    await eventually(bound)

    async def said() -> bool:
        group = await world.direct.get(POD_GROUPS, "train", "default")
        conditions = {each["type"]: each["status"] for each in group.get("status", {}).get("conditions", [])}
        return conditions.get("PodGroupInitiallyScheduled") == "True"

    await eventually(said)


async def test_of_a_gang_that_does_not_fit_nothing_is_bound_and_every_pod_is_told(world: World):
    await world.node("n1", cpu="4")
    await a_gang(world, "big", 6, 6)

    engine = await start(world)

    async def told() -> bool:
        pod = await world.get("big-5")
        return any(each["type"] == "PodScheduled" for each in pod.get("status", {}).get("conditions", []))

    await eventually(told)
    await engine.settled()
    assert world.client.verbs("bind") == []
