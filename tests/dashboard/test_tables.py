"""Tables that know what changed: whoever applies the differences has the table."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.dashboard import tables
from muster.dashboard.tables import Table

CHANGES = st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 3))), max_size=40)


@given(CHANGES, st.integers(0, 40))
def test_differences_since_any_version_lead_to_the_present_rows(changes: list[tuple[int, int | None]], since: int):
    table: Table[int, int] = Table()
    before: dict[int, int] = {}
    for version, (key, value) in enumerate(changes, 1):
        if value is None:
            table.remove(key, version)
        else:
            table.set(key, value, version)
        if version == since:
            before = dict(table.rows)

    copy = before if since <= len(changes) else dict(table.rows)
    for key in table.changed_since(since):
        copy[key] = table.rows[key]
    for key in table.removed_since(since):
        copy.pop(key, None)
    assert copy == table.rows


def test_an_equal_row_is_no_change():
    table: Table[str, int] = Table()
    assert table.set("a", 1, 1)
    assert not table.set("a", 1, 2)
    assert list(table.changed_since(1)) == []


def test_whoever_is_further_behind_than_is_remembered_is_told_by_the_floor(monkeypatch):
    monkeypatch.setattr(tables, "MOST_REMOVED", 2)
    table: Table[int, int] = Table()
    for key in range(4):
        table.set(key, 0, key + 1)
    for key in range(4):
        table.remove(key, 10 + key)
    assert table.floor == 11
    assert set(table.removed_since(table.floor)) == {2, 3}
