"""A server in memory, a clock moved by hand, and controllers that run until they have nothing left to do."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import JOBS, NAMESPACES, NODES, PODS, Resource
from muster.client.clock import timestamp
from muster.client.local import LocalClient
from muster.controllers import ControllerManager
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore

START = 1_800_000_000.0


class ManualClock:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self._now = START
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = 0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._order, future))
        await future

    def jitter(self) -> float:
        return 0.0

    def next_due(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def move_to(self, when: float) -> None:
        self._now = max(self._now, when)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)


class World:
    """A cluster without machines."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server = ApiServer(MemoryStore(self.clock.now), build_registry(), clock=self.clock.now)
        self.client = LocalClient(self.server)
        self.manager: ControllerManager | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *which: str) -> None:
        """Run controllers: those named, or all."""
        self.manager = ControllerManager(self.client, clock=self.clock, which=which or None)
        self._tasks.append(asyncio.create_task(self.manager.run()))
        await self.manager.ready.wait()
        await self.settle()

    def follow(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something run beside, until the world stops."""
        self._tasks.append(asyncio.create_task(work))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def settle(self) -> None:
        """Until nothing happens any more while time stands still."""
        quiet = 0
        revision = -1
        while quiet < 12:
            await asyncio.sleep(0)
            busy = self.manager is not None and not self.manager.idle
            quiet = 0 if busy or self.server.store.revision != revision else quiet + 1
            revision = self.server.store.revision
            for task in self._tasks:
                if task.done():
                    task.result()

    async def advance(self, seconds: float) -> None:
        """Let time pass, stopping wherever something is due."""
        await self.settle()
        end = self.clock.now() + seconds
        while (due := self.clock.next_due()) is not None and due <= end:
            self.clock.move_to(due)
            await self.settle()
        self.clock.move_to(end)
        await self.settle()

    async def create(self, resource: Resource, name: str, namespace: str | None = "default", **body: Any) -> Any:
        metadata = {"name": name, **body.pop("metadata", {})}
        return await self.client.create(resource, {"metadata": metadata, **body}, namespace)

    async def get(self, resource: Resource, name: str, namespace: str | None = "default") -> Any:
        """The object, or None."""
        try:
            return await self.client.get(resource, name, namespace if resource.namespaced else None)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def pods(self, namespace: str = "default") -> list[Any]:
        page = await self.client.list(PODS, namespace)
        return sorted(page.items, key=lambda pod: pod["metadata"]["name"])

    async def pod(self, name: str, *, node: str = "", metadata: Any = None, **spec: Any) -> Any:
        body = {"containers": [{"name": "c", "image": "i"}], **spec}
        if node:
            body["nodeName"] = node
        return await self.create(PODS, name, metadata=metadata or {}, spec=body)

    async def phase(self, name: str, phase: str, *, ready: bool = False, namespace: str = "default") -> None:
        status: dict[str, Any] = {"phase": phase}
        state = "True" if ready else "False"
        when = timestamp(self.clock.now())
        status["conditions"] = [{"type": "Ready", "status": state, "lastTransitionTime": when}]
        await self.client.patch(PODS, name, {"status": status}, namespace, type="strategic", subresource="status")
        await self.settle()

    async def job(self, name: str = "j", **spec: Any) -> Any:
        template = spec.pop("template", None) or {
            "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
        }
        return await self.create(JOBS, name, spec={"template": template, **spec})

    async def namespace(self, name: str) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": name}})

    async def node(self, name: str, **body: Any) -> Any:
        return await self.create(NODES, name, None, **body)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    for resource, obj in bootstrap_objects():
        await made.client.create(resource, obj)
    yield made
    await made.stop()
