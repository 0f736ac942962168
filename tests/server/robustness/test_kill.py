"""`kill -9` under write load, again and again on the same data directory.

After each kill the files are read without the server: every acknowledged write is there, whole and at its revision,
and nothing is there that nobody asked for. The watchers live through all kills and must have seen every change once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from data_directory import copied, damaged, pods, rows
from history import check_clients, check_log, check_watch
from process import Server

from load import LOST, Watcher, Wire, Writer, stored_wrongly

WRITERS = 5


class Siege:
    """One data directory, its clients, and how often the server was killed."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.data = directory / "data"
        self.scratch = directory / "scratch"
        self.rng = random.Random(seed)
        self.writers = [Writer(f"w{index}", seed + index) for index in range(WRITERS)]
        self.watchers = [Watcher(side or "all", seed + index, side) for index, side in enumerate(("", "left", "right"))]
        self.newest = 0

    async def round(self) -> None:
        """Start, work, kill, look."""
        server = Server(self.data)
        assert server.up, server.said
        killed = asyncio.Event()
        async with AsyncExitStack() as stack:
            tasks: list[asyncio.Task[None]] = []
            for client in (*self.writers, *self.watchers):
                wire = await stack.enter_async_context(Wire(server.kubeconfig))
                tasks.append(
                    asyncio.create_task(until_killed(lambda c=client, w=wire: c.run(w, killed.is_set), killed))
                )
            await self.acknowledged(self.rng.randrange(10, 120))
            server.process.kill()
            killed.set()
            await asyncio.gather(*tasks)
        server.end()
        self.check()

    async def acknowledged(self, writes: int) -> None:
        """Wait for so many more writes, however fast this machine is."""
        enough = self.written() + writes
        async with asyncio.timeout(60):
            while self.written() < enough:  # noqa: ASYNC110 - the clients are busy with other things
                await asyncio.sleep(0.001)

    def written(self) -> int:
        return sum(op.kind == "write" for writer in self.writers for op in writer.ops)

    def check(self) -> None:
        found = rows(copied(self.data, self.scratch))
        assert damaged(found) == []
        assert found[-1].revision >= self.newest
        log = pods(found)
        assert check_log(log) == []
        fresh = [entry for entry in log if entry.revision > self.newest]
        assert [wrong for entry in fresh for wrong in stored_wrongly(entry.obj)] == []
        ops = [op for writer in self.writers for op in writer.ops]
        asked = {op.mark for op in ops}
        assert [entry for entry in log if entry.obj["metadata"]["labels"]["mark"] not in asked] == []
        assert check_clients(ops, log) == []
        for watcher in self.watchers:
            assert watcher.revision <= found[-1].revision, "a watcher was told of a change that was lost"
            assert check_watch(watcher.session, log) == []
        self.newest = found[-1].revision


async def until_killed(work: Callable[[], Awaitable[None]], killed: asyncio.Event) -> None:
    """Work until the server is gone; losing it earlier is a failure."""
    try:
        await work()
    except LOST:
        if not killed.is_set():
            await asyncio.wait_for(killed.wait(), 0.5)


@pytest.mark.slow
async def test_three_kills_lose_nothing(tmp_path: Path) -> None:
    siege = Siege(tmp_path, seed=1)
    for _ in range(3):
        await siege.round()

    assert siege.newest > 100


@pytest.mark.e2e
@pytest.mark.timeout(900)
async def test_forty_kills_lose_nothing(tmp_path: Path) -> None:
    siege = Siege(tmp_path, seed=40)
    for _ in range(40):
        await siege.round()

    assert siege.newest > 1_000
