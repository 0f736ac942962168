"""The work queue: each key once at a time, again when it changed, later when it failed."""

from __future__ import annotations

import asyncio

from muster.client.clock import SystemClock
from muster.controllers.workqueue import WorkQueue
from tests.controllers.conftest import World


async def test_a_key_that_changes_while_it_is_worked_on_is_worked_on_again():
    queue = WorkQueue(SystemClock())
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert queue.idle is False

    queue.add("a")
    queue.done("a")

    assert await queue.get() == "a"
    queue.done("a")
    assert queue.idle


async def test_a_key_that_fails_comes_back_later_each_time(world: World):
    queue = WorkQueue(world.clock)
    began = world.clock.now()
    delays: list[float] = []
    for _ in range(3):
        queue.retry("a")
        await asyncio.sleep(0)
        due = world.clock.next_due()
        assert due is not None
        delays.append(round(due - began, 3))
        began = due
        world.clock.move_to(due)
        assert await queue.get() == "a"
        queue.done("a")
    assert delays == [0.05, 0.1, 0.2]

    queue.forget("a")
    queue.retry("a")
    await asyncio.sleep(0)
    due = world.clock.next_due()
    assert due is not None
    assert round(due - began, 3) == 0.05, "a key that went well starts over"
    await queue.close()


async def test_an_earlier_appointment_stands(world: World):
    queue = WorkQueue(world.clock)
    queue.add_after("a", 5.0)
    queue.add_after("a", 9.0)
    await asyncio.sleep(0)

    world.clock.move_to(world.clock.now() + 5.0)

    assert await queue.get() == "a"
    await queue.close()


async def test_a_clock_that_was_put_forward_does_not_make_a_late_appointment_look_early(world: World):
    queue = WorkQueue(world.clock)
    queue.add_after("a", 300.0)
    await asyncio.sleep(0)
    world.clock._now += 3600.0  # set, while the sleepers go on sleeping

    queue.add_after("a", 0.2)
    await asyncio.sleep(0)

    world.clock._sleepers = [each for each in world.clock._sleepers if not each[2].done()]
    assert min(due for due, _, _ in world.clock._sleepers if due > world.clock.now()) == world.clock.now() + 0.2
    await queue.close()


async def test_a_key_that_keeps_coming_back_has_to_wait(world: World):
    queue = WorkQueue(world.clock)
    queue.add("busy")
    taken = 0
    while not queue.idle:
        assert await queue.get() == "busy"
        taken += 1
        queue.add("busy")
        queue.done("busy")

    assert taken == 50
    queue.add("other")
    assert await queue.get() == "other", "other keys go on"
    await asyncio.sleep(0)
    world.clock.move_to(world.clock.now() + 1.0)
    assert await queue.get() == "busy", "it comes back, later"
    await queue.close()
