"""A snapshot: the same cluster gives the same bytes, and a scheduler made from it decides as the live one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.scheduler.interface.decisions import Bind
from muster.scheduler.runtime.config import default_config
from muster.scheduler.simulation.snapshot import FORMAT, VERSION, BadSnapshot, Snapshot, decode, encode, scheduler_of
from tests.build.objects import a_gang, a_node, a_pod, pods


def a_snapshot() -> Snapshot:
    objects: dict[str, list[Any]] = {
        "Pod": [*pods(2, "g"), a_pod("running", node="n0")],
        "Node": [a_node("n1"), a_node("n0")],
        "PodGroup": [a_gang("g", 2)],
    }
    return Snapshot(objects, ("default-scheduler",), "2026-01-01T00:00:00Z")


def changed(**fields: Any) -> bytes:
    """The document of a snapshot with some fields replaced."""
    return msgspec.json.encode(msgspec.json.decode(encode(a_snapshot())) | fields)


def test_a_snapshot_is_read_as_it_was_written():
    snapshot = a_snapshot()
    read = decode(encode(snapshot))
    assert (read.schedulers, read.taken_at, len(read)) == (snapshot.schedulers, snapshot.taken_at, len(snapshot))
    assert encode(read) == encode(snapshot)


def test_the_same_cluster_gives_the_same_bytes_in_whatever_order_it_was_listed():
    snapshot = a_snapshot()
    other = msgspec.structs.replace(
        snapshot, objects={kind: found[::-1] for kind, found in reversed(snapshot.objects.items())} | {"Service": []}
    )
    assert encode(other) == encode(snapshot)


def test_pods_come_after_all_that_they_depend_on():
    assert [event.kind for event in a_snapshot().events()] == ["Node", "Node", "PodGroup", "Pod", "Pod", "Pod"]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"{", "it is not a snapshot"),
        (b"\xff", "it is not a snapshot"),
        (b"{}", f"its format is missing, not {FORMAT}"),
        (changed(format="other"), f"its format is other, not {FORMAT}"),
        (changed(version=VERSION + 1), "use a newer muster"),
        (changed(objects={"Node": [{"metadata": "text"}]}), "a Node in it is malformed"),
    ],
    ids=["no json", "no text", "no format", "other format", "newer version", "malformed object"],
)
def test_a_document_that_cannot_be_read_says_why(document: bytes, says: str):
    with pytest.raises(BadSnapshot, match=says):
        decode(document)


def test_kinds_that_this_version_does_not_know_are_left_out():
    assert len(decode(changed(objects={"Unknown": [{"a": 1}]}))) == 0


def test_a_scheduler_made_from_a_snapshot_schedules_its_pending_pods():
    passed: list[str] = []
    scheduler = scheduler_of(
        a_snapshot(), default_config(), lambda all_: (passed.append(event.kind) or event for event in all_)
    )
    binds = [decision for decision in scheduler.next(0.0) if isinstance(decision, Bind)]
    assert [bind.pod.name for bind in binds] == ["g-0", "g-1"]
    assert len(passed) == len(a_snapshot())
