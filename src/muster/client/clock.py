"""Time as the rooms outside the brain use it: injected, and written the way Kubernetes writes it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, and waiting. Tests hand in one that they move by hand."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


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
