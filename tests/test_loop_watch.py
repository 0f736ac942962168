"""What holds the event loop is counted and named."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback

import pytest

from muster.loop_watch import LoopWatch, culprit_of


class Alone(LoopWatch):
    """Without the thread beside the loop, which a time that the test sets would confuse."""

    def _look(self, thread: int) -> None:
        return


async def test_a_function_that_holds_the_loop_is_counted_and_named(caplog: pytest.LogCaptureFixture):
    held: list[float] = []
    watch = LoopWatch(held.append)
    watch.start()
    await asyncio.sleep(0.06)

    with caplog.at_level(logging.WARNING, "muster.loop_watch"):
        _hold(0.4)
        await asyncio.sleep(0.1)
    await watch.stop()

    assert held
    assert max(held) > 0.2
    assert any("the event loop was held for" in each.message and "_hold" in each.message for each in caplog.records)


async def test_a_loop_that_only_waits_is_not_reported():
    """Time is the test's own here, so that a busy machine cannot hold the loop."""
    now = [0.0]
    held: list[float] = []
    watch = Alone(held.append, clock=lambda: now[0])
    watch.start()
    for _ in range(3):
        now[0] += 0.06
        await asyncio.sleep(0.06)
    await watch.stop()

    assert held == []


async def test_warnings_are_few_however_often_it_happens(caplog: pytest.LogCaptureFixture):
    now = [0.0]
    held: list[float] = []
    watch = Alone(held.append, clock=lambda: now[0])
    watch.start()
    with caplog.at_level(logging.WARNING, "muster.loop_watch"):
        for _ in range(12):
            watch._culprit = "in job.py:7 (reconcile)"
            now[0] += 1.0
            await asyncio.sleep(0.06)
    await watch.stop()

    assert len(held) >= 10
    assert len(caplog.records) == 6


async def test_a_machine_that_is_too_busy_is_not_blamed_on_anybody():
    now = [0.0]
    held: list[float] = []
    watch = Alone(held.append, clock=lambda: now[0])
    watch.start()
    await asyncio.sleep(0.06)
    watch._starved = True  # pyright: ignore[reportPrivateUsage]
    now[0] += 1.0
    await asyncio.sleep(0.06)
    await watch.stop()

    assert held == []


def test_the_culprit_is_our_innermost_function_and_what_it_called():
    ours = traceback.FrameSummary("/x/site-packages/muster/controllers/job.py", 7, "reconcile")
    theirs = traceback.FrameSummary("/usr/lib/python3/json/decoder.py", 3, "decode")

    both = culprit_of(traceback.StackSummary.from_list([ours, theirs]))

    assert both == "in controllers/job.py:7 (reconcile), which was in json/decoder.py:3 (decode)"


def _hold(seconds: float) -> None:
    end = time.thread_time() + seconds  # of processor time, so that a busy machine changes nothing
    while time.thread_time() < end:
        pass
