"""Many writers on a durable store, many watchers that come and go: what everybody saw is checked at the end.

Ordered, unique, atomic, without a gap, resumable, bookmarked truthfully, filtered rightly, and each deletion with the
state it removed: the checks read the store's own log and share nothing with the code that sends events.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from core_api import CONFIG_MAPS, Api, a_config_map

from muster.server.request import WatchStream
from muster.server.store.records import DELETED, Change
from muster.server.store.sqlite import SqliteStore

NAMES = [f"c{index}" for index in range(6)]


async def write(api: Api, rng: random.Random, count: int) -> None:
    for step in range(count):
        path = f"{CONFIG_MAPS}/{(name := rng.choice(NAMES))}"
        label = {"side": rng.choice(["left", "right"])}
        match rng.randrange(4):
            case 0:
                body = a_config_map(name)
                body["metadata"]["labels"] = label
                await api.post(CONFIG_MAPS, body)
            case 1:
                await api.merge(path, {"metadata": {"labels": label}})
            case 2:
                await api.merge(path, {"data": {"step": f"{step}-{rng.random()}"}})
            case _:
                await api.delete(path)
        if rng.random() < 0.3:
            await asyncio.sleep(0)


class Watcher:
    """Follows the collection, drops its connection now and then, and resumes where it was."""

    def __init__(self, api: Api, seed: int, selector: str) -> None:
        self.api = api
        self.rng = random.Random(seed)
        self.selector = selector
        self.seen: list[tuple[str, str, int, dict[str, str]]] = []
        self.revision = 0

    async def run(self) -> None:
        listed = await self.api.get(CONFIG_MAPS, labelSelector=self.selector)
        self.revision = self.start = int(listed.rv)
        self.initial = {item["metadata"]["name"]: item for item in listed.body["items"]}
        while not self.api.server.backend.closing:
            await self._follow(self.rng.randrange(1, 30))

    async def _follow(self, events: int) -> None:
        query = {"watch": "true", "resourceVersion": str(self.revision), "allowWatchBookmarks": "true"}
        stream = await self.api.raw("GET", CONFIG_MAPS, timeoutSeconds="1", labelSelector=self.selector, **query)
        assert isinstance(stream, WatchStream)
        async for chunk in stream.frames:
            for line in chunk.splitlines():
                self._take(msgspec.json.decode(line))
                events -= 1
                if events == 0:
                    # The rest of the chunk is lost on the way; resuming must bring it again.
                    await stream.frames.aclose()  # type: ignore[attr-defined]
                    return

    def _take(self, event: dict[str, Any]) -> None:
        meta = event["object"]["metadata"]
        revision = int(meta["resourceVersion"])
        assert revision >= self.revision
        self.revision = revision
        if event["type"] != "BOOKMARK":
            self.seen.append((event["type"], meta["name"], revision, meta.get("labels") or {}))


def selected(selector: str, labels: dict[str, str] | None) -> bool:
    return not selector or (labels or {}).get("side") == selector.partition("=")[2]


def labels_in(body: bytes) -> dict[str, str]:
    return msgspec.json.decode(body)["metadata"].get("labels") or {}


def expected(changes: list[Change], selector: str, since: int) -> list[tuple[str, str, int, dict[str, str]]]:
    """What a watcher of this selection has to see, worked out from the log alone."""
    found: list[tuple[str, str, int, dict[str, str]]] = []
    for change in changes:
        if change.revision <= since:
            continue
        before = labels_in(change.previous.body) if change.previous else None
        was = before is not None and selected(selector, before)
        after = None if change.type == DELETED else labels_in(change.record.body)
        is_ = after is not None and selected(selector, after)
        if was or is_:
            type = "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED"
            found.append((type, change.record.key[1], change.revision, (after if is_ else before) or {}))
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_watcher_sees_every_change_of_its_selection_exactly_once(tmp_path: Path, seed: int) -> None:
    store = SqliteStore.open(tmp_path)
    api = await Api(store).start()
    selectors = ["", "side=left", "side=right"]
    watchers = [Watcher(api, seed * 100 + index, selectors[index % 3]) for index in range(9)]
    following: list[asyncio.Future[None]] = []
    writers = [asyncio.ensure_future(write(api, random.Random(seed * 10 + index), 60)) for index in range(5)]
    for watcher in watchers:
        following.append(asyncio.ensure_future(watcher.run()))
        await asyncio.sleep(0.005)
    await asyncio.gather(*writers)
    last = store.revision
    while any(watcher.revision < last for watcher in watchers):  # noqa: ASYNC110 - nobody could set an event
        await asyncio.sleep(0.01)
    await api.server.close()
    await asyncio.gather(*following)

    changes = store.table("configmaps").changes
    assert [change.revision for change in changes] == sorted({change.revision for change in changes})
    for watcher in watchers:
        assert watcher.seen == expected(changes, watcher.selector, watcher.start)
    await store.close()
