"""`muster replay`: proof of equality, or the first difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.api.types import Node, NodeStatus, ObjectMeta, Pod, PodMeta, PodSpec
from muster.cli import exits
from muster.cli.main import run
from muster.engine import options
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import events
from muster.scheduler.simulation.decision_log import Header, Line, LoggedCycle, LoggedEvent, decode, encode


def a_log() -> list[bytes]:
    """A recorded run: two nodes, three pods, as the engine would have written it."""
    source = options.source(None)
    scheduler = Scheduler(options.config(source), seed=7)
    room = NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
    pods = [Pod(PodMeta(name=n, namespace="default", uid=n), PodSpec(scheduler_name="muster")) for n in ("a", "b", "c")]
    told: list[events.Event] = [
        *(events.ObjectUpdated("Node", Node(ObjectMeta(name=name), status=room)) for name in ("n1", "n2")),
        *(events.ObjectUpdated("Pod", pod) for pod in pods),
        events.CacheSynced(),
    ]
    lines: list[Line] = [Header(config=source, seed=7)]
    for number, event in enumerate(told):
        scheduler.handle(event, float(number))
        lines.append(LoggedEvent(float(number), event))
    while True:
        decisions = scheduler.next(10.0)
        lines.append(LoggedCycle(10.0, decisions))
        if not decisions:
            return [encode(line) for line in lines]


def test_an_honest_log_is_proven_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    log = tmp_path / "log"
    log.write_bytes(b"".join(a_log()))

    assert run(["replay", str(log)]) == exits.OK
    assert "byte for byte" in capsys.readouterr().out
    assert run(["replay", str(log), "-o", "json"]) == exits.OK
    assert set(json.loads(capsys.readouterr().out)) == {"events", "turns", "decisions", "difference"}


def test_the_first_difference_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lines = a_log()
    changed = [line.replace(b'"name":"b"', b'"name":"x"') if b'"turn"' in line else line for line in lines]
    log = tmp_path / "log"
    log.write_bytes(b"".join(changed))

    assert run(["replay", str(log)]) == exits.NO
    said = capsys.readouterr().out
    assert "logged" in said
    assert '"x"' in said
    assert '"b"' in said


def test_a_missing_turn_is_a_difference(tmp_path: Path):
    lines = a_log()
    first = next(i for i, line in enumerate(lines) if b'"turn"' in line)
    log = tmp_path / "log"
    log.write_bytes(b"".join([*lines[:first], *lines[first + 1 :]]))

    assert run(["replay", str(log)]) == exits.NO


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "empty"),
        (b"{}\n", "line 1"),
        (b"not json\n", "line 1"),
        (b'{"line":"turn","at":1,"decisions":[]}\n', "does not begin with its header"),
        (b'{"line":"muster-decision-log","config":{},"version":99}\n', "version 99"),
    ],
)
def test_a_file_that_is_no_log_is_explained(
    tmp_path: Path, text: bytes, words: str, capsys: pytest.CaptureFixture[str]
):
    log = tmp_path / "log"
    log.write_bytes(text)

    assert run(["replay", str(log)]) == exits.BAD_INPUT
    assert words in capsys.readouterr().err


def test_every_line_survives_a_round_trip():
    for line in a_log():
        assert encode(decode(line)) == line


def test_the_segments_of_a_log_are_replayed_the_oldest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    whole = b"".join(a_log())
    for name in ("log", "log.000003", "log.000012"):
        (tmp_path / name).write_bytes(whole)

    assert run(["replay", str(tmp_path / "log"), "-o", "json"]) == exits.OK
    together = json.loads(capsys.readouterr().out)
    assert run(["replay", str(tmp_path / "log.000003"), "-o", "json"]) == exits.OK
    single = json.loads(capsys.readouterr().out)
    assert together["events"] == 3 * single["events"]

    changed = [line.replace(b'"name":"b"', b'"name":"x"') if b'"turn"' in line else line for line in a_log()]
    (tmp_path / "log.000012").write_bytes(b"".join(changed))
    assert run(["replay", str(tmp_path / "log")]) == exits.NO
    assert "log.000012" in capsys.readouterr().out


def test_a_newer_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    log = tmp_path / "log"
    log.write_bytes(a_log()[0].replace(b'"version":2', b'"version":3'))
    assert run(["replay", str(log)]) == exits.BAD_INPUT
    assert "newer" in capsys.readouterr().err
