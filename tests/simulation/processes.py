"""The simulated processes: the API server, two schedulers, controllers, kubelets, and a scheduler of somebody else.

Each runs the product's own code as its command does. A process that ends is started again a little later, as any
supervisor does.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import aclosing
from random import Random
from typing import TYPE_CHECKING, Any

from muster.api.errors import ApiError
from muster.api.resources import (
    COMPOSITE_POD_GROUPS,
    JOBS,
    LEASES,
    NODES,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    WORKLOADS,
)
from muster.controllers.manager import ControllerManager
from muster.engine import options
from muster.engine.engine import Engine
from muster.engine.leader_election import Election
from muster.engine.settings import Settings
from muster.nodes import Inventory, SimulatedNodes
from muster.nodes.kubelets import Timing
from muster.scheduler.cycle.scheduler import Scheduler
from muster.server.core import ApiServer
from muster.server.request import Response
from muster.server.served_kinds import build_registry
from tests.simulation.amounts import cpu_of
from tests.simulation.clocks import SteadyClock, WallClock
from tests.simulation.disk import SimStore
from tests.simulation.loop import Process
from tests.simulation.network import REQUEST, Channel, Exchange, SimClient

if TYPE_CHECKING:
    from tests.simulation.world import World

CONTROLLERS = (
    "podgroup-protection-controller",
    "garbage-collector",
    "replicaset-controller",
    "job-controller",
    "node-lifecycle-controller",
    "resourcequota-controller",
    "disruption-controller",
)
COLLECTIONS = (  # what there is of objects here; watching the others too would only take time
    PODS,
    NODES,
    LEASES,
    POD_GROUPS,
    COMPOSITE_POD_GROUPS,
    WORKLOADS,
    REPLICA_SETS,
    JOBS,
    RESOURCE_QUOTAS,
)


class Component(ABC):
    """Something that is run as a process, and run again when it ends."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.runs = 0
        self.process: Process | None = None
        self.rate = 1.0
        self.rng = Random(f"{world.seed} {name}")
        self.wanted = True

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.running or not self.wanted:
            return
        self.runs += 1
        self.process = Process(self.world.loop, self.name, self.rate)
        self.world.said(f"{self.name} starts")
        task = self.process.context.run(self._started)
        task.add_done_callback(self._ended, context=self.world.loop.world.context)

    def _started(self) -> asyncio.Task[Any]:
        assert self.process is not None
        return self.process.spawn(self.run())

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if self.process is None or not self.process.alive:
            return
        error = None if task.cancelled() else task.exception()
        self.world.said(f"{self.name} ended: {error!r}"[:200])
        self.world.ended(self, error)
        self.kill(self.rng.uniform(0.2, 2.0))

    def kill(self, back_after: float) -> None:
        """The process dies as by kill -9, and is started again."""
        if self.process is None or not self.process.alive:
            return
        self.world.said(f"{self.name} is dead")
        self.process.kill()
        self.gone()
        self.world.loop.world.later(back_after, self.start)

    def gone(self) -> None:
        self.world.network.client_is_gone(self.name)

    def client(self) -> SimClient:
        return SimClient(self.world.network, self.name, f"{self.name}-{self.runs}")

    @abstractmethod
    async def run(self) -> None: ...


class ServerProcess(Component):
    """The API server on the simulated disk."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "server")
        self.clock = WallClock(world.loop, self.rng)
        self.api: ApiServer | None = None
        self.store: SimStore | None = None

    async def run(self) -> None:
        world = self.world
        assert self.process is not None
        self.store = SimStore(world.disk, self.process, self.clock.now, world.history.accepted, world.history.landed)
        world.history.recovered(self.store)
        self.api = ApiServer(self.store, build_registry(), clock=self.clock.now, rng=self.rng)
        await self.api.bootstrap()
        world.network.server = self
        raise RuntimeError(f"the store takes no more writes: {await self.store.broken()}")

    def gone(self) -> None:
        self.world.disk.lose_power()
        self.world.network.server_is_gone()

    def accept(self, exchange: Exchange) -> None:
        """A request has arrived."""
        assert self.process is not None
        context = self.process.context.copy()
        context.run(REQUEST.set, exchange)
        exchange.task = self.world.loop.create_task(self._serve(exchange), context=context)

    async def _serve(self, exchange: Exchange) -> None:
        if exchange.abandoned:
            return
        assert self.api is not None
        answer = await self.api.handle(exchange.request)
        network = self.world.network
        if isinstance(answer, Response):
            network.respond(exchange, answer)
            return
        channel = Channel(network, exchange)
        network.channels[channel] = None
        network.respond(exchange, channel)
        frames: Any = answer.frames
        async with aclosing(frames):
            await channel.pump(frames)


class RecordingScheduler(Scheduler):
    """The product's scheduler, with what it heard and decided kept for a replay."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.record: list[tuple[str, Any, float]] = []

    def handle(self, event: Any, now: float) -> None:
        self.record.append(("event", event, now))
        super().handle(event, now)

    def next(self, now: float) -> Any:
        decisions = super().next(now)
        self.record.append(("cycle", list(decisions), now))
        return decisions


class EngineProcess(Component):
    """`muster scheduler`, one of several that may lead; or one that serves another name beside them."""

    def __init__(self, world: World, name: str, scheduler_name: str, *, elects: bool, shares: bool) -> None:
        super().__init__(world, name)
        self.scheduler_name = scheduler_name
        self.elects = elects
        self.shares = shares
        self.engine: Engine | None = None

    async def run(self) -> None:
        source = options.source(None, (self.scheduler_name,))
        config = options.config(source)
        identity = f"{self.name}-{self.runs}"
        election = Election(identity) if self.elects else None
        settings = Settings(election=election, share_cluster=self.shares, instance=identity)
        scheduler = RecordingScheduler(config, seed=settings.seed, gates=settings.gates) if self.world.replays else None
        self.engine = Engine(
            self.client(),
            config,
            settings,
            scheduler=scheduler,
            clock=SteadyClock(self.world.loop, self.rng),
            config_source=source,
        )
        await self.engine.run()

    @property
    def leads(self) -> bool:
        elector = self.engine.elector if self.engine is not None and self.running else None
        return elector is not None and elector.may_write()


class ControllersProcess(Component):
    """The controller manager with those controllers that the workloads here need."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "controllers")
        self.clock = WallClock(world.loop, self.rng)
        self.manager: ControllerManager | None = None

    async def run(self) -> None:
        self.manager = ControllerManager(self.client(), clock=self.clock, which=CONTROLLERS, collections=COLLECTIONS)
        await self.manager.run()


class KubeletsProcess(Component):
    """The simulated nodes."""

    def __init__(self, world: World, inventory: Inventory) -> None:
        super().__init__(world, "kubelets")
        self.inventory = inventory
        self.clock = WallClock(world.loop, self.rng)

    async def run(self) -> None:
        await SimulatedNodes(self.client(), self.inventory, timing=Timing(), clock=self.clock).run()


class ForeignScheduler(Component):
    """A scheduler of somebody else: it binds the pods that name it, by a look at the cluster that may be old.

    Now and then it binds a pod of ours, or tries to bind one that is bound.
    """

    NAME = "foreign"

    def __init__(self, world: World) -> None:
        super().__init__(world, "foreign")

    async def run(self) -> None:
        client = self.client()
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 3.0))
            try:
                await self._bind_some(client)
            except (ApiError, ConnectionError, TimeoutError):
                continue

    async def _bind_some(self, client: SimClient) -> None:
        pods = (await client.list(PODS)).items
        nodes = (await client.list(NODES)).items
        free = {node["metadata"]["name"]: cpu_of(node["status"]["allocatable"]) for node in nodes}
        for pod in pods:
            if pod["spec"].get("nodeName") in free and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                free[pod["spec"]["nodeName"]] -= sum(
                    cpu_of(each.get("resources", {}).get("requests", {})) for each in pod["spec"]["containers"]
                )
        for pod in pods:
            spec, meta = pod["spec"], pod["metadata"]
            ours = spec.get("schedulerName") != self.NAME
            if meta.get("deletionTimestamp") or ((ours or spec.get("nodeName")) and self.rng.random() > 0.03):
                continue
            asked = sum(cpu_of(each.get("resources", {}).get("requests", {})) for each in spec["containers"])
            fitting = sorted(name for name, room in free.items() if room >= asked)
            if not fitting:
                continue
            node = self.rng.choice(fitting)
            free[node] -= asked
            await asyncio.sleep(self.rng.uniform(0.0, 0.5))
            try:
                await client.bind(meta["namespace"], meta["name"], meta["uid"], node)
                self.world.counts["bind of our pod by another scheduler" if ours else "bind by another scheduler"] += 1
            except ApiError:
                continue
