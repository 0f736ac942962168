"""A recording shows the cluster as it was at any moment, forwards and backwards alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.cli.dashboard import recording
from muster.dashboard import recording as module
from muster.dashboard.recording import Recording
from muster.engine import options
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.simulation.decision_log import BadLog, Header, Line, LoggedCycle, LoggedEvent, encode
from muster.views.failures import ViewFailure
from tests.build.objects import a_gang, a_node, pods
from tests.dashboard.pages import RACK, a_browser, get


def a_run() -> list[Line]:
    """Two racks of two nodes; a gang for one rack, then another, as the engine would have logged it."""
    source = options.source(None)
    scheduler = Scheduler(options.config(source))
    lines: list[Line] = [Header(config=source)]

    def tell(at: float, *told: events.Event) -> None:
        for event in told:
            scheduler.handle(event, at)
            lines.append(LoggedEvent(at, event))

    def decide(at: float) -> None:
        while decisions := scheduler.next(at):
            lines.append(LoggedCycle(at, decisions))
            for each in decisions:
                if isinstance(each, d.Bind):
                    tell(at, events.BindSucceeded(each.pod.uid, each.node))

    nodes = [a_node(f"n{i}", cpu=4, labels={RACK: f"r{i // 2}"}) for i in range(4)]
    tell(0.0, *(events.ObjectUpdated("Node", node) for node in nodes), events.CacheSynced())
    for second, name in ((10.0, "first"), (20.0, "second")):
        group = a_gang(name, min_count=2, topology=RACK, created=int(second))
        members = pods(2, group=name, cpu=4, created=int(second), scheduler="muster")
        tell(second, events.ObjectUpdated("PodGroup", group), *(events.ObjectUpdated("Pod", pod) for pod in members))
        decide(second)
    return lines


def written(path: Path, lines: list[Line]) -> Recording:
    path.write_bytes(b"".join(encode(line) for line in lines))
    return recording(path)


async def shown(past: Recording, line: int, viewer: str) -> tuple[Any, ...]:
    board = (await past.at(str(line), viewer)).board
    return dict(board.nodes.rows), dict(board.gangs.rows), board.queue


async def test_each_step_shows_what_was_decided(tmp_path: Path):
    past = written(tmp_path / "log", a_run())
    await past.ready()
    steps = [step for step in past.steps if step.bound]
    assert [(step.name, step.bound, step.text) for step in steps] == [
        ("first", 2, "2 pods of first bound"),
        ("second", 2, "2 pods of second bound"),
    ]
    before = (await past.at(str(steps[0].line - 1))).board
    assert [row.name for row in before.queue] == ["first"]
    assert not any(row.gangs for row in before.nodes.rows.values())
    after = (await past.at(str(steps[0].line))).board
    assert after.queue == []
    assert sum(bool(row.gangs) for row in after.nodes.rows.values()) == 2


async def test_going_back_shows_what_going_forward_showed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CHECKPOINT_LINES", 5)
    lines = a_run()
    past = written(tmp_path / "log", lines)
    forwards = [await shown(past, line, "a") for line in range(1, len(lines) + 1)]
    backwards = [await shown(past, line, "b") for line in range(len(lines), 0, -1)]
    assert forwards == backwards[::-1]


async def test_a_moment_before_is_sent_whole_and_a_later_one_as_a_difference(tmp_path: Path):
    past = written(tmp_path / "log", a_run())
    async with a_browser(past, past=past) as browser:
        steps = [step for step in (await get(browser, "/api/time"))["steps"] if step["bound"]]
        early, late = (step["line"] for step in steps)
        first = await get(browser, f"/api/board?moment={early}&since=0")
        second = await get(browser, f"/api/board?moment={late}&since={first['version']}")
        third = await get(browser, f"/api/board?moment={early}&since={second['version']}")
    assert first["whole"]
    assert third["whole"]
    assert "whole" not in second
    assert len(second["nodes"]) == 2
    assert sorted(node[0] for node in third["nodes"]) == sorted(node[0] for node in first["nodes"])


async def test_why_a_gang_was_placed_where_it_was_is_counted_from_the_moment_before(tmp_path: Path):
    past = written(tmp_path / "log", a_run())
    await past.ready()
    line = next(step.line for step in past.steps if step.bound and step.name == "second")
    (found,) = await past.why_here(line, EntityKey("PodGroup", "ns", "second"))
    chosen = [domain for domain in found.domains if domain.got]
    assert [(domain.seats, domain.got) for domain in chosen] == [(2, 2)]
    assert f"It went to rack {chosen[0].value}: 1 of 2 racks had the 2 seats it needs together" in found.sentence


async def test_times_are_those_of_the_objects(tmp_path: Path):
    past = written(tmp_path / "log", a_run())
    await past.ready()
    first, second = (step.at for step in past.steps if step.bound)
    assert second - first == 10.0
    lines = [line for line, _ in past.times()]
    assert lines[0] == 6  # all nodes are known from here
    assert lines == sorted(lines)


async def test_segments_are_one_recording_and_what_is_added_is_read(tmp_path: Path):
    lines = a_run()
    (tmp_path / "log.000001").write_bytes(b"".join(encode(line) for line in lines))
    past = written(tmp_path / "log", lines[:8])
    await past.ready()
    assert [step.name for step in past.steps if step.bound] == ["first", "second"]
    with (tmp_path / "log").open("ab") as file:
        file.write(b"".join(encode(line) for line in lines[8:]) + b'{"line":"ev')
    await past.ready()
    assert [step.name for step in past.steps if step.bound] == ["first", "second", "first", "second"]
    assert (await past.at("")).board.queue == []


async def test_a_refused_bind_is_taken_back(tmp_path: Path):
    lines = a_run()
    at = next(i for i, line in enumerate(lines) if isinstance(line, LoggedCycle))
    cycle = lines[at]
    assert isinstance(cycle, LoggedCycle)
    bind = next(each for each in cycle.decisions if isinstance(each, d.Bind))
    failed = LoggedEvent(10.0, events.BindFailed(bind.pod.uid, bind.node, "no"))
    past = written(tmp_path / "log", [*lines[: at + 1], failed])
    board = (await past.at("")).board
    assert sum(each.pods for row in board.nodes.rows.values() for each in row.gangs) == 1


async def test_what_is_no_recording_is_refused(tmp_path: Path):
    for data, says in ((b"", "empty"), (b"{}\n", "line 1"), (encode(a_run()[1]), "header")):
        (tmp_path / "log").write_bytes(data)
        with pytest.raises(BadLog, match=says):
            await recording(tmp_path / "log").ready()
    past = written(tmp_path / "log", a_run())
    with pytest.raises(ViewFailure, match="there is no moment"):
        await past.at("100000")


async def test_health_is_sampled_over_the_whole_recording(tmp_path: Path):
    past = written(tmp_path / "log", a_run())
    async with a_browser(past, past=past) as browser:
        found = await get(browser, "/api/health")
    assert found["samples"][-1]["used"]["cpu"] == 1.0
    assert found["samples"][0]["used"]["cpu"] == 0.0
