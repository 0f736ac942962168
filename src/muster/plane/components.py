"""The components of the control plane beside the API server: each is a task that gets ready, runs, and is stopped.

A component imports its package when it starts, so that a plane without a scheduler never loads one.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from muster.api.errors import bad_request
from muster.api.gates import COMPOSITE
from muster.certificates import Authority
from muster.client.protocol import Client, Obj
from muster.plane.options import Options
from muster.server.aggregation.aggregation import Aggregation
from muster.server.auth.aggregation import RoleAggregation
from muster.server.auth.rbac import Authorizer
from muster.server.request import Request, Response

if TYPE_CHECKING:
    from muster.controllers.controller import Controller
    from muster.controllers.workloads.settings import WorkloadSettings
    from muster.engine.engine import Engine

log = logging.getLogger(__name__)

SCHEDULER_NAMES = ("default-scheduler", "muster")


class Component(ABC):
    """One running component. `task` ends only when the component is stopped or has failed."""

    name: str

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self._ready: asyncio.Event | None = None  # until it is this component's turn to start

    def health_error(self) -> str:
        """Why the component is not ready; empty when it is."""
        return "" if self._ready is not None and self._ready.is_set() else "not started yet"

    async def start(self, client: Client, options: Options) -> None:
        """Start the task and wait until it is ready; raises the error that ended it before."""
        ready = self._ready = self.prepare(client, options)
        self.task = asyncio.create_task(self.run(), name=f"plane-{self.name}")
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait({self.task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if self.task.done():
                await self.task
        finally:
            waiting.cancel()

    async def stop(self) -> None:
        """Cancel the task and wait for its end."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    @abstractmethod
    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        """Create what `run` needs; the returned event is set when the component is ready."""

    @abstractmethod
    async def run(self) -> None: ...


class Controllers(Component):
    """The controller manager: garbage collection, namespaces, jobs, deployments, group protection."""

    name = "controllers"

    def __init__(self, authority: Authority) -> None:
        super().__init__()
        self._authority = authority

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        from muster.controllers import ControllerManager
        from muster.controllers.manager import CONTROLLERS, SIMULATED_MANAGERS

        settings = _workload_settings(options) if options.makes_groups else None
        simulated = [SIMULATED_MANAGERS[name] for name in options.simulated_managers]
        self._manager = ControllerManager(
            client,
            controllers=(*CONTROLLERS, *simulated),
            gates=options.gates,
            authority=self._authority,
            workloads=settings,
        )
        return self._manager.ready

    @property
    def controllers(self) -> Sequence[Controller]:
        """The running controllers."""
        return self._manager.controllers

    async def run(self) -> None:
        await self._manager.run()


class RoleAggregator(Component):
    """Writes the rules of aggregated cluster roles into the stored objects."""

    name = "role-aggregation"

    def __init__(self, authorizer: Authorizer) -> None:
        super().__init__()
        self._authorizer = authorizer

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        self._aggregation = RoleAggregation(client, self._authorizer)
        return self._aggregation.ready

    async def run(self) -> None:
        await self._aggregation.run()


class ApiAggregator(Component):
    """Checks the servers behind APIServices and writes whether they are available."""

    name = "api-aggregation"

    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__()
        self._aggregation = aggregation

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        self._availability = self._aggregation.availability(client, options.clock)
        return self._availability.ready

    async def run(self) -> None:
        await self._availability.run()


class Nodes(Component):
    """Simulated nodes and their kubelets."""

    name = "nodes"

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        from muster.nodes import Inventory, SimulatedNodes
        from muster.nodes.simulated_devices import SimulatedDriver

        wanted = options.nodes
        inventory = Inventory(
            count=wanted.count,
            cpu=wanted.cpu,
            memory=wanted.memory,
            gpu=wanted.gpu,
            nodes_per_rack=wanted.nodes_per_rack,
            racks_per_block=wanted.racks_per_block,
            drivers=tuple(SimulatedDriver.parse(text) for text in wanted.devices),
        )
        self._nodes = SimulatedNodes(client, inventory)
        return self._nodes.ready

    async def run(self) -> None:
        await self._nodes.run()

    async def pod_log(self, pod: Obj, request: Request) -> Response:
        """What `kubectl logs` shows: the few lines a simulated kubelet has about a pod."""
        meta = pod["metadata"]
        lines = self._nodes.log(meta["namespace"], meta["name"]).splitlines(keepends=True)
        tail = _lines_asked(request.arg("tailLines"))
        if tail is not None:
            lines = lines[max(0, len(lines) - tail) :]
        if not request.flag("timestamps"):
            lines = [line.partition(" ")[2] for line in lines]
        return Response(200, "".join(lines).encode(), "text/plain; charset=utf-8")


class Scheduler(Component):
    """The engine, serving the usual scheduler name and its own."""

    name = "scheduler"

    def __init__(self) -> None:
        super().__init__()
        self._engine: Engine | None = None  # until it is this component's turn to start

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        from muster.engine import options as read
        from muster.engine.engine import Engine
        from muster.engine.settings import Settings

        given = _scheduler_file(options.scheduler_config)
        whole = read.source(given, () if _profile_names(given) else SCHEDULER_NAMES)
        settings = Settings(
            gates=options.gates,
            workloads=options.makes_groups,
            share_cluster=options.https,
            decision_log=options.decision_log,
            decision_log_size=options.decision_log_size,
            tune_gc=options.freeze,
        )
        config = read.config(whole)
        for note in config.notes:
            log.warning("%s: %s", options.scheduler_config, note)
        self._engine = Engine(client, config, settings, config_source=whole)
        return self._engine.ready

    async def run(self) -> None:
        assert self._engine is not None
        await self._engine.run()

    async def stop(self) -> None:
        """Let the binds under way finish first."""
        if self.task is not None and self._engine is not None:
            self._engine.stop()
            await asyncio.wait({self.task}, timeout=self._engine.settings.patience)
        await super().stop()

    def health_error(self) -> str:
        return super().health_error() if self._engine is None else "; ".join(self._engine.trouble())

    def metrics(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest() if self._engine is None else generate_latest(self._engine.metrics.registry)


def scheduler_names(options: Options) -> tuple[str, ...]:
    """The names under which pods are scheduled here."""
    return _profile_names(_scheduler_file(options.scheduler_config)) or SCHEDULER_NAMES


def _profile_names(given: dict[str, Any] | None) -> tuple[str, ...]:
    profiles = (given or {}).get("profiles") or ()
    return tuple(str(each["schedulerName"]) for each in profiles if each.get("schedulerName"))


def _workload_settings(options: Options) -> WorkloadSettings:
    from muster.api.resources import COMPOSITE_POD_GROUPS
    from muster.controllers.workloads.settings import WorkloadSettings

    composites = COMPOSITE_POD_GROUPS if options.gates.enabled(COMPOSITE) else None
    return WorkloadSettings(scheduler_names(options), composites=composites)


def _lines_asked(text: str) -> int | None:
    """The value of `tailLines`, a whole number of 64 bits; None without one."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise bad_request(f"tailLines: expected a whole number, 0 or greater, of at most 19 digits; got {text[:40]!r}")
    return int(text)


def _scheduler_file(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected one KubeSchedulerConfiguration")
    return cast("dict[str, Any]", found)
