"""Events, recorded as well as it goes: they never hold up anything and never fail anything.

An event that repeats is counted in its series instead of being written again. The queue is bounded; when
the server cannot keep up the oldest are dropped, and how many is known.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from muster.api.errors import ApiError
from muster.api.resources import EVENTS
from muster.client.protocol import Client, Obj
from muster.engine.lanes import EVENT, Lanes, Write
from muster.engine.logs import V, keys
from muster.engine.pace import Pace
from muster.scheduler.interface.decisions import RecordEvent
from muster.scheduler.interface.keys import ObjectRef

log = logging.getLogger(__name__)

LONGEST_NOTE = 1024
MOST_QUEUED = 10_000
MOST_SERIES = 4096
SERIES_SECONDS = 600.0


@dataclass(slots=True)
class Series:
    """One event and its repetitions."""

    emit: RecordEvent
    name: str
    first: str
    last: str
    seen: float
    count: int = 1
    written: bool = False
    queued: bool = True


class EventWrite(Write):
    """Write an event, or the present count of its series."""

    rank = EVENT
    call = "event"

    def __init__(self, series: Series, recorder: Recorder) -> None:
        super().__init__(("Event", series.emit.about.namespace, series.name))
        self.series = series
        self._recorder = recorder

    async def run(self) -> str:
        self.series.queued = False
        self._recorder.queued -= 1
        try:
            await self._recorder.send(self.series)
        except (ApiError, ConnectionError, TimeoutError) as error:
            about = self.series.emit.about
            where = keys(object=f"{about.namespace}/{about.name}", reason=self.series.emit.reason, err=str(error))
            log.log(V(2), "Event not recorded", extra=where)
        return ""


class Recorder:
    """Takes `Emit` decisions; `reporter` says in whose name an event about an object is written."""

    def __init__(
        self,
        client: Client,
        lanes: Lanes,
        pace: Pace,
        *,
        api_version: Callable[[str], str],
        reporter: Callable[[ObjectRef], str],
        instance: str,
        enabled: bool = True,
    ) -> None:
        self._client = client
        self._lanes = lanes
        self._pace = pace
        self._api_version = api_version
        self._reporter = reporter
        self._instance = instance
        self._enabled = enabled
        self._series: OrderedDict[RecordEvent, Series] = OrderedDict()
        self._number = 0
        self.queued = 0
        self.dropped = 0

    def record(self, emit: RecordEvent) -> None:
        if not self._enabled:
            return
        now = self._pace.now()
        series = self._series.get(emit)
        if series is not None and now - series.seen < SERIES_SECONDS:
            series.count += 1
            series.last, series.seen = self._pace.microtime(), now
            self._series.move_to_end(emit)
            if series.queued:
                return
            series.queued = True
        else:
            self._number += 1
            stamp = self._pace.microtime()
            name = f"{emit.about.name[:200]}.{int(now * 1e6):x}{self._number:x}"
            series = self._series[emit] = Series(emit, name, stamp, stamp, now)
            if len(self._series) > MOST_SERIES:
                self._series.popitem(last=False)
        if self.queued >= MOST_QUEUED:
            self.dropped += 1
            series.queued = False
            return
        self.queued += 1
        self._lanes.submit(EventWrite(series, self))

    async def send(self, series: Series) -> None:
        namespace = series.emit.about.namespace or "default"
        if not series.written:
            await self._client.create(EVENTS, self._body(series, namespace), namespace)
            series.written = True
            return
        count = {"series": {"count": series.count, "lastObservedTime": series.last}}
        try:
            await self._client.patch(EVENTS, series.name, count, namespace)
        except ApiError as error:
            if error.code == 404:  # events expire
                self._series.pop(series.emit, None)
            raise

    def _body(self, series: Series, namespace: str) -> Obj:
        emit = series.emit
        body: Obj = {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": namespace},
            "eventTime": series.first,
            "reportingController": self._reporter(emit.about),
            "reportingInstance": self._instance[:128],
            "action": emit.action,
            "reason": emit.reason,
            "regarding": self._reference(emit.about),
            "note": emit.note[:LONGEST_NOTE],
            "type": emit.kind,
        }
        if emit.related is not None:
            body["related"] = self._reference(emit.related)
        if series.count > 1:
            body["series"] = {"count": series.count, "lastObservedTime": series.last}
        return body

    def _reference(self, ref: ObjectRef) -> Obj:
        reference = {
            "apiVersion": self._api_version(ref.kind),
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": ref.uid,
        }
        return {key: value for key, value in reference.items() if value}
