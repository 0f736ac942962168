"""Writes in order: one lane an object, binds before statuses before events, so many at a time.

Within a lane writes start in the order they were submitted, one at a time; a status that has not started
yet absorbs the next one for the same object. Between lanes there is no order, except that a write can
wait behind a `Barrier`: a set of earlier writes that must have ended first. Dependencies only ever point
to earlier writes, so nothing can wait for itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from muster.engine.leader import LeadershipLost
from muster.engine.logs import keys

log = logging.getLogger(__name__)

BIND, STATUS, EVENT = range(3)
LaneKey = tuple[str, str, str]  # kind, namespace, name


class Write(ABC):
    """One write to one object: subclasses say how in `run`, which returns "" or what went wrong for good."""

    rank = STATUS
    call = "write"  # its name in metrics

    def __init__(self, key: LaneKey) -> None:
        self.key = key
        self.started = False
        self.ended = False
        self.fault = ""  # what went wrong for good, once it has ended
        self.after: Barrier | None = None
        self.watchers: list[Barrier] = []

    @abstractmethod
    async def run(self) -> str: ...

    def absorb(self, later: Write) -> bool:
        """Take over a later write to the same object, if both can be one."""
        return False


class Barrier:
    """Opens when a set of writes has ended, and knows which of them failed."""

    def __init__(self, writes: Iterable[Write]) -> None:
        self.left = 0
        self.faults: list[str] = []
        self.waiting: list[Write] = []
        for write in writes:
            if write.ended:
                self.faults += [write.fault] if write.fault else []
            else:
                self.left += 1
                write.watchers.append(self)

    @property
    def open(self) -> bool:
        return self.left == 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How many writes of each sort may be under way at once."""

    binds: int = 64
    statuses: int = 16
    events: int = 4


class Lanes:
    """Starts writes when their turn has come."""

    def __init__(
        self,
        limits: Limits,
        crashed: Callable[[BaseException], None],
        wrote: Callable[[str, str, float], None] | None = None,
    ) -> None:
        self._limits = (limits.binds, limits.statuses, limits.events)
        self._crashed = crashed
        self._wrote = wrote
        self._lanes: dict[LaneKey, deque[Write]] = {}
        self._ready: tuple[deque[Write], deque[Write], deque[Write]] = (deque(), deque(), deque())
        self._running = [0, 0, 0]
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def submit(self, write: Write, after: Barrier | None = None) -> Write | None:
        """Queue a write; returns the one that will carry it out (None when nothing is accepted any more)."""
        if self._closed:
            return None
        lane = self._lanes.setdefault(write.key, deque())
        write.after = after
        if after is not None:
            if not after.open:
                after.waiting.append(write)
        elif lane and not lane[-1].started and lane[-1].absorb(write):
            return lane[-1]
        lane.append(write)
        self._idle.clear()
        if lane[0] is write:
            self._offer(write)
            self._pump()
        return write

    def queued(self, key: LaneKey) -> list[Write]:
        """The writes to an object that have not started."""
        return [write for write in self._lanes.get(key, ()) if not write.started]

    def pending(self) -> int:
        return sum(len(lane) for lane in self._lanes.values())

    def running(self, rank: int) -> int:
        return self._running[rank]

    async def drain(self, ranks: Iterable[int] = (BIND,)) -> None:
        """Wait until the writes of these ranks that are under way or ready have ended."""
        chosen = list(ranks)
        while any(self._running[rank] or self._ready[rank] for rank in chosen):
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def settled(self) -> None:
        """Wait until no write is left."""
        await self._idle.wait()

    def close(self) -> None:
        """Accept nothing more and forget what has not started; what is under way goes on."""
        self._closed = True
        for ready in self._ready:
            ready.clear()

    def abort(self) -> None:
        """Accept nothing more and cut off what is under way."""
        self.close()
        for task in self._tasks:
            task.cancel()

    async def cancel(self) -> None:
        """Abort, and wait until everything has stopped."""
        self.abort()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- turns -------------------------------------------------------------------------------------

    def _offer(self, write: Write) -> None:
        if write.after is None or write.after.open:
            self._ready[write.rank].append(write)

    def _pump(self) -> None:
        if self._closed:
            return
        for rank, ready in enumerate(self._ready):
            room = self._room(rank)
            while ready and self._running[rank] < room:
                self._start(ready.popleft())

    def _room(self, rank: int) -> int:
        """While more urgent writes are under way, the others go on, but at a quarter of their width."""
        urgent = any(self._running[:rank]) or any(self._ready[:rank])
        whole = self._limits[rank]
        return max(1, whole // 4) if urgent else whole

    def _start(self, write: Write) -> None:
        write.started = True
        self._running[write.rank] += 1
        task = asyncio.get_running_loop().create_task(self._carry(write))
        self._tasks.add(task)

    async def _carry(self, write: Write) -> None:
        fault, began = "interrupted", time.perf_counter()
        try:
            fault = await write.run()
        except LeadershipLost as error:
            fault = str(error)
        except Exception as error:
            log.exception("A write failed unexpectedly", extra=keys(object="/".join(write.key)))
            fault = str(error) or type(error).__name__
            self._crashed(error)
        finally:
            self._ended(write, fault)
            if self._wrote is not None:
                self._wrote(write.call, fault, time.perf_counter() - began)

    def _ended(self, write: Write, fault: str) -> None:
        write.ended, write.fault = True, fault
        current: Any = asyncio.current_task()
        self._tasks.discard(current)
        self._running[write.rank] -= 1
        lane = self._lanes[write.key]
        lane.popleft()
        if lane:
            self._offer(lane[0])
        else:
            del self._lanes[write.key]
        for barrier in write.watchers:
            self._passed(barrier, fault)
        self._pump()
        if not self._lanes:
            self._idle.set()

    def _passed(self, barrier: Barrier, fault: str) -> None:
        barrier.left -= 1
        if fault:
            barrier.faults.append(fault)
        if barrier.open:
            for write in barrier.waiting:
                if self._lanes[write.key][0] is write:
                    self._offer(write)
            barrier.waiting = []
