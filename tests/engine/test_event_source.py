"""Event sources: every change once and in order, in the scheduler's own types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.errors import gone
from muster.api.resources import PODS, Resource
from muster.api.types import ObjectMeta, Pod
from muster.client.protocol import Page, WatchEvent
from muster.engine.event_source import EventSource
from muster.scheduler.interface.events import Event, ObjectDeleted, ObjectUpdated
from tests.client.clocks import StoppedClock
from tests.client.scripts import Script, event, obj

OLD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True)


async def follow(script: Script, resource: Resource = PODS, **options: Any) -> list[Event]:
    heard: list[Event] = []
    source = EventSource(script, resource, heard.append, StoppedClock(), **options)  # type: ignore[arg-type]
    task = asyncio.create_task(source.run())
    await script.played()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return heard


def names(heard: list[Event]) -> list[str]:
    return [
        ("+" + each.object.metadata.name) if isinstance(each, ObjectUpdated) else ("-" + each.name)
        for each in heard
        if isinstance(each, ObjectUpdated | ObjectDeleted)
    ]


async def test_after_a_new_list_only_differences_are_reported():
    script = Script([Page([obj("a", 1), obj("b", 2)], "5"), Page([obj("b", 2), obj("c", 7)], "9")], [[gone("too old")]])

    assert names(await follow(script)) == ["+a", "+b", "+c", "-a"]


async def test_an_object_that_was_replaced_under_its_name_is_removed_first():
    other = obj("a", 6)
    other["metadata"]["uid"] = "another"
    script = Script([Page([obj("a", 1)], "5")], [[WatchEvent("MODIFIED", other, "6")]])

    heard = await follow(script)

    assert names(heard) == ["+a", "-a", "+a"]
    assert isinstance(heard[1], ObjectDeleted)
    assert heard[1].uid == "uid-a"


async def test_the_deletion_of_an_object_that_was_never_seen_is_not_reported():
    assert names(await follow(Script([Page([], "5")], [[event("DELETED", "a", 6)]]))) == []


async def test_an_object_is_adjusted_before_it_is_reported_and_its_uid_forgotten_with_it():
    def adjust(pod: Pod) -> Pod:
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels={"seen": "yes"}))

    forgotten: list[str] = []
    known: dict[tuple[str, str], Any] = {}
    script = Script([Page([obj("a", 1), obj("b", 1)], "5")], [[event("DELETED", "a", 6)]])

    heard = await follow(script, adjust=adjust, forget=forgotten.append, known=known)

    assert isinstance(heard[0], ObjectUpdated)
    assert heard[0].object.metadata.labels == {"seen": "yes"}
    assert forgotten == ["uid-a"]
    assert list(known) == [("default", "b")]


async def test_groups_of_kubernetes_1_36_arrive_in_the_hub_version():
    old = obj(
        "g",
        1,
        spec={
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "disruptionMode": "PodGroup",
        },
        status={"conditions": [{"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}]},
    )

    (changed,) = await follow(Script([Page([old], "5")]), OLD_GROUPS)

    assert isinstance(changed, ObjectUpdated)
    group = changed.object
    assert group.spec.workload_ref.template_name == "t"
    assert group.spec.disruption_mode.all is not None
    assert group.status.conditions[0].type == "PodGroupInitiallyScheduled"


@st.composite
def a_history(draw: st.DrawFn) -> tuple[list[tuple[str, str, int]], list[int]]:
    """What happened to a few objects, and after how many events each connection broke."""
    alive: set[str] = set()
    history: list[tuple[str, str, int]] = []
    for version in range(10, 10 + draw(st.integers(1, 25))):
        name = draw(st.sampled_from("abcd"))
        if name in alive and draw(st.booleans()):
            alive.discard(name)
            history.append(("DELETED", name, version))
        else:
            history.append(("MODIFIED" if name in alive else "ADDED", name, version))
            alive.add(name)
    return history, draw(st.lists(st.integers(0, 30), max_size=4))


@settings(max_examples=60, deadline=None)
@given(a_history(), st.booleans())
def test_whatever_breaks_every_change_is_heard_once_and_in_order(history: Any, expire: bool):
    told, cuts = history
    heard = asyncio.run(follow_history(told, cuts, expire))

    alive: dict[str, int] = {}
    for each in heard:
        if isinstance(each, ObjectUpdated):
            version = int(each.object.metadata.resource_version)
            assert version > alive.get(each.object.metadata.name, 0), "nothing older is told after something newer"
            alive[each.object.metadata.name] = version
        elif isinstance(each, ObjectDeleted):
            assert each.name in alive, "only what was told can be removed"
            del alive[each.name]
    assert alive == state_after(told, len(told))


def state_after(told: list[tuple[str, str, int]], count: int) -> dict[str, int]:
    state: dict[str, int] = {}
    for type_, name, version in told[:count]:
        if type_ == "DELETED":
            state.pop(name, None)
        else:
            state[name] = version
    return state


async def follow_history(told: list[tuple[str, str, int]], cuts: list[int], expire: bool) -> list[Event]:
    """A server with that history whose watches break, or expire, where the cuts say, and repeat the last event."""

    class Server:
        position = 0

        async def list(self, resource: Resource, **query: Any) -> Page:
            items = [obj(name, version) for name, version in state_after(told, self.position).items()]
            version = told[self.position - 1][2] if self.position else 9
            return Page([msgspec.convert(item, Pod) for item in items], str(version))

        async def watch(self, resource: Resource, **query: Any) -> AsyncIterator[WatchEvent]:
            since = int(query["resource_version"])
            cut = cuts.pop(0) if cuts else 10**6
            start = next((i for i, step in enumerate(told) if step[2] > since), len(told))
            for number, (type_, name, version) in enumerate(told[max(0, start - 1) :]):
                if number > cut:
                    self.position = min(len(told), self.position + 3)
                    raise gone("too old") if expire else ConnectionError("cut")
                meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", resource_version=str(version))
                self.position = max(self.position, max(0, start - 1) + number + 1)
                yield WatchEvent(type_, Pod(metadata=meta), str(version))  # type: ignore[arg-type]
            await asyncio.Event().wait()

    heard: list[Event] = []
    source = EventSource(Server(), PODS, heard.append, StoppedClock())  # type: ignore[arg-type]
    task = asyncio.create_task(source.run())
    for _ in range(100):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return heard
