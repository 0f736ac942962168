"""The file behind the SQLite store: its schema, its rows, its lock. All SQL of the project is here and in `migrations`.

Each row carries a checksum of everything in it, revisions have no gaps after the compaction, and SQLite looks over its
own pages at the start: a flipped bit is found then instead of being served.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from muster.server.store.migrations import migrate
from muster.server.store.records import (
    BEFORE_ALL,
    DELETED,
    Change,
    Key,
    Record,
    StoreError,
    StoreFailedError,
    StoreLockedError,
)

SCHEMA_VERSION = 2

_SCHEMA = """
BEGIN;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
    revision  INTEGER PRIMARY KEY,
    resource  TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    type      TEXT NOT NULL,
    uid       TEXT NOT NULL,
    previous  INTEGER NOT NULL,  -- the revision that this write replaced or removed; 0 for a creation
    at        REAL NOT NULL,
    checksum  INTEGER NOT NULL,
    body      BLOB NOT NULL
);
COMMIT;
"""
_TABLES = {"log", "meta"}
_COLUMNS = "revision, resource, namespace, name, type, uid, previous, at, checksum, body"
_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
MOST_AT_ONCE = 256
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


class DamagedError(StoreError):
    """The file does not hold what was written into it."""


class Log:
    """One database file. The constructor reads everything; afterwards one thread appends and compacts."""

    def __init__(self, path: Path) -> None:
        try:
            os.close(
                os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            )  # SQLite gives its other files this mode
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, cached_statements=MOST_AT_ONCE
            )
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}") from error
        try:
            self._open(path)
        except (sqlite3.Error, TypeError, ValueError) as error:
            # Damage shows in many ways: SQLite's own errors, values of other types, texts that are none.
            self._db.close()
            raise _refusal(path, error) from error
        except BaseException:
            self._db.close()
            raise

    def _open(self, path: Path) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._check_tables(path)
        version = self._meta("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            migrate(self._db, path, version, SCHEMA_VERSION, _checksum)
        self._set("schema_version", SCHEMA_VERSION)
        self.compacted = self._meta("compacted", 0)
        if self._meta("compacted_checksum", _checksum(0)) != _checksum(self.compacted):
            raise DamagedError(f"{path} is damaged: it does not say truly what was compacted")
        # The newest row may have been a deletion that is compacted away: its revision is not given out again.
        self.revision = self.compacted
        self.base: dict[str, list[Record]] = {}
        self.history: list[tuple[str, Change]] = []
        self._load()

    def _check_tables(self, path: Path) -> None:
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            self._db.executescript(_SCHEMA)
            return
        if tables != _TABLES:
            raise DamagedError(f"{path} is damaged: its tables are {', '.join(sorted(map(str, tables)))}")
        found: str = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise DamagedError(f"{path} is damaged: {found}")

    def _meta(self, name: str, default: int) -> int:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return default if row is None else int(row[0])

    def _set(self, name: str, value: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def _load(self) -> None:
        """The state at the compaction, and every change after it with what it replaced."""
        current: dict[tuple[str, Key], Record] = {}
        base: dict[tuple[str, Key], Record] = {}
        due = max(self.compacted, BEFORE_ALL) + 1
        for row in self._db.execute(f"SELECT {_COLUMNS} FROM log ORDER BY revision"):
            revision, table, namespace, name, kind, uid, _, at, checksum, body = row
            if type(body) is not bytes or _checksum(*row[:8], body=body) != checksum:
                raise DamagedError(f"the object {table} {namespace}/{name} at revision {revision} is damaged on disk")
            key = (namespace, name)
            record = Record(key, revision, uid, body)
            if revision <= self.compacted:
                current[table, key] = base[table, key] = record
                continue
            if revision != due:
                raise DamagedError(f"revision {due} is missing on disk")
            due += 1
            previous = current.pop((table, key), None)
            self.history.append((table, Change(kind, record, previous, at)))
            if kind != DELETED:
                current[table, key] = record
            self.revision = revision
        for (table, _), record in base.items():
            self.base.setdefault(table, []).append(record)

    def forget_loaded(self) -> None:
        """Free what the constructor read, once the store has loaded it."""
        self.base = {}
        self.history = []

    def append(self, batch: Sequence[tuple[str, Change]]) -> None:
        """Write several changes (at most MOST_AT_ONCE) in one transaction; returns when they are on disk."""
        try:
            # One statement is one transaction, and one wait for the interpreter's lock: a busy event loop would make
            # each further statement wait for its turn.
            self._db.execute(_insert(len(batch)), _values(batch))
        except sqlite3.Error as error:
            raise StoreFailedError(str(error)) from error

    def compact(self, upto: int) -> None:
        """Forget every row that a newer one replaced, up to a revision."""
        since = self.compacted
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(
                "DELETE FROM log WHERE revision IN"
                " (SELECT previous FROM log WHERE revision > ? AND revision <= ? AND previous > 0)",
                (since, upto),
            )
            self._db.execute(
                "DELETE FROM log WHERE revision > ? AND revision <= ? AND type = ?", (since, upto, DELETED)
            )
            self._set("compacted", upto)
            self._set("compacted_checksum", _checksum(upto))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreFailedError(str(error)) from error
        self.compacted = upto

    def close(self) -> None:
        self._db.close()


def _refusal(path: Path, error: Exception) -> StoreError:
    """Damage, or else a disk that is full, read-only or failing."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return DamagedError(f"{path} is damaged: {error}") if code in _DAMAGE else StoreError(f"{path}: {error}")


@cache
def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES " + ", ".join([_ROW] * rows)


def _values(batch: Iterable[tuple[str, Change]]) -> list[object]:
    values: list[object] = []
    for table, change in batch:
        record = change.record
        namespace, name = record.key
        replaced = 0 if change.previous is None else change.previous.revision
        row = (record.revision, table, namespace, name, change.type, record.uid, replaced, change.at)
        values += (*row, _checksum(*row, body=record.body), record.body)
    return values


def _checksum(*values: object, body: bytes = b"") -> int:
    return zlib.crc32(body, zlib.crc32(repr(values).encode()))


class DirectoryLock:
    """Keeps a second process out of a data directory for as long as this one runs."""

    def __init__(self, directory: Path) -> None:
        self._fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(self._fd, 32).decode(errors="replace").strip()
            os.close(self._fd)
            whose = f" by process {owner}" if owner else ""
            raise StoreLockedError(f"the data directory {directory} is already in use{whose}") from None
        os.ftruncate(self._fd, 0)
        os.write(self._fd, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
