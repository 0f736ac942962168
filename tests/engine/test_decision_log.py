"""The decision log replays byte for byte."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from muster.api.resources import PODS, Resource
from muster.engine import decision_log, options
from muster.engine.decision_log import older_segments
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.events import CacheSynced
from muster.scheduler.simulation.decision_log import Header, replay
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.client.clocks import QuickClock
from tests.engine.conftest import World, eventually

POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


def scheduler_of(header: Header) -> Scheduler:
    return Scheduler(options.config(header.config), seed=header.seed, gates=header.feature_gates())


async def start(world: World, log: Path | None = None, size: int = 256 << 20) -> Engine:
    source = options.source(None)
    engine = Engine(
        world.client,
        options.config(source),
        Settings(decision_log=log, decision_log_size=size),
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


async def test_only_the_owner_can_read_the_log(world: World, tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    log.touch(mode=0o644)
    await world.node("n1")
    await start(world, log)
    assert log.stat().st_mode & 0o777 == 0o600


async def test_what_was_decided_is_in_the_file_while_the_scheduler_runs(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(decision_log, "FLUSH_SECONDS", 0.01)
    log = tmp_path / "decisions.jsonl"
    await world.node("n1")
    await start(world, log)
    await world.pod("single")

    async def recorded() -> bool:
        return b'"do":"bind"' in log.read_bytes()

    await eventually(recorded)


async def test_every_segment_of_a_long_log_replays_alone_and_the_oldest_go(world: World, tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    size = 200_000
    for number in range(3):
        await world.node(f"n{number}", cpu="4")
    await a_gang(world, "parked", 20, 20)
    engine = await start(world, log, size)
    for number in range(60):
        await a_gang(world, f"g{number}", 3, 3)

        async def bound(name: str = f"g{number}") -> bool:
            return all([await world.node_of(f"{name}-{member}") for member in range(3)])

        await eventually(bound)
        await engine.settled()
        for member in range(3):
            await world.direct.delete(PODS, f"g{number}-{member}", "default", grace_period_seconds=0)
        await world.direct.delete(POD_GROUPS, f"g{number}", "default")
    await engine.settled()
    await world.stop()

    older = older_segments(log)
    numbers = [int(segment.suffix[1:]) for segment in older]
    assert numbers
    assert numbers[0] > 1, "the oldest are gone"
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert sum(segment.stat().st_size for segment in older) <= size
    for segment in (*older, log):
        found = replay(segment.read_bytes().splitlines(keepends=True), scheduler_of)
        assert found.difference is None, segment
        assert found.decisions > 0
        assert segment.stat().st_mode & 0o777 == 0o600


async def test_a_segment_begins_only_when_no_bind_is_in_flight(world: World, tmp_path: Path):
    log = tmp_path / "decisions.jsonl"
    for number in range(3):
        await world.node(f"n{number}", cpu="1000")
    world.client.slow = 0.01
    engine = await start(world, log, 600_000)
    for number in range(80):
        await a_gang(world, f"g{number}", 3, 2)

    async def all_are_bound() -> bool:
        return all([await world.node_of(f"g{number}-{member}") for number in range(80) for member in range(3)])

    await eventually(all_are_bound, 20.0)
    await engine.settled()
    assert len([name for verb, name in world.client.calls if verb == "bind"]) == 240, "each pod is bound once"
    await world.stop()
    assert older_segments(log)
    for segment in (*older_segments(log), log):
        assert replay(segment.read_bytes().splitlines(keepends=True), scheduler_of).difference is None


def a_log(path: Path, size: int = 1 << 20) -> decision_log.DecisionLog:
    return decision_log.DecisionLog(path, Header({}), size)


def test_what_an_earlier_run_wrote_becomes_an_older_segment(tmp_path: Path):
    path = tmp_path / "log"
    for _ in range(3):
        a_log(path).close()
    assert [each.name for each in older_segments(path)] == ["log.000001", "log.000002"]


def test_a_log_that_cannot_be_written_ends_and_the_scheduler_goes_on(tmp_path: Path):
    made = a_log(tmp_path / "missing" / "log")
    made.event(CacheSynced(), 1.0)
    made.flush()
    made.close()
    assert not made.is_full


def test_a_full_disk_ends_the_log(tmp_path: Path):
    made = a_log(tmp_path / "log")
    assert made._file is not None
    made._file.close()
    made._file = io.BufferedWriter(io.FileIO("/dev/full", "wb"), 16)
    for _ in range(10):
        made.event(CacheSynced(), 1.0)
    made.close()
    assert not made.is_full
