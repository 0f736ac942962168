"""Arrays that grow, and the log of changed slots."""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import ChangeLog, grown, present_ids, with_rows


def test_a_log_says_which_slots_changed_since():
    log = ChangeLog()
    log.add(3)
    seen = log.end
    log.add_many(np.array([5, 6]))
    assert log.since(seen).tolist() == [5, 6]
    for slot in range(70_000):
        log.add(slot)
    assert log.since(seen) is None
    assert log.since(log.end).tolist() == []


def test_many_changes_at_once_are_logged_or_make_every_reader_start_anew():
    log = ChangeLog()
    log.add_many(np.arange(3000))
    assert log.since(0).tolist() == list(range(3000))
    seen = log.end
    log.add_many(np.arange(100_000))
    assert log.since(seen) is None
    log.add(7)
    assert log.since(log.end - 1).tolist() == [7]


def test_a_grown_array_keeps_its_entries_and_its_type():
    array = np.array([[1, 2], [3, 4]], dtype=np.int32)

    longer = grown(array, 4)

    assert longer.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]
    assert longer.dtype == np.int32
    assert array.shape == (2, 2)


def test_rows_are_added_below():
    assert with_rows(np.array([[1, 2]]), 3).tolist() == [[1, 2], [0, 0], [0, 0]]


def test_a_log_that_grew_still_has_its_first_entries():
    log = ChangeLog()
    for slot in range(5000):
        log.add(slot)

    assert log.since(0).tolist() == list(range(5000))
    assert log.since(4998).tolist() == [4998, 4999]


def test_present_ids_are_distinct_ascending_and_above_zero():
    assert present_ids(np.array([3, 0, 1, 3], dtype=np.int32)).tolist() == [1, 3]
    assert present_ids(np.array([], dtype=np.int32)).tolist() == []
