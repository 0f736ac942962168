"""The loop of the simulator: order inside a process, chance between processes, death, pauses, clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from tests.simulation.loop import Deadlock, Process, SimLoop


def run(loop: SimLoop, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return loop.run_until_complete(loop.world.spawn(work))
    finally:
        loop.shut_down()


def interleaving(seed: int) -> list[str]:
    loop = SimLoop(Random(seed))
    seen: list[str] = []

    async def count(name: str) -> None:
        for number in range(20):
            seen.append(f"{name}{number}")
            await asyncio.sleep(0)

    async def both() -> None:
        tasks = [Process(loop, name).spawn(count(name)) for name in "ab"]
        await asyncio.gather(*tasks)

    run(loop, both())
    return seen


def test_inside_a_process_the_order_is_kept_and_between_processes_the_seed_decides():
    first = interleaving(1)
    assert first == interleaving(1)
    assert first != interleaving(2)
    for name in "ab":
        assert [each for each in first if each[0] == name] == [f"{name}{number}" for number in range(20)]


def test_time_passes_only_when_nobody_can_run():
    loop = SimLoop(Random(0))

    async def sleep() -> float:
        await asyncio.sleep(3600.0)
        return loop.now

    assert 3600.0 <= run(loop, sleep()) < 3600.1


def test_of_a_killed_process_nothing_runs_any_more_not_even_its_cleanup():
    loop = SimLoop(Random(0))
    seen: list[str] = []

    async def work() -> None:
        try:
            while True:
                seen.append("worked")
                await asyncio.sleep(1.0)
        finally:
            seen.append("cleaned up")

    async def kill() -> None:
        process = Process(loop, "victim")
        process.spawn(work())
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(5.0)
        assert seen == ["worked"] * 3

    run(loop, kill())


def test_a_paused_process_goes_on_where_it_was():
    loop = SimLoop(Random(0))
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(loop.now)
            await asyncio.sleep(1.0)

    async def pause() -> None:
        process = Process(loop, "sleeper")
        process.spawn(tick())
        await asyncio.sleep(1.5)
        process.paused_until = loop.now + 10.0
        await asyncio.sleep(12.0)

    run(loop, pause())
    assert [round(at) for at in ticks] == [0, 1, 12, 13]


def test_a_fast_clock_makes_timers_run_out_early():
    loop = SimLoop(Random(0))

    async def sleep() -> float:
        await asyncio.sleep(100.0)
        return loop.now

    async def start() -> float:
        return await Process(loop, "fast", rate=2.0).spawn(sleep())

    assert round(run(loop, start())) == 50


def test_a_function_in_an_executor_is_answered_later_and_errors_come_back():
    loop = SimLoop(Random(0))

    async def ask() -> None:
        assert await asyncio.to_thread(lambda: 42) == 42
        assert loop.now > 0.001
        with pytest.raises(ValueError, match="no"):
            await asyncio.to_thread(_fail)

    run(loop, ask())


def _fail() -> None:
    raise ValueError("no")


def test_waiting_for_nothing_is_found():
    loop = SimLoop(Random(0))

    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run(loop, wait())
