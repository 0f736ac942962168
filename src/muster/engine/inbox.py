"""The events that the scheduler has not taken yet, and the wakeup of the task that takes them."""

from __future__ import annotations

import asyncio
from collections import deque

from muster.scheduler.interface.events import Event


class Inbox:
    """Written by event sources and API calls, emptied by the scheduling loop; all of them in one event loop."""

    def __init__(self) -> None:
        self.wakeup = asyncio.Event()
        self._events: deque[Event] = deque()
        self._crash: BaseException | None = None

    def __len__(self) -> int:
        return len(self._events)

    def report(self, event: Event) -> None:
        self._events.append(event)
        self.wakeup.set()

    def crashed(self, error: BaseException) -> None:
        """An API call raised what none should raise; the next `take` raises it."""
        self._crash = error
        self.wakeup.set()

    def take(self, most: int) -> list[Event]:
        """The oldest events, at most so many. The wakeup stays set while some are left."""
        if self._crash is not None:
            raise RuntimeError("a write failed in a way that nobody foresaw") from self._crash
        taken = [self._events.popleft() for _ in range(min(len(self._events), most))]
        if not self._events:
            self.wakeup.clear()
        return taken
