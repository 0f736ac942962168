"""A real API server in memory, a client that can be made to fail, and engines that are stopped at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster.api.resources import NAMESPACES, NODES, PODS
from muster.client.local import LocalClient
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore
from muster.testing import a_node, a_pod
from tests.client.clocks import QuickClock
from tests.engine.builders import FirstNodeScheduler, Profiles
from tests.engine.faulty import FaultyClient


class World:
    """One API server and the engines that run on it."""

    def __init__(self) -> None:
        self.server = ApiServer(MemoryStore(), build_registry())
        self.client = FaultyClient(LocalClient(self.server))
        self.direct = LocalClient(self.server)
        self.running: list[tuple[Engine, asyncio.Task[None]]] = []

    async def node(self, name: str = "n1", cpu: str = "8") -> dict[str, Any]:
        return await self.direct.create(NODES, a_node(name, cpu=cpu))

    async def pod(self, name: str, cpu: str = "1", **kwargs: Any) -> dict[str, Any]:
        return await self.direct.create(PODS, a_pod(name, cpu=cpu, schedulerName="muster", **kwargs))

    async def get(self, name: str) -> dict[str, Any]:
        return await self.direct.get(PODS, name, "default")

    async def node_of(self, name: str) -> str:
        return (await self.get(name))["spec"].get("nodeName", "")

    async def start(self, scheduler: Any = None, *profiles: str, **settings: Any) -> Engine:
        engine = Engine(
            self.client,
            Profiles(*profiles),
            Settings(**settings),
            scheduler=scheduler or FirstNodeScheduler(),
            clock=QuickClock(),
        )
        await self.launch(engine)
        return engine

    async def launch(self, engine: Engine) -> None:
        """Run an engine until it is ready, or raise what ended it."""
        task = asyncio.create_task(engine.run())
        self.running.append((engine, task))
        ready = asyncio.create_task(engine.ready.wait())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        ready.cancel()
        if task.done():
            await task

    async def stop(self) -> None:
        for engine, task in self.running:
            engine.stop()
            await asyncio.gather(task, return_exceptions=True)
        self.running = []


async def eventually(check: Any, seconds: float = 5.0) -> None:
    """Wait until something becomes true."""
    async with asyncio.timeout(seconds):
        while True:
            if await check():
                return
            await asyncio.sleep(0.005)


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    world = World()
    for name in ("default", "kube-system"):
        await world.direct.create(NAMESPACES, {"metadata": {"name": name}})
    try:
        yield world
    finally:
        await world.stop()
        await world.server.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as made:
        yield made


async def quiet(world: World) -> tuple[FirstNodeScheduler, Any]:
    """A scheduler that decides only what the test tells it to, and its engine."""
    scheduler = FirstNodeScheduler(node="")
    return scheduler, await world.start(scheduler)


async def say(engine: Any, scheduler: FirstNodeScheduler, *lists: list[Any]) -> None:
    scheduler.say += lists
    engine._inbox.wakeup.set()
    await engine.settled()


async def until_result(scheduler: FirstNodeScheduler) -> None:
    async def done() -> bool:
        return bool(scheduler.results())

    await eventually(done)
