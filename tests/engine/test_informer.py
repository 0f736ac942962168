"""Informers: pages, versions, and objects nobody foresaw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.errors import gone
from muster.api.resources import PODS, Resource
from muster.api.types import ObjectMeta, Pod
from muster.client.protocol import Page, WatchEvent
from muster.engine.informer import Informer
from muster.engine.pace import Pace
from muster.scheduler.events import Changed, Event, Removed
from tests.build.examples import examples

OLD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True)


class Script:
    """A server that gives the pages and watches it was told to give, then is silent."""

    def __init__(self, pages: list[Any], watches: list[Any] = ()) -> None:  # type: ignore[assignment]
        self.pages = list(pages)
        self.watches = list(watches)
        self.asked: list[dict[str, Any]] = []

    async def list(self, resource: Resource, **query: Any) -> Page:
        self.asked.append(query)
        answer = self.pages.pop(0)
        if isinstance(answer, Exception):
            raise answer
        into = query.get("into")
        if into is None:
            return answer
        return answer._replace(items=[msgspec.convert(item, into) for item in answer.items])

    async def watch(self, resource: Resource, **query: Any) -> AsyncIterator[WatchEvent]:
        self.asked.append({"watch": True, **query})
        if not self.watches:
            await asyncio.Event().wait()
        for step in self.watches.pop(0):
            if isinstance(step, Exception):
                raise step
            into = query.get("into")
            if step.object is not None and into is not None:
                step = step._replace(object=msgspec.convert(step.object, into))
            yield step


def obj(name: str, version: int, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, **more}


def event(type_: Any, name: str, version: int) -> WatchEvent:
    return WatchEvent(type_, obj(name, version), str(version))


async def follow(script: Script, resource: Resource = PODS) -> list[Event]:
    heard: list[Event] = []

    async def no_wait(seconds: float) -> None:
        await asyncio.sleep(0)

    pace = Pace(lambda: 0.0, no_wait, lambda: 0.0)
    informer = Informer(script, resource, heard.append, pace)  # type: ignore[arg-type]
    task = asyncio.create_task(informer.run())
    for _ in range(200):
        await asyncio.sleep(0)
        if not script.pages and not script.watches:
            break
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return heard


def names(heard: list[Event]) -> list[str]:
    return [
        ("+" + each.object.metadata.name) if isinstance(each, Changed) else ("-" + each.name)
        for each in heard
        if isinstance(each, Changed | Removed)
    ]


async def test_a_list_is_read_page_by_page():
    script = Script([Page([obj("a", 1)], "5", "more"), Page([obj("b", 2)], "5")])

    assert names(await follow(script)) == ["+a", "+b"]
    assert script.asked[1]["continue_token"] == "more"
    assert script.asked[2]["resource_version"] == "5"


async def test_a_list_whose_version_expires_between_pages_is_taken_in_one_piece():
    script = Script([Page([obj("a", 1)], "5", "more"), gone("expired"), Page([obj("a", 1), obj("b", 2)], "6")])

    assert names(await follow(script)) == ["+a", "+b"]
    assert script.asked[2]["limit"] == 0


async def test_bookmarks_move_the_version_from_which_the_watch_goes_on():
    script = Script([Page([], "5")], [[WatchEvent("BOOKMARK", None, "70"), ConnectionError("cut")]])
    script.pages.append(Page([], "70"))  # the look whether the server is back

    await follow(script)

    assert [query["resource_version"] for query in script.asked if query.get("watch")] == ["5", "70"]


async def test_an_older_event_after_a_newer_one_is_not_believed():
    script = Script([Page([], "5")], [[event("ADDED", "a", 6), event("DELETED", "a", 7), event("ADDED", "a", 6)]])

    assert names(await follow(script)) == ["+a", "-a"]


async def test_an_object_that_cannot_be_read_is_skipped_and_the_others_are_not():
    strange = obj("strange", 2, spec={"priority": {"from": "the future"}})
    script = Script([Page([obj("a", 1), strange], "5"), Page([obj("a", 1), strange, obj("b", 3)], "5")])

    assert names(await follow(script)) == ["+a", "+b"]


async def test_fields_of_the_future_are_no_hindrance():
    script = Script([Page([obj("a", 1, spec={"quantumAffinity": {"spin": "up"}}, novelty=[1, 2])], "5")])

    assert names(await follow(script)) == ["+a"]


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

    assert isinstance(changed, Changed)
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


@settings(max_examples=examples(60), deadline=None)
@given(a_history(), st.booleans())
def test_whatever_breaks_every_change_is_heard_once_and_in_order(history: Any, expire: bool):
    told, cuts = history
    heard = asyncio.run(follow_history(told, cuts, expire))

    alive: dict[str, int] = {}
    for each in heard:
        if isinstance(each, Changed):
            version = int(each.object.metadata.resource_version)
            assert version > alive.get(each.object.metadata.name, 0), "nothing older is told after something newer"
            alive[each.object.metadata.name] = version
        elif isinstance(each, Removed):
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

    async def no_wait(seconds: float) -> None:
        await asyncio.sleep(0)

    informer = Informer(Server(), PODS, heard.append, Pace(lambda: 0.0, no_wait, lambda: 0.0))  # type: ignore[arg-type]
    task = asyncio.create_task(informer.run())
    for _ in range(100):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return heard


async def test_refusals_say_which_permission_is_missing():
    from muster.api.errors import ApiError

    heard: list[Event] = []
    stop = asyncio.Event()

    async def wait(seconds: float) -> None:
        await stop.wait()

    script = Script([ApiError(403, "Forbidden", "podgroups.scheduling.k8s.io is forbidden")])
    informer = Informer(script, OLD_GROUPS, heard.append, Pace(lambda: 0.0, wait, lambda: 0.0))  # type: ignore[arg-type]
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(0.01)
    task.cancel()

    assert "list and watch on podgroups in API group scheduling.k8s.io" in informer.trouble


@pytest.mark.parametrize("tries", [1, 5, 40])
def test_delays_grow_and_stay_bounded(tries: int):
    from muster.engine.pace import Backoff

    backoff = Backoff(Pace(lambda: 0.0, asyncio.sleep, lambda: 0.5), first=0.1, most=10.0)
    delays = [backoff.delay() for _ in range(tries)]

    assert delays == sorted(delays)
    assert delays[-1] <= 10.0
