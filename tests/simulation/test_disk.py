"""The simulated disk: what is lost with the power, and what the store says when the disk refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from muster.server.store.records import StoreFailedError
from tests.simulation.disk import SimDisk, SimStore
from tests.simulation.loop import Process, SimLoop


class Machine:
    """A disk, and a store that is opened on it."""

    def __init__(self, seed: int = 0) -> None:
        self.loop = SimLoop(Random(seed))
        self.counts: Counter[str] = Counter()
        self.disk = SimDisk(self.loop, Random(seed), self.counts)
        self.process = Process(self.loop, "server")

    def open(self) -> SimStore:
        return SimStore(self.disk, self.process, lambda: self.loop.now, lambda *_: None, lambda *_: None)

    def run(self, work: Callable[[Machine], Awaitable[None]]) -> None:
        async def start() -> None:
            await work(self)

        try:
            self.loop.run_until_complete(self.process.spawn(start()))
        finally:
            self.loop.shut_down()


async def create(store: SimStore, name: str) -> int:
    return (
        await store.create("pods", ("", name), f"uid-{name}", lambda revision: f"{name} {revision}".encode())
    ).revision


def test_what_was_answered_is_there_after_the_power_failed():
    async def work(machine: Machine) -> None:
        store = machine.open()
        revision = await create(store, "a")
        machine.disk.lose_power()
        again = machine.open()
        assert again.revision == revision
        found = again.get("pods", ("", "a"))
        assert found is not None
        assert found.body == b"a 2"

    Machine().run(work)


def test_what_was_not_synced_is_lost_or_whole():
    kept: set[bool] = set()

    async def work(machine: Machine) -> None:
        store = machine.open()
        writing = asyncio.ensure_future(create(store, "a"))
        await asyncio.sleep(0.00015)
        assert machine.disk.unsynced()
        machine.disk.lose_power()
        kept.add(machine.open().get("pods", ("", "a")) is not None)
        writing.cancel()

    for seed in range(20):
        Machine(seed).run(work)
    assert kept == {True, False}


@pytest.mark.parametrize("fault", ["full", "fails_to_sync"])
def test_a_disk_that_refuses_ends_the_store(fault: str):
    async def work(machine: Machine) -> None:
        store = machine.open()
        await create(store, "a")
        setattr(machine.disk, fault, True)
        with pytest.raises(StoreFailedError):
            await create(store, "b")
        setattr(machine.disk, fault, False)
        with pytest.raises(StoreFailedError):
            await create(store, "c")
        assert machine.open().get("pods", ("", "a")) is not None

    Machine().run(work)


def test_a_compacted_disk_gives_the_same_state():
    async def work(machine: Machine) -> None:
        store = machine.open()
        for name in "abc":
            await create(store, name)
        record = store.get("pods", ("", "b"))
        assert record is not None
        await store.delete("pods", ("", "b"), record.revision, lambda revision: b"gone")
        await create(store, "d")
        machine.disk.lose_power()
        store._sim_log.compact(store.revision - 1)
        again = machine.open()
        assert sorted(again.table("pods").records) == [("", "a"), ("", "c"), ("", "d")]
        assert again.revision == store.revision

    Machine().run(work)
