"""The durable store: an append-only log in SQLite, written by one thread that commits many writes at once.

A row is one write, its key the revision; the current state is what the newest row of each key says. A write is accepted
on the event loop (checked, numbered), handed to the writer thread, and answered when its transaction is on disk (WAL,
synchronous=FULL). Only then do readers see it. If the disk ever refuses, nothing more is accepted. Old rows are
compacted away after a while; the rows that are left still give every state since.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from muster.server.store.base import Store
from muster.server.store.log import MOST_AT_ONCE, DirectoryLock, Log
from muster.server.store.records import DELETED, Change, Key, Record, StoreFailedError

log = logging.getLogger(__name__)

_CHECKPOINT_EVERY = 5.0
KEEP_SECONDS = 300.0
_COMPACT_AFTER_ROWS = 1_000
_MOST_HISTORY_ROWS = 200_000


class _Pending(NamedTuple):
    table: str
    change: Change
    done: asyncio.Future[None]


class SqliteStore(Store):
    """Objects in a directory. Open it with `SqliteStore.open`; one process at a time can."""

    def __init__(self, database: Log, lock: DirectoryLock, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._log = database
        self._lock = lock
        self._loaded_floor = database.compacted
        # What was accepted and has not landed, by table: the newest revision of a key, and its record (None: deleted).
        self._heads: defaultdict[str, dict[Key, tuple[int, Record | None]]] = defaultdict(dict)
        self._pending: deque[_Pending] = deque()
        self._turn: list[_Pending] = []  # of these, the ones that the thread has not been given yet
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure = ""
        self._moments: deque[tuple[float, int]] = deque()
        for table, base in database.base.items():
            self.table(table).load(base)
        for table, change in database.history:
            self.table(table).apply(change)
        database.forget_loaded()
        self.revision = self._accepted = max(self.revision, database.revision)
        self._start()

    @classmethod
    def open(cls, directory: Path | str, clock: Callable[[], float] = time.time) -> SqliteStore:
        """The store in a directory, with all that was acknowledged before; `StoreLockedError` if it is in use."""
        place = Path(directory)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = DirectoryLock(place)
        try:
            return cls(Log(place / "muster.db"), lock, clock)
        except BaseException:
            lock.release()
            raise

    # Accepting, on the event loop

    def head(self, table: str, key: Key) -> Record | None:
        found = self._heads[table].get(key)
        return self.get(table, key) if found is None else found[1]

    def heads(self, table: str, namespace: str = "") -> Iterable[Record]:
        records = super().heads(table, namespace)
        ahead = self._heads[table]
        if not ahead:
            return records
        newest = {record.key: record for record in records}
        for key, (_, record) in ahead.items():
            if record is None:
                newest.pop(key, None)
            elif not namespace or key[0] == namespace:
                newest[key] = record
        return newest.values()

    def settled(self, table: str) -> bool:
        return not self._heads[table]

    def _next_revision(self) -> int:
        if self._failure:
            raise StoreFailedError(self._failure)
        return self._accepted + 1

    async def _commit(self, table: str, change: Change) -> None:
        self._accepted = change.revision
        left = None if change.type == DELETED else change.record
        self._heads[table][change.record.key] = (change.revision, left)
        self._loop = asyncio.get_running_loop()
        pending = _Pending(table, change, self._loop.create_future())
        self._pending.append(pending)
        if not self._turn:
            # At the end of this turn of the loop, so that all its writes wake the thread once and share a transaction.
            self._loop.call_soon(self._hand_over)
        self._turn.append(pending)
        await pending.done

    def _hand_over(self) -> None:
        turn, self._turn = self._turn, []
        for pending in turn:
            self._queue.put(pending)

    async def settle(self) -> None:
        if self._pending:
            await asyncio.wait([self._pending[-1].done])

    @property
    def failure(self) -> str:
        return self._failure

    def _floor(self) -> int:
        return self._loaded_floor

    # Landing, on the event loop

    def _landed(self, count: int) -> None:
        batch = [self._pending.popleft() for _ in range(count)]
        for table, change, _ in batch:
            self.table(table).apply(change)
            ahead = self._heads[table]
            if ahead[change.record.key][0] == change.revision:
                del ahead[change.record.key]
        self.revision = batch[-1].change.revision
        for table in {table for table, _, _ in batch}:
            self._resolve(table)
        for _, _, done in batch:
            if not done.done():
                done.set_result(None)

    def _failed(self, why: str) -> None:
        self._failure = why
        self._broke.set()
        self._heads.clear()
        waiting, self._pending = self._pending, deque()
        for _, _, done in waiting:
            if not done.done():
                done.set_exception(StoreFailedError(why))

    # Writing, in the thread

    def _start(self) -> None:
        """Start the thread that writes."""
        self._thread = threading.Thread(target=self._write, name="muster-store", daemon=True)
        self._thread.start()

    def _write(self) -> None:
        running = True
        while running:
            batch, running = self._next_batch()
            if batch and not self._write_batch(batch):
                return

    def _write_batch(self, batch: list[tuple[str, Change]]) -> bool:
        """Write, and say when it is on disk; False if the disk refused, and nothing more is to be written."""
        try:
            self._log.append(batch)
            self._call(self._landed, len(batch))
            self._compact(batch[-1][1])
        except Exception as error:
            # Whatever the error was: writers must not wait for a thread that has ended, nor be acknowledged.
            log.critical("the store failed and takes no more writes: %s", error)
            self._call(self._failed, str(error))
            return False
        return True

    def _next_batch(self) -> tuple[list[tuple[str, Change]], bool]:
        batch: list[tuple[str, Change]] = []
        item = self._queue.get()
        while item is not None:
            batch.append((item.table, item.change))
            if len(batch) >= MOST_AT_ONCE:
                return batch, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _call(self, what: Callable[..., None], argument: object) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(what, argument)
        except RuntimeError:
            log.warning("the event loop was closed before the store")

    def _compact(self, newest: Change) -> None:
        """Forget rows that no watch or list may ask for any more; now and then, between commits."""
        moments, now = self._moments, newest.at
        if not moments or now - moments[-1][0] >= _CHECKPOINT_EVERY:
            moments.append((now, newest.revision))
        upto = 0
        while moments and moments[0][0] <= now - KEEP_SECONDS:
            upto = moments.popleft()[1]
        upto = max(upto, newest.revision - _MOST_HISTORY_ROWS)
        if upto >= self._log.compacted + _COMPACT_AFTER_ROWS:
            self._log.compact(upto)

    async def close(self) -> None:
        self._stop_trimming()
        self._hand_over()
        self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        # What the thread posted last must land before the callers continue.
        await asyncio.sleep(0)
        self._log.close()
        self._lock.release()
