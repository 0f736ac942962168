"""Places where a small slip would break a promise: what is answered before it is durable, races, repeated fields."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from in_process import Api

from muster.api.types import Condition
from muster.server.request import MERGE_PATCH
from muster.server.store.log import Log
from muster.server.store.memory import MemoryStore
from muster.server.store.records import RevisionMismatchError
from muster.server.store.sqlite import SqliteStore

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
APPLY = "application/apply-patch+yaml"


async def test_a_change_that_changes_nothing_waits_for_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await Api(SqliteStore.open(tmp_path)).start()
    await api.ask("POST", MAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    held, append = asyncio.Event(), Log.append
    loop = asyncio.get_running_loop()

    def slow_append(self: Log, batch: Any) -> None:
        asyncio.run_coroutine_threadsafe(held.wait(), loop).result()
        append(self, batch)

    monkeypatch.setattr(Log, "append", slow_append)
    patch = {"data": {"a": "2"}}
    writing = asyncio.ensure_future(api.ask("PATCH", f"{MAPS}/c", patch, MERGE_PATCH))
    await asyncio.sleep(0.01)
    repeating = asyncio.ensure_future(api.ask("PATCH", f"{MAPS}/c", patch, MERGE_PATCH))
    trying = asyncio.ensure_future(api.ask("PATCH", f"{MAPS}/c", patch, MERGE_PATCH, dryRun="All"))
    await asyncio.sleep(0.05)

    assert not writing.done()
    assert not repeating.done(), "what is not durable yet was shown"
    assert not trying.done()
    held.set()
    first, second, third = await asyncio.gather(writing, repeating, trying)
    assert first.body == second.body == third.body
    await api.store.close()


async def test_a_change_that_rests_on_a_write_that_failed_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await Api(SqliteStore.open(tmp_path)).start()
    await api.ask("POST", MAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}})

    def broken(self: Log, batch: Any) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(Log, "append", broken)
    patch = {"data": {"a": "2"}}
    answers = await asyncio.gather(*(api.ask("PATCH", f"{MAPS}/c", patch, MERGE_PATCH) for _ in range(3)))

    assert [answer.status for answer in answers] == [500, 500, 500]
    assert msgspec.json.decode((await api.ask("GET", f"{MAPS}/c")).body)["data"] == {"a": "1"}
    assert (await api.ask("GET", "/livez")).status == 500
    await api.store.close()


async def test_two_that_ask_for_one_address_at_the_same_moment_do_not_both_get_it(tmp_path: Path) -> None:
    api = await Api(SqliteStore.open(tmp_path)).start()

    def a_service(name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 80}]}}

    place = "/api/v1/namespaces/default/services"
    answers = await asyncio.gather(*(api.ask("POST", place, a_service(f"s{index}")) for index in range(3)))

    assert sorted(answer.status for answer in answers) == [201, 422, 422]
    await api.store.close()


async def test_only_one_class_becomes_the_default_at_the_same_moment(tmp_path: Path) -> None:
    api = await Api(SqliteStore.open(tmp_path)).start()
    place = "/apis/scheduling.k8s.io/v1/priorityclasses"
    wanted = [{"metadata": {"name": f"c{index}"}, "value": 1, "globalDefault": True} for index in range(3)]

    answers = await asyncio.gather(*(api.ask("POST", place, each) for each in wanted))

    assert sorted(answer.status for answer in answers) == [201, 403, 403]
    await api.store.close()


async def test_a_binding_that_loses_every_race_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    api = await Api().start()
    assert (await api.ask("POST", PODS, POD)).status == 201

    async def raced(*_: Any, **__: Any) -> None:
        raise RevisionMismatchError(None)

    monkeypatch.setattr(MemoryStore, "update", raced)
    answer = await api.ask("POST", f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "n"}})

    assert answer.status == 409


@pytest.mark.parametrize(
    ("content", "patch"),
    [
        (MERGE_PATCH, b'{"data":{"a":"1","a":"2"}}'),
        ("application/strategic-merge-patch+json", b'{"data":{"a":"1","a":"2"}}'),
        (APPLY, b'{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1","a":"2"}}'),
    ],
)
async def test_a_field_that_a_patch_repeats_is_reported(content: str, patch: bytes) -> None:
    api = await Api().start()
    await api.ask("POST", MAPS, {"metadata": {"name": "c"}})
    query = {"fieldManager": "m"}

    warned = await api.ask("PATCH", f"{MAPS}/c", patch, content, **query)
    refused = await api.ask("PATCH", f"{MAPS}/c", patch, content, fieldValidation="Strict", **query)
    ignored = await api.ask("PATCH", f"{MAPS}/c", patch, content, fieldValidation="Ignore", **query)

    assert (warned.status, warned.warnings) == (200, ['duplicate field "data.a"'])
    assert (refused.status, b'strict decoding error: duplicate field \\"data.a\\"' in refused.body) == (422, True)
    assert (ignored.status, ignored.warnings) == (200, [])


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/pods", "/apis/batch/v1/jobs"])
async def test_what_is_in_all_namespaces_cannot_be_deleted_at_once(path: str) -> None:
    api = await Api().start()

    assert (await api.ask("DELETE", path)).status == 405


async def test_namespaces_do_not_offer_to_be_deleted_together() -> None:
    api = await Api().start()
    page = msgspec.json.decode((await api.ask("GET", "/api/v1")).body)
    verbs = next(entry["verbs"] for entry in page["resources"] if entry["name"] == "namespaces")

    assert verbs == ["create", "delete", "get", "list", "patch", "update", "watch"]


def test_a_condition_that_says_nothing_can_be_read() -> None:
    assert msgspec.json.decode(b'{"reason":"x"}', type=Condition) == Condition("", "", "x")
