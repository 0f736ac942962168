"""Whether the controllers of a control plane are idle.

Idle means: no key is queued or being reconciled, none failed and waits for its next try, and the informers hold every
object at the revision at which it is stored. From then on only a new request, or the passing of time, leads to
another write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from muster.controllers.controller import Controller
from muster.controllers.informers import ObjectStore
from muster.server.core import ApiServer

POLL_SECONDS = 0.005
FAILURES = 4  # in a row, while nothing else is to be done: what is refused that often stays refused


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A key that a controller has yet to reconcile, or a collection whose store is behind (`failures` is 0)."""

    controller: str
    key: str
    failures: int


async def wait_idle(controllers: Sequence[Controller], server: ApiServer, seconds: float) -> list[Unfinished]:
    """Wait until the controllers are idle. Gives what is unfinished after so many seconds, or what fails for good."""
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    while True:
        unfinished = list(_unfinished(controllers, server))
        if not unfinished or now() >= deadline or all(each.failures >= FAILURES for each in unfinished):
            return unfinished
        await asyncio.sleep(POLL_SECONDS)


def _unfinished(controllers: Sequence[Controller], server: ApiServer) -> Iterator[Unfinished]:
    """Everything that keeps the controllers from being idle, read without a pause."""
    for controller in controllers:
        failures = controller.queue.failures
        for key in controller.queue.unfinished:
            yield Unfinished(controller.name, _text(key), failures.get(key, 0))
    shared = (store for each in controllers for store in each.context.informers.all.values())
    for store in dict.fromkeys(shared):
        if not _is_current(store, server):
            yield Unfinished("informer", store.resource.plural, 0)


def _text(key: Hashable) -> str:
    parts = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)
    return "/".join(str(part) for part in parts if part)


def _is_current(store: ObjectStore, server: ApiServer) -> bool:
    kind = server.registry.kind(store.resource.group, store.resource.plural)
    if kind is None:
        return True
    stored, cached = server.store.table(kind.table).records, store.objects
    if len(stored) != len(cached):
        return False
    versions = ((cached.get(key), str(record.revision)) for key, record in stored.items())
    return all(obj is not None and obj.metadata.resource_version == revision for obj, revision in versions)
