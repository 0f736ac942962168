"""Databases of older schemas are migrated, with a copy kept beside them; newer ones are refused."""

from __future__ import annotations

import sqlite3
import stat
import zlib
from pathlib import Path

import pytest

from muster.server.store.records import StoreError
from muster.server.store.sqlite import SqliteStore


async def a_database(directory: Path, version: int = 1) -> None:
    """A database with two objects, as a program of an older schema left it."""
    store = SqliteStore.open(directory)
    for name in ("a", "b"):
        await store.create("pods", ("ns", name), f"uid-{name}", lambda revision: b'{"rv":%d}' % revision)
    await store.close()
    with sqlite3.connect(directory / "muster.db") as database:
        for revision, body in database.execute("SELECT revision, body FROM log").fetchall():
            database.execute("UPDATE log SET checksum = ? WHERE revision = ?", (zlib.crc32(body), revision))
        database.execute("DELETE FROM meta WHERE name = 'compacted_checksum'")
        database.execute("UPDATE meta SET value = ? WHERE name = 'schema_version'", (version,))
    database.close()


def version_of(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()[0]
    finally:
        database.close()


async def test_an_older_database_is_migrated_and_its_copy_kept(tmp_path: Path) -> None:
    await a_database(tmp_path)
    store = SqliteStore.open(tmp_path)
    found = store.get("pods", ("ns", "a"))
    assert found is not None
    assert (found.uid, found.body) == ("uid-a", b'{"rv":%d}' % found.revision)
    await store.create("pods", ("ns", "c"), "uid-c", lambda revision: b"{}")
    await store.close()

    copy = tmp_path / "muster.db.schema-1"
    assert version_of(copy) == 1
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert version_of(tmp_path / "muster.db") == 2
    again = SqliteStore.open(tmp_path)
    assert {key[1] for key in again.table("pods").records} == {"a", "b", "c"}
    await again.close()


async def test_a_damaged_row_stops_the_migration_and_nothing_is_changed(tmp_path: Path) -> None:
    await a_database(tmp_path)
    with sqlite3.connect(tmp_path / "muster.db") as database:
        database.execute("UPDATE log SET body = x'7b7d' WHERE name = 'b'")
    database.close()
    with pytest.raises(StoreError, match=r"pods ns/b at revision .* is damaged"):
        SqliteStore.open(tmp_path)
    assert version_of(tmp_path / "muster.db") == 1


async def test_a_copy_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    await a_database(tmp_path)
    copy = tmp_path / "muster.db.schema-1"
    copy.write_bytes(b"kept")
    await SqliteStore.open(tmp_path).close()
    assert copy.read_bytes() == b"kept"


async def test_a_newer_database_is_refused_with_the_version_it_needs(tmp_path: Path) -> None:
    await a_database(tmp_path, 7)
    with pytest.raises(StoreError, match="has schema version 7 and needs a program that knows it; this one knows"):
        SqliteStore.open(tmp_path)
    assert not (tmp_path / "muster.db.schema-7").is_file()


async def test_a_version_that_never_was_is_refused(tmp_path: Path) -> None:
    await a_database(tmp_path, 0)
    with pytest.raises(StoreError, match="schema version 0; this program reads versions 1 to"):
        SqliteStore.open(tmp_path)
