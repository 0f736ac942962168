"""The engine with the real brain: gangs are bound whole, the decision log replays byte for byte."""

from __future__ import annotations

from pathlib import Path

from muster.api.resources import Resource
from muster.engine import options
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.scheduler.cycle import Brain
from muster.scheduler.replay import Header, replay
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.engine.conftest import World, eventually

POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


def brain_of(header: Header) -> Brain:
    return Brain(options.config(header.config), seed=header.seed, gang_scheduling=header.gangs)


async def start(world: World, log: Path | None = None) -> Engine:
    source = options.source(None)
    engine = Engine(
        world.client,
        options.config(source),
        Settings(decision_log=log),
        pace=world.quick(),
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


async def test_a_decision_log_replays_to_the_same_bytes(world: World, tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    await world.node("n1", cpu="4")
    await world.node("n2", cpu="4")
    await world.pod("single")
    engine = await start(world, log)
    await a_gang(world, "train", 4, 4)
    await a_gang(world, "big", 9, 9)

    async def bound() -> bool:
        return all([await world.node_of(f"train-{number}") for number in range(4)])

    await eventually(bound)
    await engine.settled()
    await world.stop()

    lines = log.read_bytes().splitlines(keepends=True)
    same = replay(lines, brain_of)

    assert same.difference is None
    assert same.decisions >= 5


async def test_a_log_that_was_tampered_with_shows_the_first_difference(world: World, tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    await world.node("n1")
    await world.pod("single")
    engine = await start(world, log)

    async def bound() -> bool:
        return bool(await world.node_of("single"))

    await eventually(bound)
    await engine.settled()
    await world.stop()

    turned = [
        line.replace(b'"node":"n1"', b'"node":"n9"') if b'"turn"' in line else line
        for line in log.read_bytes().splitlines(keepends=True)
    ]
    found = replay(turned, brain_of)

    assert found.difference is not None
    assert "n9" in found.difference.logged
    assert "n1" in found.difference.replayed
