"""What both stores share: how those who wait for a change are woken."""

from __future__ import annotations

import asyncio

from muster.server.store.memory import MemoryStore


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
