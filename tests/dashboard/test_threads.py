"""What a thread still reads stays locked, also when nobody waits for the answer any more."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from muster.dashboard.recording import Recording
from muster.dashboard.threads import in_thread
from tests.dashboard.test_recording import a_run, written


async def test_a_lock_outlives_the_question_that_took_it():
    lock, may_end, ended = asyncio.Lock(), threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(10)
        ended.set()

    async def ask() -> None:
        async with lock:
            await in_thread(work)

    asked = asyncio.create_task(ask())
    await asyncio.sleep(0.05)
    asked.cancel()
    await asyncio.sleep(0.05)
    assert lock.locked()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert ended.is_set()


async def test_a_recording_is_read_once_though_the_first_page_went_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    past = written(tmp_path / "log", a_run())
    reading, may_read = threading.Event(), threading.Event()
    add_line = Recording._add_line

    def slow(*given: object) -> None:
        reading.set()
        may_read.wait(10)
        add_line(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Recording, "_add_line", slow)
    first = asyncio.create_task(past.ready())
    await asyncio.to_thread(reading.wait, 10)
    first.cancel()
    second = asyncio.create_task(past.ready())
    await asyncio.sleep(0.05)
    may_read.set()
    await second
    assert [step.text for step in past.steps if step.bound] == ["2 pods of first bound", "2 pods of second bound"]
