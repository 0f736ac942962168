"""Brings a database of an older schema to the one that this program knows, and keeps a copy of what it was.

A migration is one function from a version to the next. All of them run in one transaction, after the copy is on disk:
a crash leaves the old database or the new one. There is no way back but the copy.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

from muster.logs import keys
from muster.server.store.records import StoreError

log = logging.getLogger(__name__)

Migration = Callable[[sqlite3.Connection, Callable[..., int]], None]  # (database, checksum of a row)


def migrate(database: sqlite3.Connection, path: Path, version: int, known: int, checksum: Callable[..., int]) -> None:
    """From a version to the known one; refuses what is newer, and what is too old to be read."""
    if version > known:
        raise StoreError(
            f"{path} has schema version {version} and needs a program that knows it; this one knows version {known}. "
            "A newer muster wrote it"
        )
    steps = [_MIGRATIONS.get(each) for each in range(version, known)]
    if version < 1 or None in steps:
        raise StoreError(f"{path} has schema version {version}; this program reads versions 1 to {known}")
    copy = _keep_copy(database, path, version)
    database.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            assert step is not None
            step(database, checksum)
        database.execute("INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)", (known,))
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
    log.warning("The database was migrated", extra=keys(version=version, to=known, copy=str(copy)))


def _keep_copy(database: sqlite3.Connection, path: Path, version: int) -> Path:
    """A copy beside the database, whole or not there at all; one of an earlier attempt stays as it is."""
    copy = path.with_name(f"{path.name}.schema-{version}")
    if copy.exists():
        return copy
    part = copy.with_name(f"{copy.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    target = sqlite3.connect(part)
    try:
        database.backup(target)
    finally:
        target.close()
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.rename(copy)
    return copy


def _checksums_over_rows(database: sqlite3.Connection, checksum: Callable[..., int]) -> None:
    """1 to 2: a checksum is over everything in a row; before, it was over the body alone."""
    columns = "revision, resource, namespace, name, type, uid, previous, at, checksum, body"
    for row in database.execute(f"SELECT {columns} FROM log").fetchall():
        *head, stored, body = row
        if zlib.crc32(body) != stored:
            raise StoreError(f"the object {head[1]} {head[2]}/{head[3]} at revision {head[0]} is damaged on disk")
        database.execute("UPDATE log SET checksum = ? WHERE revision = ?", (checksum(*head, body=body), head[0]))
    found = database.execute("SELECT value FROM meta WHERE name = 'compacted'").fetchone()
    compacted = 0 if found is None else int(found[0])
    database.execute("INSERT OR REPLACE INTO meta VALUES ('compacted_checksum', ?)", (checksum(compacted),))


_MIGRATIONS: dict[int, Migration] = {1: _checksums_over_rows}
