"""`Emit` decisions as API calls of the lowest rank."""

from __future__ import annotations

from collections.abc import Callable

from muster.client.event_recorder import EventCall, EventRecorder, ObjectReference, Occurrence
from muster.engine.api_calls.call import EVENT, ApiCall
from muster.scheduler.interface.decisions import RecordEvent
from muster.scheduler.interface.keys import ObjectRef


class RecordEventCall(ApiCall):
    """Writes an event. It never has an error: events are best effort."""

    rank = EVENT
    call_type = "event"

    def __init__(self, call: EventCall) -> None:
        super().__init__(("Event", call.series.latest.regarding.namespace, call.series.name))
        self._call = call

    async def run(self) -> str:
        await self._call.run()
        return ""


class DecidedEvents:
    """Turns `Emit` decisions into calls.

    `api_version` gives the version of a kind, `profile_of` the profile that reports events about an object.
    """

    def __init__(
        self,
        recorder: EventRecorder,
        *,
        api_version: Callable[[str], str],
        profile_of: Callable[[ObjectRef], str],
        enabled: bool = True,
    ) -> None:
        self._recorder = recorder
        self._api_version = api_version
        self._profile_of = profile_of
        self._enabled = enabled

    def call(self, decision: RecordEvent) -> RecordEventCall | None:
        """The call that records the event, or None if none is needed."""
        if not self._enabled:
            return None
        occurrence = Occurrence(
            self._reference(decision.about),
            decision.kind,
            decision.reason,
            decision.note,
            self._profile_of(decision.about),
            decision.action,
            self._reference(decision.related) if decision.related is not None else None,
        )
        made = self._recorder.record(occurrence)
        return RecordEventCall(made) if made is not None else None

    def _reference(self, ref: ObjectRef) -> ObjectReference:
        return ObjectReference(self._api_version(ref.kind), ref.kind, ref.namespace, ref.name, ref.uid)
