"""Reflectors: list, watch, resume, list again; each change once, and objects that cannot be decoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster.api.errors import ApiError, gone, internal
from muster.api.resources import PODS, Resource
from muster.api.types import Pod
from muster.client.protocol import Page, WatchEvent
from muster.client.reflector import Reflector, StoreFunctions
from tests.client.clocks import StoppedClock
from tests.client.scripts import Script, event, obj

GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True)


class Record:
    """What a store was told: lists as `=a,b`, updates as `+a`, deletions as `-a`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.functions = StoreFunctions(
            lambda objects: self.told.append("=" + ",".join(each.metadata.name for each in objects)),
            lambda obj: self.told.append("+" + obj.metadata.name),
            lambda obj: self.told.append("-" + obj.metadata.name),
        )


@asynccontextmanager
async def reflecting(script: Script, clock: Any = None, **options: Any) -> AsyncIterator[tuple[Record, Reflector]]:
    record = Record()
    options.setdefault("into", Pod)
    reflector = Reflector(script, PODS, record.functions, clock or StoppedClock(), **options)  # type: ignore[arg-type]
    task = asyncio.create_task(reflector.run())
    await script.played()
    try:
        yield record, reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def told(script: Script, **options: Any) -> list[str]:
    async with reflecting(script, **options) as (record, _):
        return record.told


def watched_from(script: Script) -> list[str]:
    return [query["resource_version"] for query in script.asked if query.get("watch")]


async def test_a_list_is_read_page_by_page_and_watched_from_there():
    script = Script([Page([obj("a", 1)], "5", "more"), Page([obj("b", 2)], "5")])

    assert await told(script) == ["=a,b"]
    assert script.asked[1]["continue_token"] == "more"
    assert watched_from(script) == ["5"]


async def test_a_list_whose_version_expires_between_pages_is_taken_in_one_piece():
    script = Script([Page([obj("a", 1)], "5", "more"), gone("expired"), Page([obj("a", 1), obj("b", 2)], "6")])

    assert await told(script) == ["=a,b"]
    assert script.asked[2]["limit"] == 0
    assert watched_from(script) == ["6"]


async def test_a_store_is_synced_when_the_first_list_is_in_it():
    async with reflecting(Script([ConnectionError("down"), Page([obj("a", 1)], "5")])) as (record, reflector):
        assert record.told == ["=a"]
        assert reflector.synced.is_set()


async def test_changes_arrive_in_order():
    script = Script([Page([obj("a", 1)], "5")], [[event("ADDED", "b", 6), event("DELETED", "a", 7)]])

    assert await told(script) == ["=a", "+b", "-a"]


async def test_bookmarks_move_the_version_from_which_the_watch_goes_on():
    script = Script([Page([], "5")], [[WatchEvent("BOOKMARK", None, "70"), ConnectionError("cut")]])
    script.pages.append(Page([], "70"))  # the look whether the server is back

    await told(script)

    assert watched_from(script) == ["5", "70"]


async def test_a_broken_watch_is_resumed_without_a_new_list():
    script = Script(
        [Page([], "5"), Page([], "6")], [[event("ADDED", "a", 6), internal("boom")], [event("ADDED", "b", 7)]]
    )

    assert await told(script) == ["=", "+a", "+b"]
    assert watched_from(script)[:2] == ["5", "6"]


async def test_an_expired_watch_lists_again():
    script = Script([Page([obj("a", 1)], "5"), Page([obj("b", 8)], "9")], [[gone("too old")]])

    assert await told(script) == ["=a", "=b"]
    assert watched_from(script) == ["5", "9"]


async def test_an_older_event_after_a_newer_one_is_not_delivered():
    script = Script([Page([], "5")], [[event("ADDED", "a", 6), event("DELETED", "a", 7), event("ADDED", "a", 6)]])

    assert await told(script) == ["=", "+a", "-a"]


async def test_an_object_that_cannot_be_decoded_is_skipped_and_the_others_are_not():
    strange = obj("strange", 2, spec={"priority": {"from": "the future"}})
    again = Page([obj("a", 1), strange, obj("b", 3)], "5")
    script = Script(
        [Page([obj("a", 1), strange], "5"), again], [[WatchEvent("MODIFIED", strange, "6"), event("ADDED", "c", 7)]]
    )

    assert await told(script) == ["=a,b", "+c"]


async def test_unknown_fields_are_no_hindrance():
    script = Script([Page([obj("a", 1, spec={"quantumAffinity": {"spin": "up"}}, novelty=[1, 2])], "5")])

    assert await told(script) == ["=a"]


async def test_a_conversion_is_applied_before_objects_are_decoded():
    def renamed(given: dict[str, Any]) -> dict[str, Any]:
        return {**given, "metadata": {**given["metadata"], "name": "new-" + given["metadata"]["name"]}}

    script = Script([Page([obj("a", 1)], "5")], [[event("ADDED", "b", 6)]])

    assert await told(script, convert=renamed) == ["=new-a", "+new-b"]


async def test_a_selector_narrows_list_and_watch():
    script = Script([Page([], "5")])

    await told(script, label_selector="app=x")

    assert [query["label_selector"] for query in script.asked] == ["app=x", "app=x"]


async def test_a_refusal_names_the_missing_permission_until_it_is_over():
    clock = StoppedClock()
    forbidden = ApiError(403, "Forbidden", "podgroups.scheduling.k8s.io is forbidden")
    script, record = Script([forbidden]), Record()
    reflector = Reflector(script, GROUPS, record.functions, clock, into=Pod)  # type: ignore[arg-type]
    asleep = asyncio.Event()
    clock.sleep = lambda seconds: asleep.wait()  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(0.01)
    assert "list and watch on podgroups in API group scheduling.k8s.io" in reflector.trouble

    script.pages.append(Page([], "5"))
    asleep.set()
    await script.played()

    assert reflector.trouble == ""
    task.cancel()


@pytest.mark.parametrize("ended", [[], [event("ADDED", "a", 6)]])
async def test_a_watch_that_ends_at_once_is_not_opened_again_at_once(ended: list[WatchEvent]):
    clock = StoppedClock()
    async with reflecting(Script([Page([], "5")], [list(ended), [], []]), clock):
        assert clock.slept == [0.2, 0.4, 0.8]
