"""The embedded control plane: API server, controllers, nodes, scheduler, started in that order and stopped in reverse.

All components use the in-process client of the server's core; requests from outside come through HTTPS and the gate.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any

from muster.api.resources import CUSTOM_RESOURCE_DEFINITIONS
from muster.client.protocol import Client
from muster.loop_watch import HeldTimes, LoopWatch
from muster.plane.api import Api, ensure
from muster.plane.components import (
    ApiAggregator,
    Component,
    Controllers,
    Nodes,
    RoleAggregator,
    Scheduler,
    scheduler_names,
)
from muster.plane.options import Options
from muster.server.admission.workload_groups import WorkloadGroups
from muster.server.store.records import StoreFailedError

if TYPE_CHECKING:
    from muster.plane.idle import Unfinished

log = logging.getLogger(__name__)


class Plane:
    """One control plane. `async with Plane(options) as plane: ...`"""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.url = ""
        self._api: Api | None = None
        self._components: list[Component] = []
        self._held = HeldTimes()
        self._loop_watch: LoopWatch | None = None

    @property
    def api(self) -> Api:
        assert self._api is not None, "the plane is not started"
        return self._api

    @property
    def client(self) -> Client:
        """The in-process client, with all rights."""
        return self.api.client

    async def start(self) -> None:
        """Bring everything up; what was started is stopped again when something fails."""
        options = self.options
        self._api = await Api.open(
            options.data,
            gates=options.gates,
            token_file=options.token_file,
            repeatable_names=options.repeatable_names,
            webhook_endpoints=options.webhook_endpoints,
            clock=options.clock,
        )
        try:
            await self._define_kinds()
            selected = self._selected()  # before anyone can ask how they are
            self._add_metrics()
            if options.https:
                self.url = await self._api.serve(options.host, options.port)
                if options.kubeconfig is not None:
                    self._api.credentials.write_kubeconfig(options.kubeconfig, self.url)
            for component in selected:
                self._components.append(component)
                await component.start(self.client, options)
        except BaseException:
            await self.stop()
            raise
        if options.watch_loop:
            self._loop_watch = LoopWatch(self._held.add)  # from here on: starting loads code, and nobody waits yet
            self._loop_watch.start()
        if options.freeze:
            # What is alive now stays alive: garbage collection need not visit it again.
            gc.collect()
            gc.freeze()

    async def _define_kinds(self) -> None:
        """The kinds of the simulated managers, before the controllers look for what is served."""
        if not self.options.simulated_managers:
            return
        from muster.controllers.simulated_managers.definitions import definition

        for name in self.options.simulated_managers:
            await ensure(self.client, CUSTOM_RESOURCE_DEFINITIONS, definition(name))

    def _selected(self) -> list[Component]:
        components: list[Component] = []
        if self.options.controllers:
            authority = self.api.credentials.authority
            components += [Controllers(authority), RoleAggregator(self.api.security.authorizer)]
            components.append(ApiAggregator(self.api.aggregation))
        if self.options.makes_groups:
            self.api.hooks.join_group = WorkloadGroups(scheduler_names(self.options))
        if self.options.nodes.count:
            nodes = Nodes()
            self.api.hooks.pod_log = nodes.pod_log
            components.append(nodes)
        if self.options.scheduler:
            scheduler = Scheduler()
            self.api.hooks.metrics = scheduler.metrics
            components.append(scheduler)
        for component in components:
            self.api.hooks.health[component.name] = component.health_error
        return components

    def _add_metrics(self) -> None:
        own = self.api.hooks.metrics
        self.api.hooks.metrics = lambda: (own() if own is not None else b"") + self._held.text()

    async def wait_idle(self, seconds: float) -> list[Unfinished]:
        """Wait until the controllers are idle; see `muster.plane.idle`. Gives what they have not finished."""
        from muster.plane.idle import wait_idle

        running = [each for part in self._components if isinstance(part, Controllers) for each in part.controllers]
        return await wait_idle(running, self.api.core, seconds)

    async def failure(self) -> BaseException:
        """Wait until a component ends by itself or the store fails, which none should; gives what happened."""
        tasks: dict[asyncio.Task[Any], Component] = {
            component.task: component for component in self._components if component.task is not None
        }
        broken = asyncio.create_task(self.api.store.broken())
        try:
            done, _ = await asyncio.wait({broken, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if broken in done:
                return StoreFailedError(f"the store takes no more writes: {broken.result()}")
        finally:
            broken.cancel()
        ended = done.pop()
        error = ended.exception() if not ended.cancelled() else None
        return error or RuntimeError(f"{tasks[ended].name} ended")

    async def stop(self) -> None:
        """Stop in reverse order; each component gets its turn even if another one fails to stop."""
        while self._components:
            component = self._components.pop()
            try:
                await component.stop()
            except Exception:
                log.exception("%s did not stop cleanly", component.name)
        if self._loop_watch is not None:
            watch, self._loop_watch = self._loop_watch, None
            await watch.stop()
        if self._api is not None:
            api, self._api = self._api, None
            await api.close()

    async def __aenter__(self) -> Plane:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
