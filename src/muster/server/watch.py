"""Watches: the initial state if asked, then every change after it, once, in order, with nothing left out.

A watcher is a position in its table's shared list of changes (see `store.table`), so what is sent is what is stored and
a reader that falls behind the kept window gets 410 instead of losing changes. A bookmark carries the store's
revision and is only sent at a moment when everything before it has been sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

from muster.api.errors import ApiError, bad_request, gone
from muster.server import codec
from muster.server.backend import Backend
from muster.server.call import Call
from muster.server.object_lister import check_options, parse_revision, reach
from muster.server.selectors import Match, selector
from muster.server.store.records import ADDED, DELETED, MODIFIED, Change, CompactedError, Record

BOOKMARK = "BOOKMARK"
BOOKMARK_SECONDS = 60.0
MIN_TIMEOUT_SECONDS = 1800.0
_BATCH = 256
_BOOKMARK_BEFORE_TIMEOUT = 2.0


class Event(NamedTuple):
    """One watch event. A bookmark has no record; `initial_end` marks the end of the initial state."""

    type: str
    record: Record | None
    revision: int
    initial_end: bool = False


class Watch:
    """One open watch: iterate over it for batches of events; it ends at its timeout or when the server closes."""

    def __init__(self, backend: Backend, call: Call) -> None:
        self._store = backend.store
        self._backend = backend
        self._kind = call.kind
        self._table = backend.store.table(call.kind.table)
        self._namespace = call.namespace
        self._matches: Match | None = selector(call.kind, call.request, call.name)
        self._bookmarks = call.request.flag("allowWatchBookmarks")
        self._timeout = self._choose_timeout(call)
        self._initial: list[Record] | None = None
        self._announce_end = False
        self._position = 0
        self._revision = 0

    def _choose_timeout(self, call: Call) -> float:
        text = call.request.arg("timeoutSeconds")
        if text and not (text.isascii() and text.isdigit() and len(text) < 12):
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return float(text or 0) or MIN_TIMEOUT_SECONDS * (1 + self._backend.rng.random())

    async def open(self, call: Call) -> Watch:
        """Find where the watch begins; 410 when that is too old, 504 when it is in the future."""
        request = call.request
        check_options(request)
        asked = parse_revision(request)
        asks_initial = request.flag("sendInitialEvents")
        if asked:
            await reach(self._store, asked)
        if call.kind.definition is not None:
            await codec.prepare(self._kind, self._table.scan(self._namespace))
        if asks_initial or (not asked and "sendInitialEvents" not in request.query):
            self._initial = [record for record in self._table.scan(self._namespace) if self._selects(record)]
            self._announce_end = asks_initial and self._bookmarks
        elif asked:
            self._position = self._after(asked)
            self._revision = asked
            return self
        self._position = self._table.end
        self._revision = self._store.revision
        return self

    def _after(self, revision: int) -> int:
        try:
            return self._table.position_after(revision)
        except CompactedError as compacted:
            raise too_old(compacted.asked, compacted.oldest) from None

    def _selects(self, record: Record) -> bool:
        return self._matches is None or self._matches(record)

    async def batches(self) -> AsyncGenerator[list[Event], None]:
        """Events in order, several at a time."""
        now = asyncio.get_running_loop().time
        end = now() + self._timeout
        next_bookmark = self._bookmark_time(now(), end)
        for batch in self._initial_batches():
            yield batch
        while not self._backend.closing and self._is_served():
            if self._kind.definition is not None:
                await codec.prepare(self._kind, self._coming())
            events = self._take()
            if events is not None:
                if events:
                    yield events
                continue
            if now() >= end:
                if self._bookmarks:
                    yield [self._bookmark()]
                return
            if now() >= next_bookmark:
                next_bookmark = self._bookmark_time(now(), end)
                if self._bookmarks:
                    yield [self._bookmark()]
                    continue
            await self._wait(min(end, next_bookmark))

    def _bookmark_time(self, now: float, end: float) -> float:
        soon = end - _BOOKMARK_BEFORE_TIMEOUT
        return min(now + BOOKMARK_SECONDS, soon) if soon > now else now + BOOKMARK_SECONDS

    def _initial_batches(self) -> list[list[Event]]:
        records, self._initial = self._initial, None
        if records is None:
            return []
        events = [Event(ADDED, record, record.revision) for record in records]
        batches = [events[start : start + _BATCH] for start in range(0, len(events), _BATCH)]
        if self._announce_end:
            batches.append([Event(BOOKMARK, None, self._revision, initial_end=True)])
        return batches

    def _is_served(self) -> bool:
        """A custom kind may go while it is watched, and its watches end."""
        if self._kind.definition is None:
            return True
        kind = self._kind
        return self._backend.registry.view(kind.group, kind.versions[0], kind.plural) is not None

    def _coming(self) -> list[Record]:
        """The records that the next events are about."""
        try:
            changes = self._table.changes_from(self._position, _BATCH)
        except CompactedError:
            return []
        return [each for change in changes for each in (change.record, change.previous) if each is not None]

    def _take(self) -> list[Event] | None:
        """The selected ones of the next changes; None when there are no changes."""
        try:
            changes = self._table.changes_from(self._position, _BATCH)
        except CompactedError as compacted:
            raise too_old(self._revision, compacted.oldest) from None
        if not changes:
            return None
        self._position += len(changes)
        self._revision = changes[-1].revision
        return [event for change in changes if (event := self._seen(change)) is not None]

    def _seen(self, change: Change) -> Event | None:
        """A change as this watcher sees it: what enters the selection is added, what leaves it is deleted."""
        record = change.record
        if self._namespace and record.key[0] != self._namespace:
            return None
        matches = self._matches
        if matches is None:
            return Event(change.type, record, change.revision)
        before = change.previous is not None and matches(change.previous)
        if change.type == DELETED:
            return Event(DELETED, record, change.revision) if before else None
        if matches(record):
            return Event(MODIFIED if before else ADDED, record, change.revision)
        if before and change.previous is not None:
            return Event(DELETED, self._as_of(change.previous, change.revision), change.revision)
        return None

    def _as_of(self, record: Record, revision: int) -> Record:
        body = codec.encode(self._kind, codec.load(self._kind, record), revision)
        return Record(record.key, revision, record.uid, body, record.labels, record.fields)

    def _bookmark(self) -> Event:
        # Nothing is left to take, so the watcher has seen everything up to the store's revision.
        self._revision = self._store.revision
        return Event(BOOKMARK, None, self._revision)

    async def _wait(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        table = self._kind.table
        future = self._store.next_change(table)
        timer = loop.call_at(until, _resolve, future)
        try:
            await future
        finally:
            timer.cancel()
            self._store.forget(table, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def too_old(asked: int, oldest: int) -> ApiError:
    return gone(f"too old resource version: {asked} ({oldest})")
