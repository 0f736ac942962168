"""Delays between retries."""

from __future__ import annotations

import pytest

from muster.api.errors import ApiError, conflict, internal
from muster.client.backoff import Backoff, is_transient
from tests.client.clocks import StoppedClock


@pytest.mark.parametrize("tries", [1, 5, 40])
def test_delays_grow_and_stay_bounded(tries: int):
    backoff = Backoff(StoppedClock(jitter=0.5), first=0.1, most=10.0)
    delays = [backoff.delay() for _ in range(tries)]

    assert delays == sorted(delays)
    assert delays[-1] <= 10.0


def test_jitter_shortens_a_delay_by_up_to_half():
    assert Backoff(StoppedClock(jitter=1.0), first=4.0).delay() == 2.0
    assert Backoff(StoppedClock(), first=4.0).delay() == 4.0


async def test_a_server_that_says_when_to_come_back_is_obeyed():
    clock = StoppedClock()
    backoff = Backoff(clock, first=1.0)

    await backoff.wait(ApiError(429, "TooManyRequests", "later", retry_after=7))
    await backoff.wait(ConnectionError())

    assert clock.slept == [7.0, 2.0]


def test_after_a_reset_delays_start_over():
    backoff = Backoff(StoppedClock(), first=1.0)
    backoff.delay()
    backoff.delay()

    backoff.reset()

    assert backoff.delay() == 1.0


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (internal("boom"), True),
        (ApiError(429, "TooManyRequests", "later"), True),
        (ConnectionError("cut"), True),
        (TimeoutError(), True),
        (conflict("", "pods", "p", "changed"), False),
        (ApiError(403, "Forbidden", "no"), False),
        (ValueError(), False),
    ],
)
def test_what_may_succeed_later_is_transient(error: Exception, transient: bool):
    assert is_transient(error) is transient
