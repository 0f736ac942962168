"""The clocks of simulated processes: one that only drifts, and a wall clock that somebody sets."""

from __future__ import annotations

import asyncio
from random import Random

from tests.simulation.loop import SimLoop

EPOCH = 1_800_000_000.0


class SteadyClock:
    """As `MonotonicClock`: it follows the clock of the process, whatever is done to the wall clock."""

    def __init__(self, loop: SimLoop, rng: Random) -> None:
        self._loop = loop
        self._rng = rng

    def now(self) -> float:
        return EPOCH + self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jitter(self) -> float:
        return self._rng.random()


class WallClock(SteadyClock):
    """As `SystemClock`: it also jumps when it is set."""

    def __init__(self, loop: SimLoop, rng: Random) -> None:
        super().__init__(loop, rng)
        self.offset = 0.0

    def now(self) -> float:
        return super().now() + self.offset
