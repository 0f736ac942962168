"""The engine: a scheduler, its event sources and its API calls, as one thing that runs and stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import POD_GROUPS
from muster.cel import device_selectors
from muster.client.access_review import CHANGE, missing_rights
from muster.client.backoff import Backoff
from muster.client.clock import Clock, MonotonicClock
from muster.client.protocol import Client
from muster.engine.api_calls.call import BIND
from muster.engine.api_discovery import NONE, ServedApis, discover
from muster.engine.assembly import EngineParts, Surroundings, build
from muster.engine.event_source import EventSource
from muster.engine.inbox import Inbox
from muster.engine.latest_objects import LatestObjects, profile_lookup
from muster.engine.leader_election import Elector, LeadershipLost, active_kube_scheduler
from muster.engine.lease_thread import ElectorThread
from muster.engine.metrics import Metrics
from muster.engine.published_gates import publish
from muster.engine.scheduler_collector import SchedulerCollector
from muster.engine.scheduling_loop import SchedulingLoop
from muster.engine.settings import Settings
from muster.logs import V, keys
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.runtime.config import Config
from muster.scheduler.simulation.decision_log import SchedulerProtocol

log = logging.getLogger(__name__)

DEFAULT_SCHEDULER = "default-scheduler"
OTHER_SCHEDULER_PERIOD = 10.0


class AnotherSchedulerActive(Exception):
    """Another scheduler serves the scheduler name that this one was asked to serve."""


def _no_fault(bind: Bind) -> str:
    return ""


LeaderTask = Callable[[Client, ServedApis], Awaitable[None]]
"""What else a leader does, for as long as it leads; its writes are fenced."""


class Engine:
    """Runs a scheduler against an API server until it is stopped.

    With `connect_leases` the lease is renewed in a thread of its own, through a client made there.
    """

    def __init__(
        self,
        client: Client,
        config: Config,
        settings: Settings | None = None,
        *,
        scheduler: SchedulerProtocol | None = None,
        clock: Clock | None = None,
        config_source: dict[str, Any] | None = None,
        connect_leases: Callable[[], Client] | None = None,
        leader_task: LeaderTask | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.config = config
        self.scheduler: SchedulerProtocol = scheduler or self._new_scheduler()
        self.ready = asyncio.Event()
        self.served: ServedApis | None = None
        self.stopping = False
        self._client = client
        self._clock: Clock = clock or MonotonicClock()
        self._leader_task = leader_task
        self._stop = asyncio.Event()
        self._inbox = Inbox()
        latest = LatestObjects()
        profile_of = profile_lookup(latest, config.profiles)
        self.metrics = Metrics(profile_of=profile_of, is_root=latest.is_root)
        self._surroundings = Surroundings(
            client=client,
            connect_leases=connect_leases,
            settings=self.settings,
            config_source=config_source or {},
            clock=self._clock,
            inbox=self._inbox,
            latest=latest,
            profile_of=profile_of,
            metrics=self.metrics,
            profiles=config.profiles,
            bind_fault=self.scheduler.bind_fault if isinstance(self.scheduler, Scheduler) else _no_fault,
        )
        self._loop: SchedulingLoop | None = None
        self._parts: EngineParts | None = None  # until the API server has been reached

    def _new_scheduler(self) -> Scheduler:
        return Scheduler(self.config, seed=self.settings.seed, gates=self.settings.gates)

    # --- from outside ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until `stop` is called.

        Raises `LeadershipLost` when the lease is lost, `AnotherSchedulerActive`, or `UnsupportedServer`.
        """
        stopped = asyncio.create_task(self._stop.wait())
        work = asyncio.create_task(self._work())
        try:
            await asyncio.wait({stopped, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            self.stopping = True
            stopped.cancel()
            work.cancel()
            await asyncio.gather(stopped, work, return_exceptions=True)
            self.ready.clear()

    def stop(self) -> None:
        """Finish the binds in flight, release the lease, and end."""
        self.stopping = True
        self._stop.set()

    @property
    def sources(self) -> Mapping[str, EventSource]:
        """The event sources by kind; empty until the API server has been reached."""
        return self._parts.sources if self._parts is not None else {}

    @property
    def elector(self) -> Elector | ElectorThread | None:
        return self._parts.elector if self._parts is not None else None

    def trouble(self) -> list[str]:
        """What keeps the engine from working properly at the moment, one line each."""
        found = [f"{name}: {source.trouble}" for name, source in self.sources.items() if source.trouble]
        if self.served is None:
            found.append("the API server has not been reached yet")
        waiting = [name for name, source in self.sources.items() if not source.synced.is_set()]
        if waiting:
            found.append(f"not listed yet: {', '.join(waiting)}")
        return found

    async def settled(self) -> None:
        """Wait until nothing is left to take in, to decide or to write; for tests and simulations."""
        while True:
            await asyncio.sleep(0)
            if self._parts is None or len(self._inbox) or not self.ready.is_set() or self._is_deciding():
                await asyncio.sleep(0.001)
            elif self._parts.queue.pending():
                await self._parts.queue.settled()
            elif (due := self.scheduler.wake_at(self._clock.now())) is None or due > self._clock.now():
                return

    def _is_deciding(self) -> bool:
        return self._loop is not None and self._loop.deciding

    # --- start -------------------------------------------------------------------------------------

    async def _work(self) -> None:
        self.served = await self._discover()
        await self._refuse_active_scheduler()
        parts = self._parts = build(self.served, self._surroundings)
        view = self.scheduler.view if isinstance(self.scheduler, Scheduler) else None
        self.metrics.registry.register(SchedulerCollector(view, parts.queue.pending))
        try:
            await self._run(parts)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            await self._shut_down(parts)

    async def _with_workloads(self, served: ServedApis) -> ServedApis:
        """Pods may only be put into groups that somebody makes: that needs the right to make them."""
        if not self.settings.workloads or served.groups == NONE:
            return served
        missing = await missing_rights(self._client, served.resource(POD_GROUPS.kind), CHANGE)
        if missing:
            log.warning("No groups are made for workloads", extra=keys(missing=missing, install="--workloads"))
        return replace(served, makes_groups=not missing)

    async def _discover(self) -> ServedApis:
        backoff = Backoff(self._clock, first=0.5, most=15.0)
        while True:
            try:
                served = await self._with_workloads(await discover(self._client, self.settings.gates))
                break
            except ApiError as error:
                if error.code in (401, 403):
                    log.error("Not allowed to ask what is served", extra=keys(err=error.message))
                else:
                    log.warning("The API server cannot answer yet", extra=keys(err=error.message))
                await backoff.wait(error)
            except (ConnectionError, TimeoutError) as error:
                log.warning("The API server cannot be reached, trying again", extra=keys(err=str(error)))
                await backoff.wait()
        log.info("Connected", extra=keys(groupAPI=served.describe_groups(), profiles=",".join(self.config.profiles)))
        for note in served.notes:
            log.info("Note", extra=keys(note=note))
        return served

    # --- run ---------------------------------------------------------------------------------------

    async def _run(self, parts: EngineParts) -> None:
        """All tasks of the engine, until one of them fails or this is cancelled."""
        loop = self._loop = SchedulingLoop(
            self.scheduler, parts, self._inbox, self._clock, self.metrics, self.settings, self._new_scheduler
        )
        leader_task: asyncio.Task[None] | None = None

        def lease_expired() -> None:
            """The lease is not surely ours any more: stop every write now."""
            parts.queue.abort()
            if leader_task is not None:
                leader_task.cancel()

        async with asyncio.TaskGroup() as tasks:
            for source in parts.sources.values():
                tasks.create_task(source.run())
            if parts.elector is not None:
                tasks.create_task(parts.elector.run(lease_expired))
            if parts.binding_lease is not None:
                tasks.create_task(parts.binding_lease.run())
            if parts.elector is None and self.settings.share_cluster:
                tasks.create_task(publish(self._client, self.settings.gates))
            if parts.decision_log is not None:
                tasks.create_task(parts.decision_log.run())
            if DEFAULT_SCHEDULER in self.config.profiles:
                tasks.create_task(self._watch_for_active_scheduler())
            if self._leader_task is not None:
                leader_task = tasks.create_task(self._run_leader_task(self._leader_task, parts))
            tasks.create_task(loop.run(self.ready))
            tasks.create_task(self._load_expressions())

    async def _load_expressions(self) -> None:
        """Load the evaluator of device selectors off the loop, before the first claim needs it."""
        await self.ready.wait()
        await asyncio.to_thread(device_selectors.load)

    async def _run_leader_task(self, task: LeaderTask, parts: EngineParts) -> None:
        if parts.elector is not None:
            await parts.elector.leading.wait()
        await task(parts.writer, parts.served)

    async def _shut_down(self, parts: EngineParts) -> None:
        if parts.decision_log is not None:
            parts.decision_log.close()
        try:
            parts.queue.close()
            async with asyncio.timeout(self.settings.patience):
                await parts.queue.drain((BIND,))
        except TimeoutError:
            log.warning("Binds were still under way", extra=keys(count=parts.queue.running(BIND)))
        await parts.queue.cancel()
        await self._release_binding_lease(parts)
        if parts.elector is not None:
            self.metrics.leading.labels(parts.elector.election.name).set(0)
            await parts.elector.release()

    async def _release_binding_lease(self, parts: EngineParts) -> None:
        if parts.binding_lease is None:
            return
        try:
            async with asyncio.timeout(2.0):
                await parts.binding_lease.release()
        except (TimeoutError, LeadershipLost):
            log.log(V(2), "The binding lease expires")

    # --- other schedulers --------------------------------------------------------------------------

    async def _refuse_active_scheduler(self) -> None:
        if DEFAULT_SCHEDULER not in self.config.profiles or self._shares_lease():
            return
        holder = await active_kube_scheduler(self._client, self._clock)
        if holder:
            raise AnotherSchedulerActive(
                f"{holder} renews the lease kube-system/kube-scheduler, so a scheduler serves {DEFAULT_SCHEDULER} "
                "already: stop it first, or serve another name (--scheduler-name)"
            )

    async def _watch_for_active_scheduler(self) -> None:
        while not self._shares_lease():
            await self._clock.sleep(OTHER_SCHEDULER_PERIOD)
            try:
                await self._refuse_active_scheduler()
            except (ApiError, ConnectionError, TimeoutError) as error:
                log.log(V(2), "Cannot look for other schedulers", extra=keys(err=str(error)))

    def _shares_lease(self) -> bool:
        """Elections on kube-scheduler's own lease exclude it anyway."""
        election = self.settings.election
        return election is not None and (election.namespace, election.name) == ("kube-system", "kube-scheduler")


__all__ = ["AnotherSchedulerActive", "Engine", "LeadershipLost", "Settings"]
