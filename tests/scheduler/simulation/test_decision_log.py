"""A decision log is run again and compared; the first difference is reported with both sides."""

from __future__ import annotations

import pytest

from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface.events import CacheSynced, Event, ObjectUpdated
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.runtime.config import load
from muster.scheduler.simulation.decision_log import (
    BadLog,
    Header,
    Line,
    LoggedCycle,
    LoggedEvent,
    decode,
    encode,
    replay,
)
from tests.build.objects import a_gang, a_node, pods

CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def make_scheduler(header: Header) -> Scheduler:
    return Scheduler(load(header.config), seed=header.seed, gates=header.feature_gates())


def a_log() -> list[Line]:
    """A gang arrives and is bound."""
    header = Header(CONFIG)
    scheduler = make_scheduler(header)
    told: list[Event] = [ObjectUpdated("Node", a_node("n0", cpu=2)), ObjectUpdated("PodGroup", a_gang("g", 2))]
    told += [ObjectUpdated("Pod", pod) for pod in pods(2, "g")]
    lines: list[Line] = [header]
    for event in (*told, CacheSynced()):
        scheduler.handle(event, 1.0)
        lines.append(LoggedEvent(1.0, event))
    lines.append(LoggedCycle(2.0, scheduler.next(2.0)))
    return lines


def replayed(lines: list[Line]):
    return replay([encode(line) for line in lines], make_scheduler)


def test_every_line_is_read_as_it_was_written():
    for line in a_log():
        assert decode(encode(line)) == line


def test_a_log_that_is_run_again_gives_the_same_decisions():
    found = replayed(a_log())
    assert (found.events, found.cycles, found.decisions, found.difference) == (5, 1, 2, None)


def test_empty_lines_are_skipped():
    assert replay([b"\n", *map(encode, a_log()), b"  \n"], make_scheduler).difference is None


@pytest.mark.parametrize(("logged", "index"), [("another node", 0), ("one bind less", 1), ("one more", 2)])
def test_the_first_difference_is_reported_with_both_sides(logged: str, index: int):
    lines = a_log()
    cycle = lines[-1]
    assert isinstance(cycle, LoggedCycle)
    extra = d.Bind(ObjectRef("Pod", "ns", "other"), "n9")
    decisions = {
        "another node": [extra, *cycle.decisions[1:]],
        "one bind less": cycle.decisions[:-1],
        "one more": [*cycle.decisions, extra],
    }[logged]
    difference = replayed([*lines[:-1], LoggedCycle(cycle.at, decisions)]).difference
    assert difference is not None
    assert (difference.line, difference.at, difference.index) == (len(lines), 2.0, index)
    assert f"line {len(lines)} (time 2.0): decision {index} differs" in str(difference)
    assert ("(none)" in str(difference)) == (logged != "another node")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "the log is empty"),
        ([b"{"], "line 1: "),
        ([encode(LoggedEvent(0.0, CacheSynced()))], "line 1: the log does not begin with its header"),
        ([encode(Header(CONFIG)), encode(Header(CONFIG))], "line 2: a second header"),
        ([encode(Header(CONFIG, version=9))], "line 1: log version 9 is newer than 2"),
        (
            [encode(Header(CONFIG)), encode(LoggedEvent(0.0, ObjectUpdated("Moon", {})))],
            "line 2: unknown kind Moon",
        ),
    ],
    ids=["empty", "no json", "no header", "two headers", "another version", "unknown kind"],
)
def test_a_log_that_cannot_be_read_says_where_and_why(lines: list[bytes], says: str):
    with pytest.raises(BadLog, match=says):
        replay(lines, make_scheduler)


def test_a_line_that_was_cut_off_by_a_kill_is_left_out():
    lines = [encode(line) for line in a_log()]
    found = replay([*lines[:-1], lines[-1][:20]], make_scheduler)
    assert (found.events, found.cycles, found.difference) == (5, 0, None)


def test_a_log_of_an_older_format_is_read():
    header, *rest = a_log()
    assert isinstance(header, Header)
    assert replayed([Header(header.config, version=1), *rest]).difference is None
