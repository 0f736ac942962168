"""Records Kubernetes events, best effort: an event that cannot be written is dropped and never fails its caller.

An event that repeats is counted in its series instead of being written again. The recorder makes the calls and its
owner carries them out, so that events can wait behind more important writes. At most `MOST_QUEUED` calls are open; what
comes beyond that is dropped and counted.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from muster.api.errors import ApiError
from muster.api.resources import CORE_EVENTS, EVENTS, Resource
from muster.client.clock import Clock, micro_timestamp, timestamp
from muster.client.protocol import Client, Obj
from muster.logs import V, keys

log = logging.getLogger(__name__)

LONGEST_NOTE = 1024  # the limit of events.k8s.io/v1
MOST_QUEUED = 10_000
MOST_SERIES = 4096


class ObjectReference(NamedTuple):
    """An object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    def body(self) -> Obj:
        found = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {key: value for key, value in found.items() if value}


class Occurrence(NamedTuple):
    """What happened once, in the words of events.k8s.io/v1."""

    regarding: ObjectReference
    type: str  # Normal or Warning
    reason: str
    note: str
    controller: str  # reportingController
    action: str = ""
    related: ObjectReference | None = None

    @property
    def series(self) -> Hashable:
        """Equal for occurrences of one series, whichever version of the object they are about."""
        return (self.regarding[:5], self.type, self.reason, self.note, self.action, self.related)


@dataclass(slots=True)
class EventSeries:
    """One event object and its repetitions."""

    latest: Occurrence
    name: str
    first: float
    last: float
    count: int = 1
    written: bool = False
    queued: bool = True

    @property
    def namespace(self) -> str:
        """Where the event lives; events about cluster-scoped objects are in `default`."""
        return self.latest.regarding.namespace or "default"


class EventFormat(Protocol):
    """How a series is written on the wire."""

    resource: Resource
    series_seconds: float  # a series that was silent for longer is not continued

    def body(self, series: EventSeries) -> Obj:
        """The event object."""
        ...

    def repetition(self, series: EventSeries) -> Obj:
        """The merge patch that brings a written event to the series' present count."""
        ...


class SeriesFormat:
    """events.k8s.io/v1, as kube-scheduler writes it."""

    resource = EVENTS
    series_seconds = 600.0

    def __init__(self, instance: str) -> None:
        self._instance = instance

    def body(self, series: EventSeries) -> Obj:
        event = series.latest
        body: Obj = {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": micro_timestamp(series.first),
            "reportingController": event.controller,
            "reportingInstance": self._instance[:128],
            "action": event.action,
            "reason": event.reason,
            "regarding": event.regarding.body(),
            "note": event.note[:LONGEST_NOTE],
            "type": event.type,
        }
        if event.related is not None:
            body["related"] = event.related.body()
        if series.count > 1:
            body |= self.repetition(series)
        return body

    def repetition(self, series: EventSeries) -> Obj:
        return {"series": {"count": series.count, "lastObservedTime": micro_timestamp(series.last)}}


class CountFormat:
    """core/v1, as kube-controller-manager writes it; the server completes the name."""

    resource = CORE_EVENTS
    series_seconds = math.inf

    def body(self, series: EventSeries) -> Obj:
        event, regarding = series.latest, series.latest.regarding
        return {
            "metadata": {"generateName": f"{regarding.name}.", "namespace": series.namespace},
            "involvedObject": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "name": regarding.name,
                "namespace": regarding.namespace,
                "uid": regarding.uid,
                "resourceVersion": regarding.resource_version,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.note,
            "firstTimestamp": timestamp(series.first),
            "source": {"component": event.controller},
            "reportingComponent": event.controller,
            **self.repetition(series),
        }

    def repetition(self, series: EventSeries) -> Obj:
        return {"count": series.count, "lastTimestamp": timestamp(series.last)}


class EventCall:
    """Writes an event, or the present count of its series. `run` must be called once."""

    def __init__(self, series: EventSeries, recorder: EventRecorder) -> None:
        self.series = series
        self._recorder = recorder

    async def run(self) -> None:
        await self._recorder.write(self.series)


class EventRecorder:
    """Counts occurrences into series and makes the calls that write them."""

    def __init__(self, client: Client, clock: Clock, form: EventFormat) -> None:
        self._client = client
        self._clock = clock
        self._form = form
        self._series: OrderedDict[Hashable, EventSeries] = OrderedDict()
        self._number = 0
        self._queued = 0
        self.dropped = 0

    def record(self, event: Occurrence) -> EventCall | None:
        """The call that writes this occurrence; None if an open call will write it too, or too many are open."""
        now, key = self._clock.now(), event.series
        series = self._series.get(key)
        if series is not None and now - series.last < self._form.series_seconds:
            series.count += 1
            series.last, series.latest = now, event
            self._series.move_to_end(key)
            if series.queued:
                return None
            series.queued = True
        else:
            series = self._start(key, event, now)
        if self._queued >= MOST_QUEUED:
            self.dropped += 1
            series.queued = False
            return None
        self._queued += 1
        return EventCall(series, self)

    def _start(self, key: Hashable, event: Occurrence, now: float) -> EventSeries:
        self._number += 1
        name = f"{event.regarding.name[:200]}.{int(now * 1e6):x}{self._number:x}"
        series = self._series[key] = EventSeries(event, name, now, now)
        if len(self._series) > MOST_SERIES:
            self._series.popitem(last=False)
        return series

    async def write(self, series: EventSeries) -> None:
        """Bring the server's event to the series' present count, if the server can be reached."""
        series.queued = False
        self._queued -= 1
        try:
            if not series.written or not await self._repeat(series):
                await self._create(series)
        except (ApiError, ConnectionError, TimeoutError) as error:
            about = series.latest.regarding
            where = keys(object=f"{about.namespace}/{about.name}", reason=series.latest.reason, err=str(error))
            log.log(V(2), "Event not recorded", extra=where)

    async def _create(self, series: EventSeries) -> None:
        created = await self._client.create(self._form.resource, self._form.body(series), series.namespace)
        series.name = created["metadata"]["name"]
        series.written = True

    async def _repeat(self, series: EventSeries) -> bool:
        """Raise the count; False if the event has expired meanwhile, and a new one begins."""
        try:
            await self._client.patch(self._form.resource, series.name, self._form.repetition(series), series.namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            series.first, series.count, series.written = series.last, 1, False
            return False
        return True
