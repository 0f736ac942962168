"""The window of changes that a table keeps: long enough for watches, bounded in count and size."""

from __future__ import annotations

import pytest

from muster.server.store import table as module
from muster.server.store.records import ADDED, DELETED, MODIFIED, Change, CompactedError, Record
from muster.server.store.table import Table


def fill(table: Table, count: int, *, at: float = 0.0, size: int = 1, first: int = 1) -> None:
    for revision in range(first, first + count):
        record = Record(("a", "x"), revision, "u", b"x" * size)
        previous = table.records.get(("a", "x"))
        table.apply(Change(MODIFIED if previous else ADDED, record, previous, at))


def test_recent_changes_are_kept_whatever_their_number_up_to_the_limit() -> None:
    table = Table()
    fill(table, 5_000, at=100.0)
    table.trim(100.0 + module.WINDOW_SECONDS)
    assert len(table.changes) == 5_000


def test_old_changes_are_forgotten_but_for_a_few() -> None:
    table = Table()
    fill(table, 5_000, at=100.0)
    table.trim(101.0 + module.WINDOW_SECONDS)
    assert len(table.changes) == module.KEEP_AT_LEAST
    assert table.floor == 5_000 - module.KEEP_AT_LEAST


def test_the_number_of_kept_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_AT_MOST", 600)
    table = Table()
    fill(table, 5_000)
    assert len(table.changes) <= 600 + 256


def test_the_size_of_kept_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_AT_MOST_BYTES", 10_000)
    table = Table()
    fill(table, 300, size=1_000)
    assert table.bytes == sum(len(change.record.body) for change in table.changes) <= 10_000


def test_positions_stay_right_when_changes_are_forgotten() -> None:
    table = Table()
    fill(table, 5_000, at=100.0)
    position = table.position_after(4_990)
    table.trim(1_000.0)
    assert [change.revision for change in table.changes_from(position, 5)] == [4_991, 4_992, 4_993, 4_994, 4_995]
    with pytest.raises(CompactedError):
        table.changes_from(0, 5)
    with pytest.raises(CompactedError):
        table.position_after(table.floor - 1)
    assert table.changes_from(table.position_after(table.floor), 1)[0].revision == table.floor + 1


def test_a_deletion_at_the_floor_is_neither_lost_nor_repeated() -> None:
    """A watch opened at the revision of a compaction sees exactly what came after it."""
    table = Table(floor=7)
    record = Record(("a", "x"), 7, "u", b"")
    table.load([record])
    gone = Record(("a", "x"), 8, "u", b"")
    table.apply(Change(DELETED, gone, record, 0.0))
    assert [change.type for change in table.changes_from(table.position_after(7), 10)] == [DELETED]
    assert table.changes_from(table.position_after(8), 10) == []
    assert [kept.key for kept in table.scan_at(7)] == [("a", "x")]
