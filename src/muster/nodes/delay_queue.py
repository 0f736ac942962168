"""A queue of actions by the time they are due: one heap for all nodes and pods, instead of a task for each."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from muster.client.clock import Clock

_AT_ONCE = 64


class _Entry(NamedTuple):
    due: float
    order: int
    action: Callable[[], Awaitable[None]]


class DelayQueue:
    """Actions by the time they are due. `run` carries them out, some at a time, in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: list[_Entry] = []
        self._order = 0
        self._seen = clock.now()  # what the clock showed last
        self._earlier = asyncio.Event()

    def at(self, due: float, action: Callable[[], Awaitable[None]]) -> None:
        self._follow_clock(self._clock.now())
        if not self._entries or due < self._entries[0].due:
            self._earlier.set()
        self._order += 1
        heapq.heappush(self._entries, _Entry(due, self._order, action))

    def __len__(self) -> int:
        return len(self._entries)

    async def run(self) -> None:
        while True:
            batch = self._due(self._clock.now())
            if batch:
                await asyncio.gather(*(entry.action() for entry in batch))
            else:
                await self._wait()

    def _follow_clock(self, now: float) -> None:
        """After the clock was set back, what waits is due when it would have been: earlier on the new clock."""
        back = self._seen - now
        if back > 0:
            self._entries = [entry._replace(due=entry.due - back) for entry in self._entries]
        self._seen = now

    def _due(self, now: float) -> list[_Entry]:
        self._follow_clock(now)
        batch: list[_Entry] = []
        while self._entries and self._entries[0].due <= now and len(batch) < _AT_ONCE:
            batch.append(heapq.heappop(self._entries))
        return batch

    async def _wait(self) -> None:
        """Until the first entry is due, or an earlier one comes in."""
        self._earlier.clear()
        if not self._entries:
            await self._earlier.wait()
            return
        sleep = asyncio.ensure_future(self._clock.sleep(max(0.0, self._entries[0].due - self._clock.now())))
        earlier = asyncio.ensure_future(self._earlier.wait())
        try:
            await asyncio.wait((sleep, earlier), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            earlier.cancel()
            await asyncio.gather(sleep, earlier, return_exceptions=True)
