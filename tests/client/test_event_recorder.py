"""The event recorder: series, bounds, and both forms on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError, not_found
from muster.api.resources import CORE_EVENTS, EVENTS, Resource
from muster.client import event_recorder
from muster.client.event_recorder import (
    CountFormat,
    EventFormat,
    EventRecorder,
    ObjectReference,
    Occurrence,
    SeriesFormat,
)
from tests.client.clocks import StoppedClock

POD = ObjectReference("v1", "Pod", "ns", "p", "u1", "7")


def an_occurrence(note: str = "0/1 nodes are available", regarding: ObjectReference = POD) -> Occurrence:
    return Occurrence(regarding, "Warning", "FailedScheduling", note, "muster", "Scheduling")


class Events:
    """A server for events: it completes names and can lose or refuse them."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, Resource, str]] = []
        self.refusal: Exception | None = None

    async def create(self, resource: Resource, obj: dict[str, Any], namespace: str) -> dict[str, Any]:
        self.writes.append(("create", resource, namespace))
        if self.refusal is not None:
            raise self.refusal
        meta = obj["metadata"]
        name = meta.get("name") or f"{meta['generateName']}{len(self.writes)}"
        self.stored[name] = {**obj, "metadata": {**meta, "name": name}}
        return self.stored[name]

    async def patch(self, resource: Resource, name: str, patch: dict[str, Any], namespace: str) -> dict[str, Any]:
        self.writes.append(("patch", resource, namespace))
        if self.refusal is not None:
            raise self.refusal
        if name not in self.stored:
            raise not_found("", "events", name)
        self.stored[name] |= patch
        return self.stored[name]


class Scene:
    def __init__(self, form: EventFormat) -> None:
        self.events, self.clock = Events(), StoppedClock()
        self.recorder = EventRecorder(self.events, self.clock, form)  # type: ignore[arg-type]

    async def record(self, occurrence: Occurrence | None = None) -> None:
        call = self.recorder.record(occurrence or an_occurrence())
        assert call is not None
        await call.run()

    def only(self) -> dict[str, Any]:
        (event,) = self.events.stored.values()
        return event


@pytest.fixture(params=[SeriesFormat("host"), CountFormat()], ids=["series", "count"])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.param)


def count_of(event: dict[str, Any]) -> int:
    return event["count"] if "count" in event else event.get("series", {}).get("count", 1)


async def test_a_repeated_occurrence_raises_the_count_of_one_event(scene: Scene):
    for version in ("7", "8", "9"):
        await scene.record(an_occurrence(regarding=POD._replace(resource_version=version)))

    assert count_of(scene.only()) == 3
    assert [verb for verb, _, _ in scene.events.writes] == ["create", "patch", "patch"]


async def test_other_words_are_another_event(scene: Scene):
    await scene.record()
    await scene.record(an_occurrence("0/2 nodes are available"))

    assert len(scene.events.stored) == 2


async def test_what_repeats_while_its_call_waits_needs_no_call_of_its_own(scene: Scene):
    call = scene.recorder.record(an_occurrence())
    assert scene.recorder.record(an_occurrence()) is None
    assert call is not None

    await call.run()

    assert count_of(scene.only()) == 2


async def test_an_event_that_expired_begins_anew(scene: Scene):
    await scene.record()
    await scene.record()
    scene.events.stored.clear()

    await scene.record()

    assert count_of(scene.only()) == 1


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no"), ConnectionError("cut"), TimeoutError()])
async def test_an_event_that_cannot_be_written_is_dropped_and_written_when_it_repeats(scene: Scene, error: Exception):
    scene.events.refusal = error
    await scene.record()
    assert scene.events.stored == {}

    scene.events.refusal = None
    await scene.record()

    assert count_of(scene.only()) == 2


async def test_beyond_the_bound_events_are_dropped_and_counted(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_recorder, "MOST_QUEUED", 2)
    calls = [scene.recorder.record(an_occurrence(f"note {number}")) for number in range(3)]

    assert [call is None for call in calls] == [False, False, True]
    assert scene.recorder.dropped == 1


async def test_of_series_only_so_many_are_remembered(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_recorder, "MOST_SERIES", 2)
    for number in range(3):
        await scene.record(an_occurrence(f"note {number}"))

    await scene.record(an_occurrence("note 0"))

    assert [count_of(event) for event in scene.events.stored.values()] == [1, 1, 1, 1]


async def test_an_event_about_a_cluster_scoped_object_is_in_the_default_namespace(scene: Scene):
    await scene.record(an_occurrence(regarding=ObjectReference("v1", "Node", "", "n1", "u2")))

    assert scene.only()["metadata"]["namespace"] == "default"
    assert scene.events.writes[0][2] == "default"


async def test_a_series_that_was_silent_for_long_is_not_continued():
    scene = Scene(SeriesFormat("host"))
    await scene.record()
    scene.clock.time += SeriesFormat.series_seconds

    await scene.record()

    assert [count_of(event) for event in scene.events.stored.values()] == [1, 1]


async def test_the_form_of_events_k8s_io():
    scene = Scene(SeriesFormat("host"))
    await scene.record(an_occurrence("x" * 5000)._replace(related=ObjectReference("v1", "Node", "", "n1")))

    event = scene.only()
    assert scene.events.writes[0][1] == EVENTS
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "p",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert event["related"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert (event["reportingController"], event["reportingInstance"]) == ("muster", "host")
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "FailedScheduling", "Scheduling")
    assert event["eventTime"] == "1970-01-01T00:00:00.000000Z"
    assert len(event["note"]) == 1024
    assert "series" not in event


async def test_the_form_of_core_events():
    scene = Scene(CountFormat())
    await scene.record()
    scene.clock.time = 60.0
    await scene.record()

    event = scene.only()
    assert scene.events.writes[0][1] == CORE_EVENTS
    assert event["metadata"]["generateName"] == "p."
    assert event["involvedObject"]["resourceVersion"] == "7"
    assert event["source"] == {"component": "muster"}
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z")
    assert event["message"] == "0/1 nodes are available"
