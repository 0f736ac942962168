"""Watches and lists at the border of what is still remembered: all of it, or 410, never a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from in_process import Api

from muster.server.request import Response, WatchStream
from muster.server.store import table
from muster.server.store.sqlite import SqliteStore

MAPS = "/api/v1/namespaces/default/configmaps"


async def a_life(api: Api) -> list[int]:
    """Creations, changes and deletions of config maps; gives their revisions."""
    revisions: list[int] = []

    async def do(method: str, path: str, body: Any = b"", content: str = "application/json") -> None:
        answer = await api.ask(method, path, body, content)
        assert answer.status < 300, answer.body
        revisions.append(api.store.revision)

    for name in ("a", "b", "c"):
        await do("POST", MAPS, {"metadata": {"name": name, "labels": {"side": "left"}}})
    await do("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"side": "right"}}}, "application/merge-patch+json")
    await do("DELETE", f"{MAPS}/b")
    await do("PATCH", f"{MAPS}/c", {"data": {"k": "v"}}, "application/merge-patch+json")
    await do("DELETE", f"{MAPS}/c")
    await do("POST", MAPS, {"metadata": {"name": "c"}})
    return revisions


def seen(events: list[tuple[str, Any]]) -> list[tuple[str, int]]:
    return [(type, int(obj["metadata"]["resourceVersion"])) for type, obj in events]


@pytest.mark.parametrize("at", range(8))
async def test_a_restart_after_a_compaction_resumes_at_its_border_and_not_before(tmp_path: Path, at: int) -> None:
    api = await Api(SqliteStore.open(tmp_path)).start()
    revisions = await a_life(api)
    whole = {revision: await api.events(MAPS, resourceVersion=str(revision)) for revision in revisions}
    left = {
        revision: await api.events(MAPS, resourceVersion=str(revision), labelSelector="side=left")
        for revision in revisions
    }
    assert isinstance(api.store, SqliteStore)
    api.store._log.compact(revisions[at])
    await api.store.close()

    again = Api(SqliteStore.open(tmp_path))
    try:
        for index, revision in enumerate(revisions):
            stream = await again.watch(MAPS, resourceVersion=str(revision))
            if index < at:
                assert isinstance(stream, Response)
                assert stream.status == 410
                listed = await again.ask("GET", MAPS, resourceVersion=str(revision), resourceVersionMatch="Exact")
                assert listed.status == 410
                continue
            assert isinstance(stream, WatchStream)
            assert await again.events(MAPS, resourceVersion=str(revision)) == whole[revision]
            selected = await again.events(MAPS, resourceVersion=str(revision), labelSelector="side=left")
            assert selected == left[revision]
    finally:
        await again.store.close()


async def test_a_watcher_that_falls_behind_is_told_so_in_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "KEEP_AT_LEAST", 0)
    monkeypatch.setattr(table, "KEEP_AT_MOST", 10)
    monkeypatch.setattr(table, "_TRIM_EVERY", 1)
    api = await Api().start()
    await api.ask("POST", MAPS, {"metadata": {"name": "a"}})
    stream = await api.watch(MAPS, resourceVersion=str(api.store.revision - 1))
    assert isinstance(stream, WatchStream)
    frames: Any = stream.frames
    first = msgspec.json.decode(await anext(frames))
    for index in range(50):
        await api.ask("PATCH", f"{MAPS}/a", {"data": {"k": str(index)}}, "application/merge-patch+json")

    rest = [msgspec.json.decode(line) for frame in [frame async for frame in frames] for line in frame.splitlines()]

    assert first["type"] == "ADDED"
    assert [event["type"] for event in rest] == ["ERROR"]
    assert rest[0]["object"]["code"] == 410


async def test_pages_of_one_list_show_one_moment_whatever_happens_between_them() -> None:
    api = await Api().start()
    for index in range(10):
        await api.ask("POST", MAPS, {"metadata": {"name": f"m{index}"}})
    names: list[str] = []
    token, revisions = "", set[str]()
    while True:
        page = msgspec.json.decode(
            (await api.ask("GET", MAPS, limit="3", **({"continue": token} if token else {}))).body
        )
        names += [item["metadata"]["name"] for item in page["items"]]
        revisions.add(page["metadata"]["resourceVersion"])
        await api.ask("DELETE", f"{MAPS}/m{9 - len(names) // 3}")
        await api.ask("POST", MAPS, {"metadata": {"name": f"m{len(names)}-new"}})
        token = page["metadata"].get("continue", "")
        if not token:
            break

    assert names == [f"m{index}" for index in range(10)]
    assert len(revisions) == 1


async def test_a_watch_of_the_future_says_nothing_of_the_past() -> None:
    api = await Api().start()
    await a_life(api)
    now = api.store.revision

    assert seen(await api.events(MAPS, resourceVersion=str(now))) == []
