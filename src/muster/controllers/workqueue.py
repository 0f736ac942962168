"""A work queue of keys: each is processed by one worker at a time, again if added meanwhile, later after a failure.

A key that comes back too often, whoever adds it, has to wait: a reconciliation that asks for itself again and again
must not keep the event loop from everybody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Iterable, Mapping

from muster.client.backoff import Backoff
from muster.client.clock import Clock

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 30.0
_MOST_A_SECOND = 50  # reconciliations of one key; beyond that it waits for the next second


class WorkQueue:
    """The keys of one controller."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: deque[Hashable] = deque()
        self._waiting: set[Hashable] = set()
        self._active: set[Hashable] = set()
        self._failures: dict[Hashable, Backoff] = {}
        self._timers: dict[Hashable, tuple[float, asyncio.Task[None]]] = {}
        self._available = asyncio.Event()
        self._second = 0.0  # when the count of `_taken` began
        self._taken: dict[Hashable, int] = {}

    def add(self, key: Hashable) -> None:
        if key in self._waiting:
            return
        rest = self._rest_of_second()
        if self._taken.get(key, 0) >= _MOST_A_SECOND:
            self.add_after(key, rest)
            return
        self._waiting.add(key)
        if key not in self._active:
            self._ready.append(key)
            self._available.set()

    def add_after(self, key: Hashable, seconds: float) -> None:
        """Add the key after a delay; an earlier time that was set before stays.

        Times are compared on the loop's clock, which nobody sets: else a clock that was put forward would make a
        timer of five minutes look earlier than one of a moment.
        """
        due = asyncio.get_running_loop().time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[key] = (due, asyncio.get_running_loop().create_task(self._later(key, seconds)))

    async def _later(self, key: Hashable, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timers.pop(key, None)
        self.add(key)

    def retry(self, key: Hashable) -> None:
        """Add a key that failed again, with exponential backoff."""
        if key not in self._failures:
            self._failures[key] = Backoff(self._clock, first=_FIRST_DELAY, most=_LONGEST_DELAY)
        self.add_after(key, self._failures[key].delay())

    def forget(self, key: Hashable) -> None:
        """Reset the backoff of a key that succeeded."""
        self._failures.pop(key, None)

    async def get(self) -> Hashable:
        while not self._ready:
            self._available.clear()
            await self._available.wait()
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._active.add(key)
        self._rest_of_second()
        self._taken[key] = self._taken.get(key, 0) + 1
        return key

    def _rest_of_second(self) -> float:
        """What is left of the second in which reconciliations are counted; when it is over the count starts anew."""
        now = self._clock.now()
        if not self._second <= now < self._second + 1.0:
            self._second = now
            self._taken.clear()
        return self._second + 1.0 - now

    def done(self, key: Hashable) -> None:
        self._active.discard(key)
        if key in self._waiting:
            self._ready.append(key)
            self._available.set()

    @property
    def failures(self) -> Mapping[Hashable, int]:
        """How often each key failed in a row, for keys whose last reconciliation failed."""
        return {key: backoff.tries for key, backoff in self._failures.items()}

    @property
    def unfinished(self) -> Iterable[Hashable]:
        """The keys in the queue, those being reconciled, and those that failed and will be retried."""
        return self._waiting | self._active | self._failures.keys()

    @property
    def idle(self) -> bool:
        """Whether no key is queued or in work; delayed keys do not count."""
        return not self._ready and not self._active

    async def close(self) -> None:
        tasks = [task for _, task in self._timers.values()]
        self._timers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
