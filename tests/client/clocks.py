"""Clocks for tests."""

from __future__ import annotations

import asyncio

from muster.client.clock import MonotonicClock


class StoppedClock:
    """Time stands still, nobody waits, and there is no jitter."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self._jitter = jitter

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def jitter(self) -> float:
        return self._jitter


class QuickClock(MonotonicClock):
    """Real time, but every wait is short and there is no jitter."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))

    def jitter(self) -> float:
        return 0.0
