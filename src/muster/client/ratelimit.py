"""A token bucket: at most `qps` requests a second on average, `burst` at once. First come, first served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class RateLimit:
    """Delays each caller until the bucket has a token for it; a `qps` of 0 is no limit."""

    def __init__(
        self,
        qps: float,
        burst: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval = 1.0 / qps if qps > 0 else 0.0
        self._slack = self._interval * (max(burst, 1) - 1)
        self._clock = clock
        self._sleep = sleep
        self._next = clock() - self._slack

    async def wait(self) -> None:
        if not self._interval:
            return
        now = self._clock()
        # `_next` is when the bucket would be empty; it may lie at most a burst in the past.
        self._next = max(self._next, now - self._slack)
        delay = self._next - now
        self._next += self._interval
        if delay > 0:
            await self._sleep(delay)
