"""A watch over the event loop: what holds it for too long is counted, and named in the log.

Everything of a process shares one loop, so code that computes or blocks for long keeps every request waiting. A task
notes the time at short intervals; a thread beside the loop sees when that stops, and looks where the loop's thread is.
Where the thread beside it is late as well and the loop's thread did not compute, the machine is too busy, and nothing
is said.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

log = logging.getLogger(__name__)

HELD_TOO_LONG = 0.1
METRIC = "muster_event_loop_held_seconds"
_INTERVAL = 0.05
_WARNINGS_A_MINUTE = 6


class HeldTimes:
    """How often and for how long the loop was held, as metrics."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds

    def text(self) -> bytes:
        """In the text format of Prometheus."""
        name = METRIC
        return (
            f"# HELP {name} Times that the event loop was held for more than {HELD_TOO_LONG:g} s.\n"
            f"# TYPE {name} summary\n{name}_count {self.count}\n{name}_sum {self.seconds:.6f}\n"
        ).encode()


class LoopWatch:
    """Watches the running loop from `start` to `stop`; `held` is called with the seconds of every time it was held."""

    def __init__(self, held: Callable[[float], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._held = held
        self._clock = clock
        self._seen = 0.0
        self._computed = 0.0  # processor time of the loop's thread at that moment
        self._culprit = ""
        self._starved = False  # the thread beside the loop was late as well
        self._stopped = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._warned: list[float] = []

    def start(self) -> None:
        self._seen, self._computed = self._clock(), time.thread_time()
        self._task = asyncio.get_running_loop().create_task(self._note(), name="loop-watch")
        thread = threading.get_ident()
        threading.Thread(target=self._look, args=(thread,), name="muster-loop-watch", daemon=True).start()

    async def stop(self) -> None:
        self._stopped.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _note(self) -> None:
        """On the loop: note the time, and report if the last note is too old."""
        while True:
            await asyncio.sleep(_INTERVAL)
            now, computed = self._clock(), time.thread_time()
            late, culprit = now - self._seen - _INTERVAL, self._culprit
            busy = computed - self._computed >= HELD_TOO_LONG
            if late >= HELD_TOO_LONG and (busy or not self._starved):
                self._report(now, late, culprit)
            self._seen, self._computed, self._culprit, self._starved = now, computed, "", False

    def _report(self, now: float, late: float, culprit: str) -> None:
        self._held(late)
        self._warned = [when for when in self._warned if now - when < 60.0]
        if culprit and len(self._warned) < _WARNINGS_A_MINUTE:
            self._warned.append(now)
            log.warning("the event loop was held for %.0f ms: %s", late * 1000, culprit)

    def _look(self, thread: int) -> None:
        """Beside the loop: see where its thread is while no note comes."""
        before = self._clock()
        while not self._stopped.wait(_INTERVAL):
            now, last = self._clock(), before
            before = now
            if now - last - _INTERVAL >= HELD_TOO_LONG / 2:
                self._starved = True
            if not self._culprit and now - self._seen >= HELD_TOO_LONG + _INTERVAL:
                frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
                if frame is not None:
                    self._culprit = culprit_of(traceback.extract_stack(frame))


def culprit_of(stack: traceback.StackSummary) -> str:
    """The innermost function of ours in a stack, and what it called last."""
    ours = [each for each in stack if "/muster/" in each.filename and not each.filename.endswith("loop_watch.py")]
    if not stack:
        return ""
    last = stack[-1]
    text = f"in {_named(ours[-1])}" if ours else f"in {_named(last)}"
    return text if not ours or last is ours[-1] else f"{text}, which was in {_named(last)}"


def _named(frame: traceback.FrameSummary) -> str:
    return f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno} ({frame.name})"
