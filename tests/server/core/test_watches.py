"""Watches: where they start, what they send, and what they say when they cannot go on."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from core_api import CONFIG_MAPS, PODS, TABLE, Api, a_config_map

from muster.server import object_lister
from muster.server.request import WatchStream
from muster.server.store import table as store_table
from muster.testing import a_pod


def seen(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


class Watcher:
    """An open watch whose events are taken one by one."""

    def __init__(self, stream: WatchStream) -> None:
        self._frames = stream.frames
        self._lines: list[bytes] = []

    async def next(self) -> dict[str, Any]:
        while not self._lines:
            self._lines = (await asyncio.wait_for(anext(self._frames), 2)).splitlines()  # type: ignore[arg-type]
        return msgspec.json.decode(self._lines.pop(0))

    async def close(self) -> None:
        await self._frames.aclose()  # type: ignore[attr-defined]


async def opened(api: Api, path: str, **query: str) -> Watcher:
    stream = await api.raw("GET", path, watch="true", **query)
    assert isinstance(stream, WatchStream), stream
    return Watcher(stream)


async def test_without_a_version_a_watch_begins_with_what_is_there(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    for version in ({}, {"resourceVersion": "0"}):
        watcher = await opened(api, CONFIG_MAPS, **version)
        first = await watcher.next()
        await api.merge(f"{CONFIG_MAPS}/a", {"data": {"n": str(len(version))}})
        second = await watcher.next()
        await watcher.close()
        assert seen([first, second]) == [("ADDED", "a"), ("MODIFIED", "a")]
        assert first["object"]["kind"] == "ConfigMap"


async def test_from_a_version_a_watch_sends_every_later_change_once_and_in_order(api: Api) -> None:
    made = await api.post(CONFIG_MAPS, a_config_map("a"))
    await api.post(CONFIG_MAPS, a_config_map("b"))
    await api.merge(f"{CONFIG_MAPS}/a", {"data": {"k": "1"}})
    gone = await api.delete(f"{CONFIG_MAPS}/b")
    assert gone.code == 200

    watcher = await opened(api, CONFIG_MAPS, resourceVersion=made.rv)
    events = [await watcher.next() for _ in range(3)]
    await watcher.close()

    assert seen(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == [int(made.rv) + 1, int(made.rv) + 2, int(made.rv) + 3]


async def test_a_watch_of_one_namespace_does_not_see_another(api: Api) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    watcher = await opened(api, CONFIG_MAPS, resourceVersion=str(api.store.revision))
    await api.post("/api/v1/namespaces/other/configmaps", a_config_map("x"))
    await api.post(CONFIG_MAPS, a_config_map("y"))
    assert seen([await watcher.next()]) == [("ADDED", "y")]
    await watcher.close()


async def test_entering_a_selection_is_an_addition_and_leaving_it_a_deletion(api: Api) -> None:
    start = str(api.store.revision)
    await api.post(PODS, a_pod("p", labels={"x": "no"}))
    await api.merge(f"{PODS}/p", {"metadata": {"labels": {"x": "yes"}}})
    await api.merge(f"{PODS}/p", {"metadata": {"labels": {"y": "1"}}})
    await api.merge(f"{PODS}/p", {"metadata": {"labels": {"x": "no"}}})
    await api.delete(f"{PODS}/p")

    watcher = await opened(api, PODS, resourceVersion=start, labelSelector="x=yes")
    events = [await watcher.next() for _ in range(3)]
    await watcher.close()

    assert seen(events) == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]
    left = events[2]["object"]["metadata"]
    assert left["labels"] == {"x": "yes", "y": "1"}
    assert int(left["resourceVersion"]) == int(events[1]["object"]["metadata"]["resourceVersion"]) + 1


async def test_a_pod_leaves_the_watch_of_unbound_pods_when_it_is_bound(api: Api) -> None:
    watcher = await opened(api, PODS, fieldSelector="spec.nodeName=")
    await api.post(PODS, a_pod("p"))
    await api.post(f"{PODS}/p/binding", {"target": {"name": "n1"}})
    assert seen([await watcher.next(), await watcher.next()]) == [("ADDED", "p"), ("DELETED", "p")]
    await watcher.close()


async def test_a_single_object_is_watched_by_name(api: Api) -> None:
    for path, query in ((CONFIG_MAPS, {"fieldSelector": "metadata.name=b"}), (f"{CONFIG_MAPS}/b", {})):
        watcher = await opened(api, path, resourceVersion=str(api.store.revision), **query)
        await api.post(CONFIG_MAPS, a_config_map("a"))
        await api.post(CONFIG_MAPS, a_config_map("b"))
        assert seen([await watcher.next()]) == [("ADDED", "b")]
        await watcher.close()
        await api.delete(CONFIG_MAPS)


async def test_the_initial_state_ends_with_an_annotated_bookmark(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    watcher = await opened(
        api,
        CONFIG_MAPS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
        resourceVersion="",
    )
    events = [await watcher.next(), await watcher.next()]
    await watcher.close()

    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["kind"] == "ConfigMap"
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert events[1]["object"]["metadata"]["resourceVersion"] == str(api.store.revision)


async def test_initial_events_can_be_declined(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    watcher = await opened(api, CONFIG_MAPS, sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
    await api.post(CONFIG_MAPS, a_config_map("b"))
    assert seen([await watcher.next()]) == [("ADDED", "b")]
    await watcher.close()


async def test_a_watch_ends_at_its_timeout_with_a_last_bookmark(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    events = await api.watch(CONFIG_MAPS, timeoutSeconds="1", allowWatchBookmarks="true")
    plain = await api.watch(CONFIG_MAPS, timeoutSeconds="1")

    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["resourceVersion"] == str(api.store.revision)
    assert [event["type"] for event in plain] == ["ADDED"]


async def test_bookmarks_come_regularly_and_only_when_everything_before_was_sent(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.server.watch.BOOKMARK_SECONDS", 0.05)
    watcher = await opened(api, CONFIG_MAPS, resourceVersion=str(api.store.revision), allowWatchBookmarks="true")
    await api.post(PODS, a_pod("elsewhere"))
    await api.post(CONFIG_MAPS, a_config_map("a"))
    events = [await watcher.next() for _ in range(3)]
    await watcher.close()

    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["resourceVersion"] == str(api.store.revision)


async def test_a_version_that_is_too_old_is_410(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a"))
    api.store.table("configmaps").floor = api.store.revision
    refused = await api.get(CONFIG_MAPS, watch="true", resourceVersion="1")
    assert (refused.code, refused.body["reason"]) == (410, "Expired")
    assert refused.body["message"].startswith("too old resource version: 1 (")


async def test_a_reader_that_falls_behind_is_told_410_in_the_stream(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_table, "KEEP_AT_LEAST", 1)
    watcher = await opened(api, CONFIG_MAPS, resourceVersion=str(api.store.revision))
    await api.post(CONFIG_MAPS, a_config_map("a"))
    assert seen([await watcher.next()]) == [("ADDED", "a")]
    for value in range(5):
        await api.merge(f"{CONFIG_MAPS}/a", {"data": {"v": str(value)}})
    api.store.table("configmaps").trim(api.clock.now + 1000)

    last = await watcher.next()
    assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")
    with pytest.raises(StopAsyncIteration):
        await watcher.next()


async def test_a_future_version_is_waited_for_and_sends_nothing_old(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_lister, "FUTURE_WAIT_SECONDS", 0.2)
    future = str(api.store.revision + 2)
    refused = await api.get(CONFIG_MAPS, watch="true", resourceVersion=future)
    opening = asyncio.ensure_future(opened(api, CONFIG_MAPS, resourceVersion=future))
    await asyncio.sleep(0)
    for name in ("a", "b", "c"):
        await api.post(CONFIG_MAPS, a_config_map(name))
    watcher = await opening

    assert refused.code == 504
    assert seen([await watcher.next()]) == [("ADDED", "c")]
    await watcher.close()


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "NotOlderThan"},
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
    ],
)
async def test_watch_options_that_do_not_fit_are_refused(api: Api, query: dict[str, str]) -> None:
    assert (await api.get(CONFIG_MAPS, watch="true", **query)).code == 422


async def test_a_watch_in_another_version_shows_that_version(api: Api) -> None:
    base = "/apis/scheduling.k8s.io/{}/namespaces/default/podgroups"
    watcher = await opened(api, base.format("v1alpha2"))
    await api.post(base.format("v1beta1"), {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    event = await watcher.next()
    await watcher.close()
    assert event["object"]["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert event["object"]["spec"]["disruptionMode"] == "Pod"


async def test_a_table_watch_sends_rows_and_the_columns_once(api: Api) -> None:
    await api.post(CONFIG_MAPS, a_config_map("a", k="v"))
    await api.post(CONFIG_MAPS, a_config_map("b"))
    events = await api.watch(CONFIG_MAPS, accept=TABLE, timeoutSeconds="1", allowWatchBookmarks="true")

    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert all(event["object"]["kind"] == "Table" for event in events)
    assert [bool(event["object"]["columnDefinitions"]) for event in events] == [True, False, False]
    assert events[0]["object"]["rows"][0]["cells"][:2] == ["a", 1]


async def test_every_one_of_many_watchers_gets_every_event_of_a_burst(api: Api) -> None:
    watchers = [await opened(api, CONFIG_MAPS, resourceVersion=str(api.store.revision)) for _ in range(10)]

    async def take(watcher: Watcher) -> list[str]:
        return [(await watcher.next())["object"]["metadata"]["name"] for _ in range(300)]

    taking = [asyncio.ensure_future(take(watcher)) for watcher in watchers]
    for index in range(300):
        await api.post(CONFIG_MAPS, a_config_map(f"c{index}"))
        if index % 50 == 0:
            await asyncio.sleep(0)
    for names in await asyncio.gather(*taking):
        assert names == [f"c{index}" for index in range(300)]
    for watcher in watchers:
        await watcher.close()


async def test_closing_the_server_ends_its_watches(api: Api) -> None:
    watching_ = asyncio.ensure_future(api.watch(CONFIG_MAPS))
    await asyncio.sleep(0.01)
    await api.server.close()
    assert await asyncio.wait_for(watching_, 1) == []
