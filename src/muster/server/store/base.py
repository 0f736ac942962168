"""The one interface of the stores, and the part of it that both share.

Revisions are one counter over all resources. A write is checked against the newest *accepted* state (`head`), becomes
visible to reads and watches when it is durable, and its call returns only then; with the memory store that is at once.
All calls come from one event loop; a write's check and its acceptance happen without a pause between them, which is
what makes the expected revision a compare-and-swap.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable

from muster.server.free_memory import release_soon
from muster.server.store.records import (
    ADDED,
    BEFORE_ALL,
    DELETED,
    MODIFIED,
    Change,
    Encode,
    Key,
    KeyExistsError,
    Record,
    RevisionMismatchError,
    StoreFailedError,
)
from muster.server.store.table import KEEP_AT_LEAST, WINDOW_SECONDS, Table

_WAKE_AT_ONCE = 10  # watchers; each sends what changed, about 0.2 ms over TLS, and a request takes several turns
_RELEASE_ABOVE = 16 * 1024 * 1024  # bytes that were forgotten at once


class Store(ABC):
    """Objects by table and key, with a revision for every write."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tables: dict[str, Table] = {}
        self._waiters: dict[str, dict[asyncio.Future[None], None]] = {}
        self._waking: deque[asyncio.Future[None]] = deque()  # to be resolved, some at a time
        self._broke = asyncio.Event()
        self._trimming: asyncio.TimerHandle | None = None
        self.revision = BEFORE_ALL  # the newest visible revision

    # Reading

    def table(self, name: str) -> Table:
        """The visible state of one resource."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(self._floor())
        return found

    def counts(self) -> dict[str, int]:
        """How many objects there are in each table that has any."""
        return {name: len(table.records) for name, table in self._tables.items() if table.records}

    def get(self, table: str, key: Key) -> Record | None:
        """The visible record."""
        return self.table(table).records.get(key)

    def head(self, table: str, key: Key) -> Record | None:
        """The newest accepted record, perhaps not durable yet: what a read-modify-write starts from."""
        return self.get(table, key)

    def heads(self, table: str, namespace: str = "") -> Iterable[Record]:
        """The newest accepted records of a table, of one namespace or of all."""
        return self.table(table).scan(namespace)

    def settled(self, table: str) -> bool:
        """Whether everything accepted for a table is visible."""
        return True

    # Writing

    async def create(
        self,
        table: str,
        key: Key,
        uid: str,
        encode: Encode,
        labels: dict[str, str] | None = None,
        fields: tuple[str, ...] | None = None,
    ) -> Record:
        """Store a new object; `KeyExistsError` when there is one already."""
        if self.head(table, key) is not None:
            raise KeyExistsError(key)
        revision = self._next_revision()
        record = Record(key, revision, uid, encode(revision), labels, fields)
        await self._commit(table, Change(ADDED, record, None, self._clock()))
        return record

    async def update(
        self,
        table: str,
        key: Key,
        expected: int,
        encode: Encode,
        labels: dict[str, str] | None = None,
        fields: tuple[str, ...] | None = None,
    ) -> Record:
        """Replace the object that is at the expected revision."""
        previous = self._expect(table, key, expected)
        revision = self._next_revision()
        record = Record(key, revision, previous.uid, encode(revision), labels, fields)
        await self._commit(table, Change(MODIFIED, record, previous, self._clock()))
        return record

    async def delete(self, table: str, key: Key, expected: int, encode: Encode) -> Record:
        """Remove the object that is at the expected revision; the record is its last state."""
        previous = self._expect(table, key, expected)
        revision = self._next_revision()
        record = Record(key, revision, previous.uid, encode(revision), previous.labels, previous.fields)
        await self._commit(table, Change(DELETED, record, previous, self._clock()))
        return record

    def _expect(self, table: str, key: Key, expected: int) -> Record:
        current = self.head(table, key)
        if current is None or current.revision != expected:
            raise RevisionMismatchError(current)
        return current

    # Waiting

    def next_change(self, table: str) -> asyncio.Future[None]:
        """A future that the next visible change of the table resolves; `forget` it when nobody waits any more."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(table, {})[future] = None
        return future

    def forget(self, table: str, future: asyncio.Future[None]) -> None:
        self._waiters.get(table, {}).pop(future, None)

    def wake(self) -> None:
        """Let every watcher look again, for instance because the server closes."""
        for table in list(self._waiters):
            self._resolve(table)

    def _resolve(self, table: str) -> None:
        if self._trimming is None:
            self._trimming = asyncio.get_running_loop().call_later(WINDOW_SECONDS + 1, self._trim)
        waiters = self._waiters.pop(table, None)
        if waiters:
            waking = bool(self._waking)
            self._waking += waiters
            if not waking:
                self._wake_some()

    def _wake_some(self) -> None:
        """Resolve a few futures, the rest in the next turns of the loop: requests are answered between them."""
        for _ in range(min(len(self._waking), _WAKE_AT_ONCE)):
            future = self._waking.popleft()
            if not future.done():
                future.set_result(None)
        if self._waking:
            self._waking[0].get_loop().call_soon(self._wake_some)

    def _publish(self, table: str, changes: list[Change]) -> None:
        target = self.table(table)
        for change in changes:
            target.apply(change)
        self._resolve(table)

    # Forgetting

    def _trim(self) -> None:
        """Forget the changes that no watch may ask for any more, also where nothing is written after them.

        A flood of writes would otherwise stay in memory for as long as the server is idle.
        """
        self._trimming = None
        before = sum(table.bytes for table in self._tables.values())
        now = self._clock()
        for table in self._tables.values():
            table.trim(now)
        if any(len(table.changes) > KEEP_AT_LEAST for table in self._tables.values()):
            self._trimming = asyncio.get_running_loop().call_later(WINDOW_SECONDS + 1, self._trim)
        if before - sum(table.bytes for table in self._tables.values()) > _RELEASE_ABOVE:
            release_soon()

    def _stop_trimming(self) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
            self._trimming = None

    # What an implementation gives

    @abstractmethod
    def _next_revision(self) -> int:
        """The revision of the write that is being accepted; refuses when the store has failed."""

    @abstractmethod
    async def _commit(self, table: str, change: Change) -> None:
        """Accept now, return when durable and visible."""

    def _floor(self) -> int:
        """The revision below which a table that is new in memory knows nothing."""
        return 0

    async def settle(self) -> None:
        """Wait until everything accepted so far is durable, or has failed."""
        return None

    async def durable(self, record: Record) -> None:
        """Wait until a record that `head` gave may be shown: a crash must not take back what was answered."""
        if record.revision > self.revision:
            await self.settle()
        if record.revision > self.revision:
            raise StoreFailedError(self.failure)

    @property
    def failure(self) -> str:
        """Why the store takes no more writes; empty while it does."""
        return ""

    async def broken(self) -> str:
        """Wait until the store fails, which it should not; gives the reason."""
        await self._broke.wait()
        return self.failure

    async def close(self) -> None:
        """Finish what was accepted and close the files."""
        self._stop_trimming()
