"""Clocks and timestamps."""

from __future__ import annotations

import time

import pytest

from muster.client.clock import MonotonicClock, SystemClock, micro_timestamp, seconds_of, timestamp


def test_a_monotonic_clock_does_not_follow_when_the_wall_clock_is_set(monkeypatch: pytest.MonkeyPatch):
    clock = MonotonicClock()
    began = clock.now()
    assert abs(began - time.time()) < 1.0

    monkeypatch.setattr(time, "time", lambda: 0.0)

    assert 0.0 <= clock.now() - began < 60.0
    assert SystemClock().now() == 0.0


def test_jitter_is_a_fraction():
    assert 0.0 <= SystemClock().jitter() < 1.0


@pytest.mark.parametrize("write", [timestamp, micro_timestamp])
def test_timestamps_are_read_back(write):
    assert seconds_of(write(1_800_000_000.0)) == 1_800_000_000.0


def test_microseconds_are_written_where_the_api_wants_them():
    assert timestamp(0.25) == "1970-01-01T00:00:00Z"
    assert micro_timestamp(0.25) == "1970-01-01T00:00:00.250000Z"


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_what_is_no_timestamp_has_no_seconds(text: str | None):
    assert seconds_of(text) is None
