"""What the durable store promises about crashes, second openers, damage and full disks."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from muster.server.store import sqlite as sqlite_store
from muster.server.store.log import DamagedError
from muster.server.store.records import StoreError, StoreFailedError, StoreLockedError
from muster.server.store.sqlite import SqliteStore


def body(revision: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"}}' % revision


async def test_a_restart_continues_with_the_same_objects_and_revisions(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    first = await store.create("pods", ("a", "x"), "u1", body)
    await store.close()

    again = SqliteStore.open(tmp_path)
    found = again.get("pods", ("a", "x"))
    second = await again.create("pods", ("a", "y"), "u2", body)
    await again.close()

    assert found is not None
    assert (found.revision, found.uid, found.body) == (first.revision, "u1", first.body)
    assert second.revision == first.revision + 1


async def test_a_write_is_not_visible_before_it_is_durable(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    writing = asyncio.ensure_future(store.create("pods", ("a", "x"), "u", body))
    await asyncio.sleep(0)

    assert store.get("pods", ("a", "x")) is None
    assert store.head("pods", ("a", "x")) is not None

    await writing
    assert store.get("pods", ("a", "x")) is not None
    await store.close()


async def test_writes_accepted_together_see_each_other(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    created = asyncio.ensure_future(store.create("pods", ("a", "x"), "u", body))
    await asyncio.sleep(0)
    head = store.head("pods", ("a", "x"))
    assert head is not None
    updated = asyncio.ensure_future(store.update("pods", ("a", "x"), head.revision, body))
    await asyncio.sleep(0)
    deleted = asyncio.ensure_future(store.delete("pods", ("a", "x"), head.revision + 1, body))

    await asyncio.gather(created, updated, deleted)

    assert [change.type for change in store.table("pods").changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert store.head("pods", ("a", "x")) is None
    await store.close()


async def test_a_cancelled_caller_does_not_undo_its_write(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    writing = asyncio.ensure_future(store.create("pods", ("a", "x"), "u", body))
    await asyncio.sleep(0)
    writing.cancel()
    await store.settle()
    await store.create("pods", ("a", "y"), "u", body)

    assert store.get("pods", ("a", "x")) is not None
    await store.close()


async def test_a_second_opener_is_refused_with_the_owner_named(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    with pytest.raises(StoreLockedError, match="already in use by process"):
        SqliteStore.open(tmp_path)
    await store.close()
    await SqliteStore.open(tmp_path).close()


async def test_a_revision_is_not_given_out_again_after_its_row_was_compacted(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    record = await store.create("pods", ("a", "x"), "u", body)
    gone = await store.delete("pods", ("a", "x"), record.revision, body)
    store._log.compact(gone.revision)
    await store.close()

    again = SqliteStore.open(tmp_path)
    fresh = await again.create("pods", ("a", "x"), "u", body)
    await again.close()

    assert fresh.revision == gone.revision + 1


async def test_old_rows_are_compacted_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "_COMPACT_AFTER_ROWS", 10)
    now = [1000.0]
    store = SqliteStore.open(tmp_path, lambda: now[0])
    record = await store.create("pods", ("a", "x"), "u", body)
    for _ in range(100):
        now[0] += 30.0
        record = await store.update("pods", ("a", "x"), record.revision, body)
    await store.close()

    rows = sqlite3.connect(tmp_path / "muster.db")
    try:
        (count,) = rows.execute("SELECT count(*) FROM log").fetchone()
    finally:
        rows.close()
    assert count < 30
    again = SqliteStore.open(tmp_path)
    found = again.get("pods", ("a", "x"))
    assert found is not None
    assert found.revision == record.revision
    await again.close()


async def test_a_flipped_bit_is_found_at_start(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await store.create("pods", ("a", "x"), "u", body)
    await store.close()
    rows = sqlite3.connect(tmp_path / "muster.db")
    rows.execute("UPDATE log SET body = ?", (b'{"metadata":{"resourceVersion":"9"}}',))
    rows.commit()
    rows.close()

    with pytest.raises(DamagedError, match=r"pods a/x at revision 2 is damaged"):
        SqliteStore.open(tmp_path)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "muster.db").write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(DamagedError):
        SqliteStore.open(tmp_path)


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    await SqliteStore.open(tmp_path).close()
    rows = sqlite3.connect(tmp_path / "muster.db")
    rows.execute("UPDATE meta SET value = 99 WHERE name = 'schema_version'")
    rows.commit()
    rows.close()
    with pytest.raises(StoreError, match="schema version 99"):
        SqliteStore.open(tmp_path)


async def test_a_disk_that_refuses_stops_all_writing_and_no_write_is_acknowledged(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await store.create("pods", ("a", "x"), "u", body)
    store._log._db.execute("PRAGMA max_page_count = 1")

    def large(revision: int) -> bytes:
        return b"x" * 5_000_000

    with pytest.raises(StoreFailedError):
        await store.create("pods", ("a", "big"), "u", large)
    with pytest.raises(StoreFailedError):
        await store.create("pods", ("a", "small"), "u", body)
    assert store.failure
    assert store.get("pods", ("a", "big")) is None
    await store.close()

    again = SqliteStore.open(tmp_path)
    assert [record.key for record in again.table("pods").scan()] == [("a", "x")]
    await again.close()


_VICTIM = """
import asyncio, sys
from muster.server.store.sqlite import SqliteStore

async def main():
    store = SqliteStore.open(sys.argv[1])
    async def client(n):
        for i in range(10_000):
            key = (f"{sys.argv[2]}-{n}", f"p{i}")
            record = await store.create("pods", key, "u", lambda revision: b'{"n":%d}' % revision)
            print(record.revision, *key, flush=True)
    await asyncio.gather(*(client(n) for n in range(8)))

asyncio.run(main())
"""


def killed_while_writing(directory: Path, prefix: str = "c") -> dict[tuple[str, str], int]:
    """The writes that were acknowledged by a process that was killed in the middle of its work."""
    process = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(directory), prefix], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(200)]
    process.kill()
    rest, _ = process.communicate()
    lines += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    return {(line.split()[1], line.split()[2]): int(line.split()[0]) for line in lines if line.strip()}


async def test_kill_nine_loses_no_acknowledged_write(tmp_path: Path) -> None:
    acknowledged = killed_while_writing(tmp_path)

    store = SqliteStore.open(tmp_path)
    try:
        for key, revision in acknowledged.items():
            found = store.get("pods", key)
            assert found is not None
            assert found.revision == revision
            assert found.body == b'{"n":%d}' % revision
        revisions = [change.revision for change in store.table("pods").changes]
        assert revisions == list(range(2, store.revision + 1))
    finally:
        await store.close()


@pytest.mark.e2e
async def test_forty_kills_in_a_row_lose_nothing(tmp_path: Path) -> None:
    everything: dict[tuple[str, str], int] = {}
    for _ in range(40):
        everything |= killed_while_writing(tmp_path, f"r{len(everything)}")
        store = SqliteStore.open(tmp_path)
        found = {record.key: record.revision for record in store.table("pods").scan()}
        await store.close()
        assert everything.items() <= found.items()
