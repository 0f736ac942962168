"""Time and chance, handed in: the only places where the shell looks at a clock or rolls dice.

`now` counts seconds since the epoch but is driven by the event loop's own clock, so it never jumps when
the machine's clock is set and it stands still when a test's loop does. Delays grow by doubling and are
spread by jitter, so that a thousand clients do not return at the same moment.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from muster.api.errors import ApiError
from muster.client.clock import micro_timestamp, timestamp


@dataclass(frozen=True, slots=True)
class Pace:
    """A clock, a way to wait, and a number between 0 and 1 for jitter."""

    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    @classmethod
    def real(cls) -> Pace:
        """The wall clock as it was now, carried on by the running loop's clock."""
        loop = asyncio.get_running_loop()
        ahead = time.time() - loop.time()
        return cls(lambda: loop.time() + ahead)

    def timestamp(self) -> str:
        """Now, to the second, as conditions write it."""
        return timestamp(self.now())

    def microtime(self) -> str:
        """Now, to the microsecond, as events and leases write it."""
        return micro_timestamp(self.now())


class Backoff:
    """Growing delays between tries; each is cut by up to half at random."""

    def __init__(self, pace: Pace, first: float = 0.1, most: float = 10.0) -> None:
        self._pace = pace
        self._first = first
        self._most = most
        self.tries = 0

    def delay(self) -> float:
        """The next delay in seconds."""
        whole = min(self._most, self._first * 2 ** min(self.tries, 30))
        self.tries += 1
        return whole * (1.0 - 0.5 * self._pace.chance())

    async def wait(self, error: BaseException | None = None) -> None:
        """Sleep for the next delay, or for as long as the server asked if that is longer."""
        asked = error.retry_after if isinstance(error, ApiError) and error.retry_after else 0
        await self._pace.sleep(max(self.delay(), float(asked)))

    def reset(self) -> None:
        self.tries = 0


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: nobody answered, or the server was not able to."""
    if isinstance(error, ApiError):
        return error.code == 429 or error.code >= 500
    return isinstance(error, ConnectionError | TimeoutError)
