"""The decision log replays byte for byte."""

from __future__ import annotations

from pathlib import Path

from muster.api.resources import Resource
from muster.engine import options
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.simulation.decision_log import Header, replay
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.client.clocks import QuickClock
from tests.engine.conftest import World, eventually

POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


def scheduler_of(header: Header) -> Scheduler:
    return Scheduler(options.config(header.config), seed=header.seed, gates=header.feature_gates())


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
    same = replay(lines, scheduler_of)

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
    found = replay(turned, scheduler_of)

    assert found.difference is not None
    assert "n9" in found.difference.logged
    assert "n1" in found.difference.replayed
