"""The base class of all controllers: informers put keys into a work queue, workers reconcile one key at a time.

`setup` subscribes to informers. `reconcile` is level-triggered: it reads the state, not the event that queued the key,
and returns the seconds after which the key is reconciled again (None: at the next change).
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from muster.api.errors import ApiError
from muster.api.gates import DEFAULT, FeatureGates
from muster.api.resources import Resource
from muster.certificates import Authority
from muster.client.clock import Clock
from muster.client.protocol import Client
from muster.controllers.collections import Collections
from muster.controllers.events import ControllerEvents
from muster.controllers.informers import Informers, ObjectStore
from muster.controllers.workloads.settings import WorkloadSettings
from muster.controllers.workqueue import WorkQueue

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Context:
    """What controllers share."""

    client: Client
    informers: Informers
    clock: Clock
    collections: Collections = field(default_factory=Collections)
    gates: FeatureGates = DEFAULT
    authority: Authority | None = None  # signs client certificates; None: nobody does
    workloads: WorkloadSettings | None = None  # None: no groups are made for workloads


class Controller(ABC):
    """One controller. Subclasses define what is watched (`setup`) and what is done for a key (`reconcile`)."""

    name: ClassVar[str]
    workers: ClassVar[int] = 1

    def __init__(self, context: Context) -> None:
        self.client = context.client
        self.clock = context.clock
        self.context = context
        self.queue = WorkQueue(context.clock)
        self.events = ControllerEvents(context.client, context.clock, self.name)

    @abstractmethod
    def setup(self) -> None:
        """Subscribe to informers."""

    @abstractmethod
    async def reconcile(self, key: Any) -> float | None:
        """Bring one key to its desired state; the seconds until it must be reconciled again, if any."""

    def watch(self, resource: Resource) -> ObjectStore:
        return self.context.informers.of(resource)

    def watch_keys(self, resource: Resource) -> ObjectStore:
        """Watch a resource whose objects are themselves the keys of the queue."""
        store = self.watch(resource)
        store.on_change(lambda old, new: self.queue.add(_key(new if new is not None else old)))
        return store

    async def run(self) -> None:
        """Work until cancelled."""
        await self.context.informers.wait_synced()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.workers):
                    group.create_task(self._work())
        finally:
            await self.queue.close()

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            await asyncio.sleep(0)  # neither a full queue nor a reconciliation without waiting holds the loop
            try:
                await self._reconcile_once(key)
            finally:
                self.queue.done(key)

    async def _reconcile_once(self, key: Hashable) -> None:
        try:
            again = await self.reconcile(key)
        except ApiError as error:
            # A conflict means that the cache is behind; what comes next through the watch is newer.
            level = logging.DEBUG if error.code in (404, 409) else logging.WARNING
            logger.log(level, "%s: %s: %s", self.name, key, error)
            self.queue.retry(key)
        except (ConnectionError, TimeoutError) as error:
            logger.debug("%s: %s: %s", self.name, key, error)
            self.queue.retry(key)
        except Exception:
            logger.exception("%s: %s failed", self.name, key)
            self.queue.retry(key)
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)


def _key(obj: Any) -> tuple[str, str]:
    return (obj.metadata.namespace, obj.metadata.name)
