"""Many clients on one durable server over HTTPS: everything they saw has to fit one order of revisions."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
from history import Entry, check_clients, check_log, check_watch

from load import Watcher, Wire, Writer
from muster.plane.options import Options
from muster.plane.plane import Plane
from muster.server.store.base import Store

SIDES = ("", "left", "right")


class Run:
    """What came of a run."""

    def __init__(self, writers: list[Writer], watchers: list[Watcher], log: list[Entry]) -> None:
        self.ops = [op for writer in writers for op in writer.ops]
        self.watchers = watchers
        self.log = log

    def complaints(self) -> list[str]:
        wrong = check_log(self.log) + check_clients(self.ops, self.log)
        for watcher in self.watchers:
            wrong += check_watch(watcher.session, self.log)
        return wrong


def log_of(store: Store) -> list[Entry]:
    changes = store.table("pods").changes
    return [
        Entry(each.revision, each.type, each.record.key[1], msgspec.json.decode(each.record.body)) for each in changes
    ]


async def a_busy_while(directory: Path, seconds: float, seed: int, writers: int = 6) -> Run:
    """Let clients work on a server for some seconds."""
    options = Options(
        data=directory / "data", kubeconfig=directory / "data" / "k", controllers=False, scheduler=False, freeze=False
    )
    async with Plane(options) as plane, AsyncExitStack() as stack:
        writing = [Writer(f"w{index}", seed * 100 + index) for index in range(writers)]
        start = plane.api.store.revision
        watching = [Watcher(f"{index}{SIDES[index % 3]}", seed + index, SIDES[index % 3], start) for index in range(6)]
        kubeconfig = directory / "data" / "k"
        wires = [await stack.enter_async_context(Wire(kubeconfig)) for _ in range(writers + 6)]
        deadline = time.monotonic() + seconds
        following = [
            asyncio.ensure_future(watcher.run(wire, lambda: time.monotonic() > deadline + 0.5))
            for watcher, wire in zip(watching, wires[writers:], strict=True)
        ]
        work = [
            writer.run(wire, lambda: time.monotonic() > deadline) for writer, wire in zip(writing, wires, strict=False)
        ]
        await asyncio.gather(*work)
        await asyncio.gather(*following)
        return Run(writing, watching, log_of(plane.api.store))


async def test_every_answer_and_every_event_fits_the_order_of_revisions(tmp_path: Path) -> None:
    run = await a_busy_while(tmp_path, 3.0, seed=1)

    assert len(run.log) > 100
    assert all(len(watcher.session.events) > 20 for watcher in run.watchers)
    assert run.complaints() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
async def test_the_same_for_a_longer_while(tmp_path: Path, seed: int) -> None:
    run = await a_busy_while(tmp_path, 8.0, seed=1000 + seed, writers=12)

    assert run.complaints() == []
