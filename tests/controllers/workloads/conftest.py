"""A cluster without machines whose pods are put into groups, with simulated managers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.membership import JOB_SETS, LEADER_WORKER_SETS
from muster.api.resources import (
    COMPOSITE_POD_GROUPS,
    CORE_EVENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    POD_GROUPS,
    WORKLOADS,
)
from muster.client.local import LocalClient
from muster.controllers import ControllerManager
from muster.controllers.manager import CONTROLLERS, SIMULATED_MANAGERS
from muster.controllers.simulated_managers.definitions import definition
from muster.controllers.workloads.settings import WorkloadSettings
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.admission.workload_groups import WorkloadGroups
from muster.server.backend import ServerHooks
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore
from tests.controllers.conftest import World

JSON = dict[str, Any]
NAMES = ("default-scheduler", "muster")


class WorkloadWorld(World):
    """Groups are made for workloads."""

    def __init__(self) -> None:
        super().__init__()
        hooks = ServerHooks(join_group=WorkloadGroups(NAMES))
        self.server = ApiServer(MemoryStore(self.clock.now), build_registry(), hooks=hooks, clock=self.clock.now)
        self.client = LocalClient(self.server)

    async def define(self, *names: str) -> None:
        for name in names:
            await self.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(name))

    async def begin(self, *managers: str, which: tuple[str, ...] | None = None) -> None:
        """Run all controllers (or those named) and the simulated managers."""
        await self.define(*managers)
        self.manager = ControllerManager(
            self.client,
            clock=self.clock,
            which=which,
            controllers=(*CONTROLLERS, *(SIMULATED_MANAGERS[name] for name in managers)),
            workloads=WorkloadSettings(NAMES),
        )
        self.follow(self.manager.run())
        await self.manager.ready.wait()
        await self.settle()

    async def submit(self, owner: JSON) -> JSON:
        """Create a workload; the server gives it its uid."""
        resource = {"JobSet": JOB_SETS, "LeaderWorkerSet": LEADER_WORKER_SETS}[owner["kind"]]
        meta = {key: value for key, value in owner["metadata"].items() if key != "uid"}
        made = await self.client.create(resource, {**owner, "metadata": meta}, "default")
        await self.settle()
        return made

    async def names(self) -> dict[str, list[str]]:
        """The groups there are, by kind."""
        return {
            each.kind: sorted(obj["metadata"]["name"] for obj in (await self.client.list(each, "default")).items)
            for each in (WORKLOADS, COMPOSITE_POD_GROUPS, POD_GROUPS)
        }

    async def leaf_of(self, pod: JSON) -> str:
        return (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")

    async def events(self) -> dict[str, str]:
        found = (await self.client.list(CORE_EVENTS, "default")).items
        return {event["reason"]: event["message"] for event in found}


@pytest.fixture
async def cluster() -> AsyncIterator[WorkloadWorld]:
    made = WorkloadWorld()
    for resource, obj in bootstrap_objects():
        await made.client.create(resource, obj)
    yield made
    await made.stop()
