"""A disk that forgets what was not synced when the power fails, fills up, and fails to sync; and a store on it.

The store is the product's `SqliteStore`, with the thread that writes replaced by calls in virtual time and the database
file by rows in memory. What the thread would do while it waits for the disk happens when the disk has answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from muster.server.store.records import BEFORE_ALL, DELETED, Change, Key, Record, StoreFailedError
from muster.server.store.sqlite import SqliteStore
from tests.simulation.loop import Process, SimLoop


class Row(NamedTuple):
    """One write as it lies on the disk."""

    revision: int
    table: str
    key: Key
    type: str
    uid: str
    previous: int
    at: float
    body: bytes


class SimDisk:
    """What survives the server."""

    def __init__(self, loop: SimLoop, rng: Random, counts: Counter[str]) -> None:
        self._loop = loop
        self._rng = rng
        self._counts = counts
        self.rows: list[Row] = []
        self.compacted = 0
        self.full = False
        self.fails_to_sync = False
        self.slow = 0.0  # seconds more that a sync may take
        self.next_write: asyncio.Future[float] | None = None  # is told how long the next sync takes, when it begins
        self._unsynced: list[tuple[float, list[Row]]] = []

    def write(self, rows: list[Row]) -> float:
        """Begin to write; the seconds until it is synced."""
        self._settle()
        if self.full:
            self._counts["disk full"] += 1
            raise StoreFailedError("database or disk is full")
        seconds = self._rng.uniform(0.0002, 0.002) + self._rng.random() * self.slow
        self._counts["slow sync"] += self.slow > 0
        self._unsynced.append((self._loop.now + seconds, rows))
        if self.next_write is not None and not self.next_write.done():
            self.next_write.set_result(seconds)
        return seconds

    def fail_sync(self) -> bool:
        """Whether the sync just begun fails; what was to be synced is on the disk or it is not."""
        if not self.fails_to_sync:
            return False
        self._counts["failed sync"] += 1
        _, rows = self._unsynced.pop()
        if self._rng.random() < 0.5:
            self.rows += rows
        return True

    def unsynced(self) -> bool:
        """Whether something is being written."""
        self._settle()
        return bool(self._unsynced)

    def lose_power(self) -> None:
        """What is not synced is lost, or with luck was written in time."""
        self._settle()
        for _, rows in self._unsynced:
            if self._rng.random() < 0.5:
                self.rows += rows
            else:
                self._counts["unsynced writes lost"] += 1
                break
        self._unsynced = []

    def _settle(self) -> None:
        while self._unsynced and self._unsynced[0][0] <= self._loop.now:
            self.rows += self._unsynced.pop(0)[1]


class SimLog:
    """Has the interface of `store.log.Log`, over a simulated disk."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self.compacted = disk.compacted
        self.revision = max(disk.compacted, BEFORE_ALL)
        self.base: dict[str, list[Record]] = {}
        self.history: list[tuple[str, Change]] = []
        self.waited = 0.0  # how long the calls since the last look have waited for the disk
        current: dict[tuple[str, Key], Record] = {}
        for row in disk.rows:
            record = Record(row.key, row.revision, row.uid, row.body)
            if row.revision <= self.compacted:
                current[row.table, row.key] = record
                self.base.setdefault(row.table, []).append(record)
                continue
            previous = current.pop((row.table, row.key), None)
            self.history.append((row.table, Change(row.type, record, previous, row.at)))
            if row.type != DELETED:
                current[row.table, row.key] = record
            self.revision = row.revision

    def forget_loaded(self) -> None:
        self.base, self.history = {}, []

    def append(self, batch: Sequence[tuple[str, Change]]) -> None:
        self.waited += self._disk.write([_row(table, change) for table, change in batch])
        if self._disk.fail_sync():
            raise StoreFailedError("disk I/O error")

    def compact(self, upto: int) -> None:
        disk = self._disk
        replaced = {row.previous for row in disk.rows if row.revision <= upto}
        disk.rows = [
            row for row in disk.rows if row.revision > upto or (row.revision not in replaced and row.type != DELETED)
        ]
        disk.compacted = self.compacted = upto

    def close(self) -> None:
        pass


class NoLock:
    def release(self) -> None:
        pass


class SimStore(SqliteStore):
    """The product's store, writing to a simulated disk from inside its process."""

    def __init__(self, disk: SimDisk, process: Process, clock: Callable[[], float], accepted: Any, landed: Any) -> None:
        self._process = process
        self._accepted_hook = accepted
        self._landed_hook = landed
        self._busy = False
        self._sim_log = SimLog(disk)
        super().__init__(self._sim_log, NoLock(), clock)  # type: ignore[arg-type]

    def _start(self) -> None:
        pass

    async def _commit(self, table: str, change: Change) -> None:
        self._accepted_hook(table, change)
        await super()._commit(table, change)

    def _hand_over(self) -> None:
        super()._hand_over()
        self._write_more()

    def _write_more(self) -> None:
        if not self._busy and not self._queue.empty():
            batch, _ = self._next_batch()
            self._busy, self._sim_log.waited = True, 0.0
            if self._write_batch(batch):
                self._process.later(self._sim_log.waited, self._written)

    def _written(self) -> None:
        self._busy = False
        self._write_more()

    def _call(self, what: Callable[..., None], argument: object) -> None:
        self._process.later(self._sim_log.waited, what, argument)

    def _landed(self, count: int) -> None:
        batch = [self._pending[index] for index in range(count)]
        super()._landed(count)
        for pending in batch:
            self._landed_hook(pending.table, pending.change)

    async def close(self) -> None:
        pass


def _row(table: str, change: Change) -> Row:
    record = change.record
    previous = 0 if change.previous is None else change.previous.revision
    return Row(record.revision, table, record.key, change.type, record.uid, previous, change.at, record.body)
