"""Events: what controllers did to an object, for whoever describes it.

Best effort: an event that cannot be written is dropped, and what is said again raises a count.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import CORE_EVENTS, Resource
from muster.api.types import ObjectMeta
from muster.client.clock import Clock, timestamp
from muster.client.protocol import Client

logger = logging.getLogger(__name__)

_REMEMBERED = 1024

Said = tuple[str, str, str]  # uid, reason, message


class Recorder:
    """Writes the events of one controller."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._said: OrderedDict[Said, tuple[str, int]] = OrderedDict()  # name of the event, how often

    async def normal(self, resource: Resource, about: ObjectMeta, reason: str, message: str) -> None:
        await self._record(resource, about, "Normal", reason, message)

    async def warning(self, resource: Resource, about: ObjectMeta, reason: str, message: str) -> None:
        await self._record(resource, about, "Warning", reason, message)

    async def _record(self, resource: Resource, about: ObjectMeta, kind: str, reason: str, message: str) -> None:
        said = (about.uid, reason, message)
        try:
            if said in self._said and await self._again(said, about):
                return
            created = await self._client.create(CORE_EVENTS, self._event(resource, about, kind, reason, message))
        except (ApiError, ConnectionError, TimeoutError) as error:
            logger.debug("event %s about %s was lost: %s", reason, about.name, error)
            return
        self._said[said] = (created["metadata"]["name"], 1)
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)

    async def _again(self, said: Said, about: ObjectMeta) -> bool:
        """Count one up; False if the event has expired meanwhile."""
        name, count = self._said.pop(said)
        patch = {"count": count + 1, "lastTimestamp": timestamp(self._clock.now())}
        try:
            await self._client.patch(CORE_EVENTS, name, patch, about.namespace or "default")
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        self._said[said] = (name, count + 1)
        return True

    def _event(self, resource: Resource, about: ObjectMeta, kind: str, reason: str, message: str) -> dict[str, Any]:
        now = timestamp(self._clock.now())
        namespace = about.namespace or "default"
        return {
            "metadata": {"generateName": f"{about.name}.", "namespace": namespace},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }
