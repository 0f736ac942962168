"""From a watched collection to the scheduler's events: one kind, each change once and in order.

Objects of Kubernetes 1.36 are converted to the hub version before they are decoded. An object that was replaced by
another of the same name is reported as removed first; after a new list, only differences are reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.api.groups import GROUP, HUB
from muster.api.resources import Resource
from muster.api.versions import convert
from muster.client.clock import Clock
from muster.client.protocol import Client, Obj
from muster.client.reflector import Reflector
from muster.engine.api_discovery import OLD
from muster.engine.latest_objects import ObjectKey
from muster.scheduler.interface.events import KINDS, Event, ObjectDeleted, ObjectUpdated


def to_hub(resource: Resource) -> Callable[[Obj], Obj] | None:
    """The conversion that objects of a resource need before they fit the scheduler's types; None if they need none."""
    if resource.group != GROUP or resource.version != OLD:
        return None
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}  # which the items of a list lack
    return lambda obj: convert({**identity, **obj}, HUB)


class EventSource:
    """Reports `ObjectUpdated` and `ObjectDeleted` of one kind, and keeps its objects in `known`.

    `adjust` may replace an object before it is stored and reported; `forget` is called with the uid of a removed one.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        report: Callable[[Event], None],
        clock: Clock,
        *,
        known: dict[ObjectKey, Any] | None = None,
        adjust: Callable[[Any], Any] | None = None,
        forget: Callable[[str], None] | None = None,
    ) -> None:
        self.kind = resource.kind
        self.known: dict[ObjectKey, Any] = {} if known is None else known
        self._report = report
        self._adjust = adjust
        self._forget = forget
        self._reflector = Reflector(client, resource, self, clock, into=KINDS[resource.kind], convert=to_hub(resource))
        self.synced = self._reflector.synced

    @property
    def trouble(self) -> str:
        """Why the server cannot be listed or watched at the moment; empty if it can."""
        return self._reflector.trouble

    @property
    def version(self) -> int:
        """The newest resource version that the watch has shown; 0 if versions are no numbers."""
        return self._reflector.order

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        await self._reflector.run()

    # --- the store of the reflector ----------------------------------------------------------------

    def replace(self, objects: list[Any]) -> None:
        gone = dict(self.known)
        for obj in objects:
            gone.pop((obj.metadata.namespace, obj.metadata.name), None)
            self.update(obj)
        for key, obj in gone.items():
            self._remove(key, obj)

    def update(self, obj: Any) -> None:
        """Report an object unless exactly this version of it is known."""
        key = (obj.metadata.namespace, obj.metadata.name)
        if self._adjust is not None:
            obj = self._adjust(obj)
        before = self.known.get(key)
        if before is not None:
            if before.metadata.uid != obj.metadata.uid:
                self._remove(key, before)
            elif before.metadata.resource_version == obj.metadata.resource_version:
                return
        self.known[key] = obj
        self._report(ObjectUpdated(self.kind, obj))

    def delete(self, obj: Any) -> None:
        key = (obj.metadata.namespace, obj.metadata.name)
        before = self.known.get(key)
        if before is not None:
            self._remove(key, before)

    def _remove(self, key: ObjectKey, obj: Any) -> None:
        self.known.pop(key, None)
        if self._forget is not None:
            self._forget(obj.metadata.uid)
        self._report(ObjectDeleted(self.kind, key[0], key[1], obj.metadata.uid))
