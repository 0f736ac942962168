"""An event loop on virtual time that runs several simulated processes, one callback at a time.

Each process has its own line of ready callbacks, which run in order, as in an event loop of its own; whose turn it is
next is drawn from the seed. So everything that could happen between processes can happen, and nothing that asyncio
promises inside one is broken. Which process a callback belongs to is in its context, which tasks and callbacks inherit.

A process can be killed (none of its callbacks runs any more, not even the cleanup of its coroutines), paused, and given
a clock that runs fast or slow. No thread, socket or real clock is used: `run_in_executor` runs the function at once and
answers later.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")
TICK = 20e-6  # virtual seconds that a callback takes
EXECUTOR_SECONDS = 0.002


class Deadlock(Exception):
    """Nothing will ever happen again."""


class SimTask(asyncio.Task):
    """A task whose hash does not depend on where it lies in memory, so that sets of tasks have the same order."""

    def __init__(self, coro: Any, *, loop: SimLoop, **kwargs: Any) -> None:
        self.serial = loop.serial()
        super().__init__(coro, loop=loop, **kwargs)

    def __hash__(self) -> int:
        return self.serial


class SimFuture(asyncio.Future):
    """The same for futures."""

    def __init__(self, *, loop: SimLoop) -> None:
        self.number = loop.serial()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class Process:
    """One simulated process."""

    def __init__(self, loop: SimLoop, name: str, rate: float = 1.0) -> None:
        self.loop = loop
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.rate = rate  # how fast its clock runs
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: list[asyncio.Task[Any]] = []
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)
        loop.processes.append(self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task in this process."""
        return self.loop.create_task(work, context=self.context.copy())

    def later(self, delay: float, call: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
        """Call something after a delay, in this process."""
        return self.loop.call_later(delay, call, *args, context=self.context)

    def at(self, when: float, call: Callable[..., Any], *args: Any) -> None:
        """Call something at a virtual time, in this process; what is due at the same time keeps its order."""
        self.loop.push(when, asyncio.TimerHandle(when, call, args, self.loop, self.context), self)

    def kill(self) -> None:
        """The process ends between two callbacks; nothing of it runs any more."""
        self.alive = False
        self.ready.clear()
        self.loop.processes.remove(self)
        self.loop.graveyard.append(self)

    def running_tasks(self) -> list[asyncio.Task[Any]]:
        self.tasks = [task for task in self.tasks if not task.done()]
        return self.tasks


class SimLoop(asyncio.BaseEventLoop):
    """The loop. `now` is the virtual time; `time()` is what the clock of the current process shows."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.now = 0.0
        self.processes: list[Process] = []
        self.graveyard: list[Process] = []
        self.errors: list[str] = []
        self.callbacks = 0
        self._rng = rng
        self._serial = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process]] = []
        self._last: Process | None = None
        self.world = Process(self, "world")
        self.set_exception_handler(self._record_error)
        self.set_task_factory(self._make_task)

    def serial(self) -> int:
        self._serial += 1
        return self._serial

    # --- what asyncio calls ------------------------------------------------------------------------

    def time(self) -> float:
        return self.now * self._current().rate

    def _current(self) -> Process:
        return PROCESS.get(self.world)

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def _make_task(self, loop: Any, coro: Any, **kwargs: Any) -> SimTask:
        task = SimTask(coro, loop=self, **kwargs)
        context = kwargs.get("context")
        process = context.get(PROCESS, self.world) if context is not None else self._current()
        process.tasks.append(task)
        if len(process.tasks) > 500:
            process.running_tasks()
        return task

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context or contextvars.copy_context())
        process = handle._context.get(PROCESS, self.world)
        if process.alive:
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context or contextvars.copy_context())
        self.push(when / self._current().rate, handle, handle._context.get(PROCESS, self.world))
        return handle

    def push(self, when: float, handle: asyncio.TimerHandle, process: Process) -> None:
        if process.alive:
            heapq.heappush(self._timers, (when, self.serial(), handle, process))

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        try:
            result, error = func(*args), None
        except Exception as failed:
            result, error = None, failed

        def answer() -> None:
            if future.done():
                return
            future.set_result(result) if error is None else future.set_exception(error)

        self.call_later(EXECUTOR_SECONDS, answer)
        return future

    def _run_once(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            _, _, handle, process = heapq.heappop(timers)
            if not handle._cancelled and process.alive:
                process.ready.append(handle)
        process = self._choose()
        if process is None:
            self._advance()
            return
        handle = process.ready.popleft()
        if not handle._cancelled:
            self.now += TICK
            self.callbacks += 1
            handle._run()

    def _choose(self) -> Process | None:
        """Whose turn it is: often that of the one before, else anybody's who can run."""
        last = self._last
        draw = self._rng.random()
        if last is not None and draw < 0.7 and last.alive and last.ready and last.paused_until <= self.now:
            return last
        able = [each for each in self.processes if each.ready and each.paused_until <= self.now]
        if not able:
            return None
        self._last = able[int(draw * 7919) % len(able)] if len(able) > 1 else able[0]
        return self._last

    def _advance(self) -> None:
        due = [each.paused_until for each in self.processes if each.ready]
        while self._timers and (self._timers[0][2]._cancelled or not self._timers[0][3].alive):
            heapq.heappop(self._timers)
        if self._timers:
            due.append(self._timers[0][0])
        if not due:
            raise Deadlock("no timer is set and nothing is ready")
        self.now = max(self.now, min(due))

    def _record_error(self, loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "never retrieved" in str(context.get("message")):
            return  # comes when memory is freed, which is not repeatable; what matters is logged or raised elsewhere
        self.errors.append(f"{self._current().name}: {context.get('message')}: {error!r}")

    def shut_down(self) -> None:
        """Free everything without running any of it."""
        for process in (*self.processes, *self.graveyard):
            process.ready.clear()
            for task in process.tasks:
                task._log_destroy_pending = False
        self._timers.clear()
        self.close()
