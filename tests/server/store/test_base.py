"""What both stores share: how those who wait for a change are woken, and what is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from muster.server.store.memory import MemoryStore
from muster.server.store.table import Table


async def test_many_watchers_are_woken_a_few_at_a_time_so_that_others_have_their_turn():
    store = MemoryStore(lambda: 0.0)
    woken: list[int] = []
    at_turn: list[int] = []

    async def watch(number: int) -> None:
        await store.next_change("pods")
        woken.append(number)

    watchers = [asyncio.create_task(watch(number)) for number in range(100)]
    await asyncio.sleep(0)

    await store.create("pods", ("default", "a"), "u", lambda revision: b"{}")
    for _ in range(8):
        await asyncio.sleep(0)
        at_turn.append(len(woken))

    await asyncio.gather(*watchers)
    assert woken == list(range(100)), "in the order in which they came"
    assert 0 < at_turn[1] <= 50, "others had their turn between them"


async def test_a_change_while_watchers_are_being_woken_wakes_them_again():
    store = MemoryStore(lambda: 0.0)
    seen: dict[int, int] = {}

    async def watch(number: int) -> None:
        position = 0
        while position < 2:
            await store.next_change("pods")
            position = store.table("pods").end
        seen[number] = position

    watchers = [asyncio.create_task(watch(number)) for number in range(60)]
    await asyncio.sleep(0)
    await store.create("pods", ("default", "a"), "u", lambda revision: b"{}")
    await asyncio.sleep(0)
    await store.create("pods", ("default", "b"), "v", lambda revision: b"{}")

    async with asyncio.timeout(5):
        await asyncio.gather(*watchers)
    assert set(seen.values()) == {2}


async def test_changes_out_of_the_window_are_forgotten_while_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muster.server.store.base.WINDOW_SECONDS", -0.99)  # the timer is due at once
    now = 1000.0
    store = MemoryStore(clock=lambda: now)
    for number in range(3000):
        await store.create("pods", ("ns", f"p{number}"), "u", lambda revision: b"{}")
    table = store.table("pods")
    assert len(table.changes) == 3000
    now += 100.0
    trimmed = asyncio.Event()
    monkeypatch.setattr(table, "trim", lambda at: (Table.trim(table, at), trimmed.set()))
    async with asyncio.timeout(5):
        await trimmed.wait()
    assert len(table.changes) == 1024
    assert (len(table.records), table.floor, table.end) == (3000, table.changes[0].revision - 1, 3000)
    await store.close()


async def test_a_closed_store_has_no_timer_left() -> None:
    store = MemoryStore()
    await store.create("pods", ("ns", "p"), "u", lambda revision: b"{}")
    timer = store._trimming
    assert timer is not None
    await store.close()
    assert timer.cancelled()
