"""Reads a data directory without the server's help."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from pathlib import Path
from typing import NamedTuple

import msgspec
from history import Entry

FILES = ("muster.db", "muster.db-wal")


class Row(NamedTuple):
    """One row of the log."""

    revision: int
    resource: str
    namespace: str
    name: str
    type: str
    uid: str
    previous: int
    at: float
    checksum: int
    body: bytes


def copied(data: Path, to: Path) -> Path:
    """A copy of the files, as they would be found after a crash at this moment."""
    to.mkdir(parents=True, exist_ok=True)
    for name in (*FILES, "muster.db-shm"):
        (to / name).unlink(missing_ok=True)
    for name in FILES:
        if (data / name).exists():
            shutil.copy(data / name, to / name)
    return to


def rows(directory: Path) -> list[Row]:
    """All rows of a copy, in the order of their revisions."""
    database = sqlite3.connect(directory / "muster.db")
    try:
        found = database.execute(f"SELECT {', '.join(Row._fields)} FROM log ORDER BY revision").fetchall()
    finally:
        database.close()
    return [Row(*row) for row in found]


def pods(found: list[Row]) -> list[Entry]:
    return [
        Entry(row.revision, row.type, row.name, msgspec.json.decode(row.body))
        for row in found
        if row.resource == "pods"
    ]


def damaged(found: list[Row]) -> list[str]:
    """Rows that are not whole, and revisions that are missing."""
    wrong = [
        f"revision {row.revision} is damaged"
        for row in found
        if zlib.crc32(row.body, zlib.crc32(repr(tuple(row[:8])).encode())) != row.checksum
    ]
    revisions = [row.revision for row in found]
    if revisions and revisions != list(range(revisions[0], revisions[-1] + 1)):
        wrong.append("revisions are missing")
    return wrong
