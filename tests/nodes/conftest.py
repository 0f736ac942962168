"""A server in memory with simulated nodes, on a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.resources import PODS
from muster.nodes import Inventory, SimulatedNodes, Timing
from muster.server.admission.bootstrap import bootstrap_objects
from tests.controllers.conftest import World


class NodeWorld(World):
    """A world with machines, simulated ones."""

    nodes: SimulatedNodes

    async def machines(self, timing: Timing | None = None, **inventory: Any) -> SimulatedNodes:
        self.nodes = SimulatedNodes(self.client, Inventory(**inventory), timing=timing, clock=self.clock)
        self.follow(self.nodes.run())
        await self.nodes.ready.wait()
        await self.settle()
        return self.nodes

    async def placed(self, name: str, node: str = "node-0", annotations: Any = None, **spec: Any) -> Any:
        """A pod that a scheduler has bound."""
        metadata = {"annotations": annotations} if annotations else {}
        made = await self.pod(name, metadata=metadata, **spec)
        await self.client.bind("default", name, made["metadata"]["uid"], node)
        await self.settle()

    async def phase_of(self, name: str) -> str | None:
        pod = await self.get(PODS, name)
        return None if pod is None else pod["status"]["phase"]


@pytest.fixture
async def world() -> AsyncIterator[NodeWorld]:
    made = NodeWorld()
    for resource, obj in bootstrap_objects():
        await made.client.create(resource, obj)
    yield made
    await made.stop()
