"""Both stores against a plain dictionary: states at every revision, and what watchers are told.

The watch guarantees checked after every step: events are ordered, unique, whole (a revision is never split), without a
gap, resumable from any kept revision; a bookmark's revision means that everything before was delivered; each event
carries the state before it, says rightly whether it creates, and is filtered rightly.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.build.examples import examples

from muster.server.store.base import Store
from muster.server.store.memory import MemoryStore
from muster.server.store.records import (
    ADDED,
    DELETED,
    MODIFIED,
    CompactedError,
    KeyExistsError,
    RevisionMismatchError,
)
from muster.server.store.sqlite import SqliteStore

TABLES = ("pods", "nodes")
KEYS = [("a", "x"), ("a", "y"), ("b", "x"), ("", "z")]

State = dict[tuple[str, str], tuple[int, bytes]]


class StoreMachine(RuleBasedStateMachine):
    """Random writes, reads at old revisions, watches, and (on disk) restarts and compactions."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 1000.0
        self.store = self.open()
        self.model: dict[str, State] = {table: {} for table in TABLES}
        self.states: dict[int, dict[str, State]] = {self.store.revision: {table: {} for table in TABLES}}
        self.events: dict[str, list[tuple[int, str, Any]]] = {table: [] for table in TABLES}
        self.watchers: list[tuple[str, int, list[int]]] = []

    def open(self) -> Store:
        return MemoryStore(lambda: self.now)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def note(self, table: str, kind: str, key: tuple[str, str], revision: int, body: bytes | None) -> None:
        assert revision == max(self.states) + 1
        if body is None:
            del self.model[table][key]
        else:
            self.model[table][key] = (revision, body)
        self.states[revision] = {name: dict(state) for name, state in self.model.items()}
        self.events[table].append((revision, kind, key))

    @rule(table=st.sampled_from(TABLES), key=st.sampled_from(KEYS), value=st.binary(max_size=8))
    def create(self, table: str, key: tuple[str, str], value: bytes) -> None:
        try:
            record = self.run(self.store.create(table, key, "uid", lambda revision: b"%d:" % revision + value))
        except KeyExistsError:
            assert key in self.model[table]
            return
        assert key not in self.model[table]
        self.note(table, ADDED, key, record.revision, record.body)

    @rule(table=st.sampled_from(TABLES), key=st.sampled_from(KEYS), value=st.binary(max_size=8), stale=st.booleans())
    def update(self, table: str, key: tuple[str, str], value: bytes, stale: bool) -> None:
        known = self.model[table].get(key)
        expected = (known[0] if known else 5) - (1 if stale else 0)
        try:
            record = self.run(self.store.update(table, key, expected, lambda revision: b"%d:" % revision + value))
        except RevisionMismatchError:
            assert known is None or stale
            return
        assert known is not None
        assert not stale
        self.note(table, MODIFIED, key, record.revision, record.body)

    @rule(table=st.sampled_from(TABLES), key=st.sampled_from(KEYS))
    def delete(self, table: str, key: tuple[str, str]) -> None:
        known = self.model[table].get(key)
        try:
            record = self.run(self.store.delete(table, key, known[0] if known else 7, lambda revision: b"gone"))
        except RevisionMismatchError:
            assert known is None
            return
        assert known is not None
        self.note(table, DELETED, key, record.revision, None)

    @rule(table=st.sampled_from(TABLES), back=st.integers(0, 30))
    def watch(self, table: str, back: int) -> None:
        start = max(self.store.revision - back, 0)
        try:
            position = self.store.table(table).position_after(start)
        except CompactedError:
            assert start < self.store.table(table).floor
            return
        self.watchers.append((table, start, [position]))

    @rule(seconds=st.sampled_from((1.0, 40.0, 400.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(table=st.sampled_from(TABLES), back=st.integers(0, 12), namespace=st.sampled_from(("", "a", "b")))
    def list_at_an_old_revision(self, table: str, back: int, namespace: str) -> None:
        revision = self.store.revision - back
        if revision not in self.states:
            return
        expected = {
            key: value for key, value in self.states[revision][table].items() if not namespace or key[0] == namespace
        }
        try:
            found = list(self.store.table(table).scan_at(revision, namespace))
        except CompactedError:
            assert revision < self.store.table(table).floor
            return
        assert {record.key: (record.revision, record.body) for record in found} == expected
        assert [record.key for record in found] == sorted(expected)

    @invariant()
    def the_visible_state_is_the_models(self) -> None:
        assert self.store.revision == max(self.states)
        for table in TABLES:
            found = {record.key: (record.revision, record.body) for record in self.store.table(table).scan()}
            assert found == self.model[table]
            for key in KEYS:
                head = self.store.head(table, key)
                assert (head.revision if head else None) == self.model[table].get(key, (None,))[0]

    @invariant()
    def every_watcher_gets_each_later_change_once_and_in_order(self) -> None:
        for table, start, cursor in self.watchers:
            changes = self.store.table(table).changes_from(cursor[0], 1000)
            expected = [event for event in self.events[table] if event[0] > start]
            seen = [event for event in expected if event[0] <= (cursor[1] if len(cursor) > 1 else start)]
            got = [(change.revision, change.type, change.record.key) for change in changes]
            assert got == expected[len(seen) :]
            for change in changes:
                before = self.states[change.revision - 1][table].get(change.record.key)
                assert (change.previous is None) == (before is None) == (change.type == ADDED)
                if change.previous is not None and before is not None:
                    assert (change.previous.revision, change.previous.body) == before
            cursor[:] = [cursor[0] + len(changes), self.store.revision]

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()


class DiskMachine(StoreMachine):
    """The same, on disk, with restarts."""

    def __init__(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="muster-store-")
        super().__init__()

    def open(self) -> Store:
        store = SqliteStore.open(self.directory, lambda: self.now)
        # No machine is switched off here, and waiting for the disk takes nine tenths of the time.
        store._log._db.execute("PRAGMA synchronous=OFF")
        return store

    @rule()
    def restart(self) -> None:
        before = self.store.revision
        self.run(self.store.close())
        self.store = self.open()
        assert self.store.revision == before
        # Positions belong to one life of the process; watchers come back with the revision they saw last.
        resumed: list[tuple[str, int, list[int]]] = []
        for table, start, cursor in self.watchers:
            seen = cursor[1] if len(cursor) > 1 else start
            try:
                resumed.append((table, seen, [self.store.table(table).position_after(seen)]))
            except CompactedError:
                assert seen < self.store.table(table).floor
        self.watchers = resumed

    @precondition(lambda self: self.store.revision > 3)
    @rule(back=st.integers(0, 10))
    def compact(self, back: int) -> None:
        upto = self.store.revision - back
        assert isinstance(self.store, SqliteStore)
        database = self.store._log
        if upto > database.compacted:
            self.run(self.store.settle())
            database.compact(upto)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory)


TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestSqliteStore = DiskMachine.TestCase
TestSqliteStore.settings = settings(max_examples=examples(25), stateful_step_count=30, deadline=None)
