"""What happened: every change in the order of its revision with who made it, and every request and watch event.

Checks what can be judged from that alone: revisions without gaps, no visible write lost in a crash (I3), answers that
agree with the log and with real time (I4), and the guarantees of watches (I5). Shares no code with the product.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.simulation.disk import SimDisk, SimStore
from tests.simulation.network import REQUEST, Channel, Exchange

Key = tuple[str, str, str]  # table, namespace, name
Obj = dict[str, Any]
DELETED = "DELETED"


@dataclass(slots=True)
class Entry:
    """One change of the log."""

    revision: int
    type: str
    key: Key
    body: bytes
    at: float  # when it became visible
    origin: Exchange | None  # the request that made it
    obj: Obj | None = None

    def object(self) -> Obj:
        if self.obj is None:
            self.obj = msgspec.json.decode(self.body)
        return self.obj


class WatchSession:
    """One open watch: what it has to show next."""

    def __init__(self, table: str, start: int, whole: bool) -> None:
        self.table = table
        self.revision = start
        self.whole = whole  # no selector: every change of the table is due


class History:
    """The log, as it becomes visible, and the complaints about it."""

    def __init__(self, disk: SimDisk, now: Callable[[], float], complain: Callable[[str], None]) -> None:
        self.log: list[Entry] = []
        self.tables: dict[str, list[int]] = {}  # the revisions of each table
        self.keys: dict[Key, list[Entry]] = {}
        self.revision = 1
        self.listeners: list[Callable[[Entry], None]] = []
        self.positions: dict[
            tuple[str, str], list[tuple[float, int]]
        ] = {}  # client identity, table -> what it has seen
        self.digest = hashlib.sha256()
        self._disk = disk
        self._now = now
        self._complain = complain
        self._origins: dict[int, Exchange | None] = {}
        self._sessions: dict[Channel, WatchSession] = {}

    # --- the store ---------------------------------------------------------------------------------

    def accepted(self, table: str, change: Any) -> None:
        self._origins[change.revision] = REQUEST.get(None)

    def landed(self, table: str, change: Any) -> None:
        record = change.record
        self._add(change.revision, change.type, (table, *record.key), record.body)

    def _add(self, revision: int, kind: str, key: Key, body: bytes) -> None:
        entry = Entry(revision, kind, key, body, self._now(), self._origins.get(revision))
        if revision != self.revision + 1:
            self._complain(f"I4 revision {revision} becomes visible after {self.revision}")
        known = self.keys.setdefault(key, [])
        exists = bool(known) and known[-1].type != DELETED
        if (kind == "ADDED") == exists:
            self._complain(f"I4 {kind} of {'/'.join(key)} at {revision} while it {'is' if exists else 'is not'} there")
        self.revision = revision
        self.log.append(entry)
        self.tables.setdefault(key[0], []).append(revision)
        known.append(entry)
        self.digest.update(f"{self._now():.6f} {revision} {kind} {key}".encode())
        self.digest.update(body)
        for listener in self.listeners:
            listener(entry)

    def recovered(self, store: SimStore) -> None:
        """A server has started from what is on the disk: nothing that was visible may be missing."""
        state: dict[Key, int] = {}
        late: list[Any] = []
        for row in self._disk.rows:
            if row.revision > self.revision:
                late.append(row)
            elif row.type == DELETED:
                state.pop((row.table, *row.key), None)
            else:
                state[(row.table, *row.key)] = row.revision
        expected = {key: found[-1].revision for key, found in self.keys.items() if found[-1].type != DELETED}
        if state != expected:
            wrong = sorted(key for key in state.keys() | expected.keys() if state.get(key) != expected.get(key))
            self._complain(f"I3 lost in a crash: {wrong[:3]}, {len(wrong)} in all")
        for row in late:
            self._add(row.revision, row.type, (row.table, *row.key), row.body)
        loaded = {
            (table, *key): record.revision
            for table, found in store._tables.items()
            for key, record in found.records.items()
        }
        now = {key: found[-1].revision for key, found in self.keys.items() if found[-1].type != DELETED}
        if loaded != now:
            self._complain("I3 the restarted server has loaded something else than what is on the disk")

    def at(self, key: Key, revision: int) -> Obj | None:
        """An object as it was at a revision."""
        found = self.keys.get(key, [])
        index = bisect_right(found, revision, key=lambda entry: entry.revision) - 1
        return None if index < 0 or found[index].type == DELETED else found[index].object()

    def current(self, table: str) -> list[Obj]:
        """The objects of a table as they are now, in order."""
        return [
            found[-1].object()
            for key, found in sorted(self.keys.items())
            if key[0] == table and found[-1].type != DELETED
        ]

    # --- what clients saw --------------------------------------------------------------------------

    def seen_by(self, identity: str, table: str, at: float) -> int:
        """How far a client had seen a table at a time."""
        found = self.positions.get((identity, table), [])
        index = bisect_right(found, at, key=lambda each: each[0]) - 1
        return found[index][1] if index >= 0 else 0

    def saw(self, identity: str, table: str, revision: int) -> None:
        self.positions.setdefault((identity, table), []).append((self._now(), revision))

    def answered(self, exchange: Exchange, status: int, body: bytes) -> None:
        """Whether an answer agrees with the log."""
        request = exchange.request
        where = request.target
        if where is None or where.plural in ("", "events") or status >= 300 or request.query.get("dryRun"):
            return  # events of both groups are stored in one table
        table = f"{where.plural}.{where.group}" if where.group else where.plural
        answer = msgspec.json.decode(body)
        version = (answer.get("metadata") or {}).get("resourceVersion", "")
        if request.method == "GET" and not where.subresource:
            if where.name:
                self._check_get(exchange, (table, where.namespace, where.name), int(version))
            elif not request.arg("limit") and not request.arg("continue"):
                self._check_list(exchange, table, answer, int(version))
        elif request.method != "GET" and version and answer.get("kind") != "Status":
            meta = answer["metadata"]
            entry = self._entry(int(version))
            name = (table, meta.get("namespace", ""), meta.get("name"))
            if entry is None or entry.key != name:
                self._complain(
                    f"I3 {request.method} of {'/'.join(map(str, name))} was acknowledged at {version} unseen"
                )

    def _entry(self, revision: int) -> Entry | None:
        index = revision - 2
        return self.log[index] if 0 <= index < len(self.log) else None

    def _check_get(self, exchange: Exchange, key: Key, version: int) -> None:
        found = self.keys.get(key, [])
        index = next((at for at, entry in enumerate(found) if entry.revision == version), None)
        if index is None:
            self._complain(f"I4 get of {'/'.join(key)} shows revision {version}, which is not in the log")
        elif index + 1 < len(found) and found[index + 1].revision <= exchange.revision_before:
            self._complain(f"I4 get of {'/'.join(key)} is stale")

    def _check_list(self, exchange: Exchange, table: str, answer: Obj, version: int) -> None:
        request = exchange.request
        identity = exchange.client.identity
        self.saw(identity, table, version)
        if request.arg("resourceVersion") != "0" and version < exchange.revision_before:
            self._complain(f"I4 list of {table} at {version} is stale: {exchange.revision_before} was visible before")
        if (
            request.arg("labelSelector")
            or request.arg("fieldSelector")
            or (request.target and request.target.namespace)
        ):
            return
        shown = {
            (table, each["metadata"].get("namespace", ""), each["metadata"]["name"]): int(
                each["metadata"]["resourceVersion"]
            )
            for each in answer.get("items") or ()
        }
        due = {}
        for key, found in self.keys.items():
            if key[0] == table:
                index = bisect_right(found, version, key=lambda entry: entry.revision) - 1
                if index >= 0 and found[index].type != DELETED:
                    due[key] = found[index].revision
        if shown != due:
            wrong = sorted(key for key in shown.keys() | due.keys() if shown.get(key) != due.get(key))
            self._complain(f"I4 list of {table} at {version} is wrong about {wrong[:3]}")

    def watch_opened(self, channel: Channel) -> None:
        request = channel.exchange.request
        where = request.target
        if where is None:
            return
        table = f"{where.plural}.{where.group}" if where.group else where.plural
        start = int(request.arg("resourceVersion") or 0)
        whole = (
            bool(start)
            and where.plural != "events"
            and not (where.namespace or request.arg("labelSelector") or request.arg("fieldSelector"))
        )
        self._sessions[channel] = WatchSession(table, start, whole)

    def watched(self, channel: Channel, kind: str, version: str) -> None:
        """One event arrived: it must be the next one that is due, and a bookmark must come after all before it."""
        session = self._sessions.get(channel)
        if session is None or not version.isdigit():
            return
        revision, client = int(version), channel.exchange.client
        if session.whole:
            due = self._next_due(session)
            if kind == "BOOKMARK":
                if due is not None and due <= revision:
                    self._complain(f"I5 {client.name} got a bookmark at {revision} of {session.table} before {due}")
            elif revision != due:
                self._complain(f"I5 {client.name} was shown {session.table} {kind} at {revision}, due was {due}")
            elif (entry := self._entry(revision)) is not None and entry.type != kind:
                self._complain(f"I5 {client.name} was shown {kind} at {revision}, which was {entry.type}")
        session.revision = max(session.revision, revision)
        self.saw(client.identity, session.table, revision)

    def _next_due(self, session: WatchSession) -> int | None:
        revisions = self.tables.get(session.table, [])
        index = bisect_right(revisions, session.revision)
        return revisions[index] if index < len(revisions) else None
