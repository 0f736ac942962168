"""The clock that code outside the scheduler is given, and the timestamps of the Kubernetes API.

Nothing reads the time, sleeps or draws a random number directly, so tests pass a clock that they move by hand.
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The current time, waiting, and the random part of retry delays."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def jitter(self) -> float:
        """A number in [0, 1) that spreads retries of many clients over time."""
        ...


class SystemClock:
    """The machine's wall clock; it jumps when the machine's clock is set."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jitter(self) -> float:
        return random.random()


class MonotonicClock(SystemClock):
    """The wall clock as it was when this was made, carried on by the monotonic clock.

    Leases, deadlines and queue timers compare times, so they must not see the wall clock being set. Any thread and
    any event loop may use one instance.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset


def timestamp(now: float) -> str:
    """Whole seconds, as in `creationTimestamp`."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(now: float) -> str:
    """Microseconds, as in a lease's `renewTime`."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str | None) -> float | None:
    """Seconds since the epoch of a timestamp; None when there is none or it cannot be read."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
