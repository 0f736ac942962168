"""Failed binds: when an entity may be tried again."""

from __future__ import annotations

import pytest

from muster.scheduler.interface.events import FORBIDDEN, LOST_RACE, POD_CHANGED, REFUSED
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.bind_failures import MOST_RACES, BindFailures

KEY = EntityKey("PodGroup", "ns", "g")


@pytest.fixture
def failures() -> BindFailures:
    return BindFailures(1.0, 10.0)


def fail(failures: BindFailures, cause: str, pod: str = "g-0", *, seen: bool = False) -> None:
    failures.failed(KEY, f"uid-{pod}", pod, cause, f"{cause} {pod}", seen=seen)


def test_the_backoff_doubles_with_every_round_that_has_a_refusal(failures: BindFailures):
    delays: list[float] = []
    for round_ in range(6):
        fail(failures, REFUSED)
        failures.end_round(KEY, 100.0 * round_)
        delays.append(failures.until(KEY) - 100.0 * round_)
    assert delays == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_round_without_a_failure_ends_the_backoff(failures: BindFailures):
    fail(failures, REFUSED)
    failures.end_round(KEY, 0.0)
    assert failures.end_round(KEY, 5.0) is None
    fail(failures, REFUSED)
    failures.end_round(KEY, 10.0)
    assert failures.until(KEY) == 11.0


def test_a_missing_right_is_waited_for_with_the_longest_backoff(failures: BindFailures):
    fail(failures, FORBIDDEN)
    failures.end_round(KEY, 0.0)
    assert failures.until(KEY) == 10.0


def test_the_gravest_failure_of_the_first_pod_by_name_is_told(failures: BindFailures):
    fail(failures, LOST_RACE, "g-0")
    fail(failures, REFUSED, "g-3")
    fail(failures, REFUSED, "g-1")
    fail(failures, POD_CHANGED, "g-2")
    failed = failures.end_round(KEY, 0.0)
    assert failed is not None
    assert (failed.cause, failed.pod, failed.reason) == (REFUSED, "g-1", "refused g-1")


def test_after_a_lost_race_there_is_no_wait(failures: BindFailures):
    fail(failures, LOST_RACE)
    assert failures.end_round(KEY, 0.0) is None
    assert failures.until(KEY) == 0.0


def test_one_lost_race_after_the_other_is_backed_off_in_the_end(failures: BindFailures):
    for _ in range(MOST_RACES - 1):
        fail(failures, LOST_RACE)
        assert failures.end_round(KEY, 0.0) is None
    fail(failures, LOST_RACE)
    assert failures.end_round(KEY, 0.0) is not None
    assert failures.until(KEY) == 1.0


def test_a_pod_that_changed_is_waited_for_until_the_watch_shows_it(failures: BindFailures):
    fail(failures, POD_CHANGED, "g-0")
    fail(failures, POD_CHANGED, "g-1")
    failures.end_round(KEY, 0.0)
    failures.pod_changed(KEY, "uid-g-0")
    assert failures.until(KEY) == 1.0
    failures.pod_changed(KEY, "uid-g-1")
    assert failures.until(KEY) == 0.0


@pytest.mark.parametrize("late", [True, False])
def test_what_the_watch_has_shown_before_the_round_ends_needs_no_wait(failures: BindFailures, late: bool):
    fail(failures, POD_CHANGED, seen=not late)
    if late:
        failures.pod_changed(KEY, "uid-g-0")
    assert failures.end_round(KEY, 0.0) is None
    assert failures.until(KEY) == 0.0


def test_what_is_forgotten_has_no_wait(failures: BindFailures):
    fail(failures, REFUSED)
    failures.end_round(KEY, 0.0)
    failures.forget(KEY)
    assert failures.until(KEY) == 0.0
