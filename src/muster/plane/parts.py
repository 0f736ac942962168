"""The parts of the plane beside the API server: each is a task that gets ready, runs, and is stopped.

A part imports its room when it starts, so that a plane without a scheduler never loads one.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from muster.client.protocol import Client
from muster.plane.options import Options


class Part(ABC):
    """One room at work. `task` ends only when the part is stopped or has failed."""

    name: str

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None

    async def start(self, client: Client, options: Options) -> None:
        """Run until ready; raises what kept it from getting there."""
        ready = self.prepare(client, options)
        self.task = asyncio.create_task(self.run(), name=f"plane-{self.name}")
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait({self.task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if self.task.done():
                await self.task
        finally:
            waiting.cancel()

    async def stop(self) -> None:
        """End, however it stands."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    @abstractmethod
    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        """Make what `run` needs; the event says when it is at work."""

    @abstractmethod
    async def run(self) -> None: ...


class Controllers(Part):
    """Upkeep: garbage, namespaces, jobs, deployments, protection."""

    name = "controllers"

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        from muster.controllers import ControllerManager

        self._manager = ControllerManager(client)
        return self._manager.ready

    async def run(self) -> None:
        await self._manager.run()
