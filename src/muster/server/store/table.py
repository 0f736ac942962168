"""The objects of one resource in memory: what is there now, in key order, and the recent changes.

Everything that reads (get, list, watch) reads here; a store applies a change once it is durable. Lists at an older
revision undo the changes since then. A watcher is only a position in the shared list of changes, so a thousand
watchers cost no more memory than one; a watcher that falls behind the kept window has to start again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from operator import attrgetter

from muster.server.store.records import DELETED, Change, CompactedError, Key, Record

WINDOW_SECONDS = 75.0
KEEP_AT_LEAST = 1_024
KEEP_AT_MOST = 65_536
KEEP_AT_MOST_BYTES = 128 * 1024 * 1024
_TRIM_EVERY = 256

_revision_of = attrgetter("revision")


class Table:
    """The current records of one resource and the changes that led to them."""

    def __init__(self, floor: int = 0) -> None:
        self.records: dict[Key, Record] = {}
        self.keys: list[Key] = []
        self.changes: list[Change] = []
        self.bytes = 0  # of the objects in `changes`
        self.dropped = 0  # how many changes were forgotten: positions are absolute
        self.floor = floor  # the newest forgotten revision
        self._next_trim = _TRIM_EVERY

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self.dropped + len(self.changes)

    def load(self, records: Iterable[Record]) -> None:
        """Fill an empty table with the state at its floor."""
        for record in records:
            self.records[record.key] = record
        self.keys = sorted(self.records)

    def apply(self, change: Change) -> None:
        """Make one change visible. Changes come in the order of their revisions."""
        key = change.record.key
        if change.type == DELETED:
            del self.records[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if key not in self.records:
                insort(self.keys, key)
            self.records[key] = change.record
        self.changes.append(change)
        self.bytes += len(change.record.body)
        self._next_trim -= 1
        if self._next_trim <= 0 or self.bytes > KEEP_AT_MOST_BYTES:
            self.trim(change.at)

    def trim(self, now: float) -> None:
        """Forget changes that are out of the window, and all above the hard limits of count and size."""
        self._next_trim = _TRIM_EVERY
        drop, count = 0, len(self.changes)
        while drop < count:
            change = self.changes[drop]
            too_much = count - drop > KEEP_AT_MOST or self.bytes > KEEP_AT_MOST_BYTES
            if not too_much and (count - drop <= KEEP_AT_LEAST or change.at >= now - WINDOW_SECONDS):
                break
            self.bytes -= len(change.record.body)
            drop += 1
        if drop > 0:
            self.floor = self.changes[drop - 1].revision
            del self.changes[:drop]
            self.dropped += drop

    def position_after(self, revision: int) -> int:
        """Where a watch that has seen `revision` goes on."""
        if revision < self.floor:
            raise CompactedError(revision, self.floor)
        return self.dropped + bisect_right(self.changes, revision, key=_revision_of)

    def changes_from(self, position: int, limit: int) -> list[Change]:
        """The next changes at a position; the position must still be kept."""
        if position < self.dropped:
            raise CompactedError(self.floor, self.floor)
        start = position - self.dropped
        return self.changes[start : start + limit]

    def scan(self, namespace: str = "", after: Key | None = None) -> Iterator[Record]:
        """The current records in key order, of one namespace or of all, after a key."""
        return self._walk(self.keys, self.records, namespace, after)

    def scan_at(self, revision: int, namespace: str = "", after: Key | None = None) -> Iterator[Record]:
        """The records as they were at a revision."""
        undone = self._undo(revision)
        if not undone:
            return self.scan(namespace, after)
        records = {**self.records}
        for key, record in undone.items():
            if record is None:
                records.pop(key, None)
            else:
                records[key] = record
        keys = self.keys if records.keys() == self.records.keys() else sorted(records)
        return self._walk(keys, records, namespace, after)

    def _undo(self, revision: int) -> dict[Key, Record | None]:
        start = self.position_after(revision) - self.dropped
        return {change.record.key: change.previous for change in reversed(self.changes[start:])}

    @staticmethod
    def _walk(keys: list[Key], records: dict[Key, Record], namespace: str, after: Key | None) -> Iterator[Record]:
        start = bisect_right(keys, after) if after is not None else 0
        if namespace:
            start = max(start, bisect_left(keys, (namespace, "")))
        for index in range(start, len(keys)):
            key = keys[index]
            if namespace and key[0] != namespace:
                return
            yield records[key]
