"""The events that controllers record about the objects they act on."""

from __future__ import annotations

from muster.api.resources import Resource
from muster.api.types import ObjectMeta
from muster.client.clock import Clock
from muster.client.event_recorder import CountFormat, EventRecorder, ObjectReference, Occurrence
from muster.client.protocol import Client


class ControllerEvents:
    """Writes the events of one controller; returns when the event is written or lost."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._component = component
        self._recorder = EventRecorder(client, clock, CountFormat())

    async def normal(self, resource: Resource, about: ObjectMeta, reason: str, message: str) -> None:
        await self._record(resource, about, "Normal", reason, message)

    async def warning(self, resource: Resource, about: ObjectMeta, reason: str, message: str) -> None:
        await self._record(resource, about, "Warning", reason, message)

    async def _record(self, resource: Resource, about: ObjectMeta, type_: str, reason: str, message: str) -> None:
        regarding = ObjectReference(
            resource.api_version, resource.kind, about.namespace, about.name, about.uid, about.resource_version
        )
        call = self._recorder.record(Occurrence(regarding, type_, reason, message, self._component))
        if call is not None:
            await call.run()
