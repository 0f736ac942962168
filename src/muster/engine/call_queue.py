"""Starts API calls in order: calls to one object one at a time, binds before statuses before events, so many at once.

Calls to one object start in the order they were submitted; a status patch that has not started yet takes over the next
one for the same object. That the minimum of a group is bound goes before everything else: after the answer to a bind
nothing is started before the scheduler has had the chance to say so. Between objects there is no order, except that a
call can wait behind a `Barrier`: a set of earlier calls that must have ended first. Dependencies only point to earlier
calls, so there is no deadlock.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.engine.api_calls.call import BIND, ApiCall, Barrier, CallKey
from muster.engine.leader_election import LeadershipLost
from muster.logs import keys

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    """How many calls of each rank may be in flight at once."""

    scheduled: int = 16  # that a group's minimum is bound
    binds: int = 64
    statuses: int = 16
    events: int = 4


class CallQueue:
    """Runs the submitted calls.

    `crashed` is told of an exception that no call should raise, `finished` of every call that ended: its type, its
    error and how long it took. `wake` wakes the task that hears the answers to binds: after one nothing is started
    before that task has said `start`.
    """

    def __init__(
        self,
        limits: ConcurrencyLimits,
        crashed: Callable[[BaseException], None],
        finished: Callable[[str, str, float], None] | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self._limits = (limits.scheduled, limits.binds, limits.statuses, limits.events)
        self._crashed = crashed
        self._finished = finished
        self._wake = wake
        self._held = False
        self._queues: dict[CallKey, deque[ApiCall]] = {}
        self._ready: list[deque[ApiCall]] = [deque() for _ in self._limits]
        self._running = [0 for _ in self._limits]
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def submit(self, call: ApiCall, after: Barrier | None = None) -> ApiCall | None:
        """Queue a call; returns the one that will carry it out (None when nothing is accepted any more)."""
        if self._closed:
            return None
        queue = self._queues.setdefault(call.key, deque())
        call.after = after
        if after is not None:
            if not after.open:
                after.waiting.append(call)
        elif queue and not queue[-1].started and self._merge(queue[-1], call):
            return queue[-1]
        queue.append(call)
        self._idle.clear()
        if queue[0] is call:
            self._offer(call)
            self._start_ready()
        return call

    def hold(self) -> None:
        """Start nothing before `start`: what is submitted together may become one call."""
        self._held = True

    def start(self) -> None:
        """Start what is ready, as far as the limits allow."""
        self._held = False
        self._start_ready()

    def _merge(self, earlier: ApiCall, later: ApiCall) -> bool:
        """Let an earlier call do the work of a later one; it is as urgent as the more urgent of them."""
        rank = earlier.rank
        if not earlier.merge(later):
            return False
        if earlier.rank != rank and earlier in self._ready[rank]:
            self._ready[rank].remove(earlier)
            self._offer(earlier)
            self._start_ready()
        return True

    def queued(self, key: CallKey) -> list[ApiCall]:
        """The calls to an object that have not started."""
        return [call for call in self._queues.get(key, ()) if not call.started]

    def pending(self) -> int:
        """How many calls have not ended."""
        return sum(len(queue) for queue in self._queues.values())

    def running(self, rank: int) -> int:
        return self._running[rank]

    async def drain(self, ranks: Iterable[int] = (BIND,)) -> None:
        """Wait until the calls of these ranks that are in flight or ready have ended."""
        chosen = list(ranks)
        while any(self._running[rank] or self._ready[rank] for rank in chosen):
            self.start()
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    async def settled(self) -> None:
        """Wait until no call is left."""
        await self._idle.wait()

    def close(self) -> None:
        """Accept nothing more and forget what has not started; what is in flight goes on."""
        self._closed = True
        for ready in self._ready:
            ready.clear()

    def abort(self) -> None:
        """Accept nothing more and cancel what is in flight."""
        self.close()
        for task in self._tasks:
            task.cancel()

    async def cancel(self) -> None:
        """Abort, and wait until everything has stopped."""
        self.abort()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- starting and ending -----------------------------------------------------------------------

    def _offer(self, call: ApiCall) -> None:
        if call.after is None or call.after.open:
            self._ready[call.rank].append(call)

    def _start_ready(self) -> None:
        if self._closed or self._held:
            return
        for rank, ready in enumerate(self._ready):
            limit = self._limit(rank)
            while ready and self._running[rank] < limit:
                self._start(ready.popleft())

    def _limit(self, rank: int) -> int:
        """While binds or more urgent calls are in flight, the others go on, but at a quarter of their limit."""
        urgent = rank > BIND and (any(self._running[BIND:rank]) or any(self._ready[BIND:rank]))
        whole = self._limits[rank]
        return max(1, whole // 4) if urgent else whole

    def _start(self, call: ApiCall) -> None:
        call.started = True
        self._running[call.rank] += 1
        task = asyncio.get_running_loop().create_task(self._run(call))
        self._tasks.add(task)

    async def _run(self, call: ApiCall) -> None:
        error, began = "interrupted", time.perf_counter()
        try:
            error = await call.run()
        except LeadershipLost as lost:
            error = str(lost)
        except Exception as unexpected:
            log.exception("A write failed unexpectedly", extra=keys(object="/".join(call.key)))
            error = str(unexpected) or type(unexpected).__name__
            self._crashed(unexpected)
        finally:
            self._end(call, error)
            if self._finished is not None:
                self._finished(call.call_type, error, time.perf_counter() - began)

    def _end(self, call: ApiCall, error: str) -> None:
        call.ended, call.error = True, error
        current = asyncio.current_task()
        if current is not None:
            self._tasks.discard(current)
        self._running[call.rank] -= 1
        queue = self._queues[call.key]
        queue.popleft()
        if queue:
            self._offer(queue[0])
        else:
            del self._queues[call.key]
        for barrier in call.barriers:
            self._passed(barrier, error)
        if call.rank != BIND or self._wake is None:
            self._start_ready()
        else:
            self._held = True
            self._wake()
        if not self._queues:
            self._idle.set()

    def _passed(self, barrier: Barrier, error: str) -> None:
        barrier.left -= 1
        if error:
            barrier.errors.append(error)
        if barrier.open:
            for call in barrier.waiting:
                if self._queues[call.key][0] is call:
                    self._offer(call)
            barrier.waiting = []
