"""A recording: the decision log of a scheduler, as boards of any moment in it.

The log is read once to find its lines, their times, and the steps: the cycles that bound, evicted or gave a verdict. A
moment is the number of a line; the board of a moment has taken in every line up to it. Binds count from the cycle that
decided them. Going on from a moment costs what lies between; going back starts from the nearest checkpoint.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from muster.dashboard.board import Board, Objects
from muster.dashboard.history import History, seconds_of
from muster.dashboard.source import BoardHolder, SourceStatus, fill
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.groups.group import group_name
from muster.scheduler.interface.decisions import Bind, Decision, Evict, SetCondition
from muster.scheduler.interface.events import BindFailed, Event, ObjectDeleted, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.simulation.decision_log import BadLog, Header, Line, LoggedCycle, LoggedEvent, decode
from muster.scheduler.simulation.snapshot import Snapshot
from muster.views.failures import ViewFailure
from muster.views.placement import PlacedGroup, why_here

CHECKPOINT_LINES = 5000
MOST_MOMENTS = 8
SAMPLES = 150
SLIDER_POINTS = 500
MakeScheduler = Callable[[Header, Snapshot], Scheduler]


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """A cycle that did something."""

    line: int
    at: float  # seconds since 1970
    text: str
    kind: str = ""  # of the gang that it is about
    namespace: str = ""
    name: str = ""
    bound: int = 0
    evicted: int = 0


class _Moment:
    """A board that stands at a line."""

    def __init__(self, holder: BoardHolder, line: int) -> None:
        self.holder = holder
        self.line = line


class Recording:
    """A decision log, and the boards of its moments. One viewer has one board at a time."""

    def __init__(self, path: Path, make_scheduler: MakeScheduler) -> None:
        self.path = path
        self.steps: list[Step] = []
        self.start_at = self.end_at = 0.0  # seconds since 1970
        self.status = SourceStatus("recording", str(path), ready=False)
        self._make_scheduler = make_scheduler
        self._header: Header | None = None
        self._offsets: list[int] = []  # of each line
        self._times: list[float] = []
        self._end = 0  # of what has been read
        self._checkpoints: list[tuple[int, Objects]] = []
        self._objects: Objects = {}
        self._gangs: dict[str, EntityKey] = {}  # uid of a pod -> its group
        self._parents: dict[EntityKey, EntityKey] = {}
        self._offset = float("-inf")  # from the log's clock to seconds since 1970
        self._moments: dict[str, _Moment] = {}
        self._lock = asyncio.Lock()
        self._history: History | None = None

    # --- the source --------------------------------------------------------------------------------

    def start(self) -> None:
        """The file is read when it is first needed."""

    async def ready(self) -> None:
        async with self._lock:
            if self.path.stat().st_size != self._end:
                await asyncio.to_thread(self._read_index)
                self.status = msgspec.structs.replace(self.status, ready=True)

    async def at(self, moment: str, viewer: str = "") -> BoardHolder:
        await self.ready()
        line = self._line_of(moment)
        async with self._lock:
            found = self._moments.get(viewer)
            if found is None or found.line > line:
                found = await asyncio.to_thread(self._restart, line, found)
            elif found.line < line:
                async with found.holder.lock:
                    await asyncio.to_thread(self._advance, found, line)
            self._moments.pop(viewer, None)
            self._moments[viewer] = found
            while len(self._moments) > MOST_MOMENTS:
                self._moments.pop(next(iter(self._moments)))
            return found.holder

    async def changed(self, version: int) -> None:
        await asyncio.Event().wait()

    async def details(self) -> dict[str, Any]:
        return {"lines": len(self._offsets), "steps": len(self.steps)}

    async def close(self) -> None:
        self._moments.clear()

    async def history(self) -> History:
        """Samples over the whole recording; made once."""
        await self.ready()
        async with self._lock:
            if self._history is None:
                self._history = await asyncio.to_thread(self._make_history)
            return self._history

    def time_of(self, line: int) -> float:
        """When a line was written, in seconds since 1970."""
        return self._times[min(line, len(self._times)) - 1] + self._offset if self._times else 0.0

    def times(self) -> list[tuple[int, float]]:
        """Lines and when they were written, evenly chosen over the recording: what a slider moves over."""
        last = len(self._offsets)
        lines = sorted({1, last, *range(1, last, max(1, last // SLIDER_POINTS))}) if last else []
        return [(line, self.time_of(line)) for line in lines]

    async def why_here(self, line: int, key: EntityKey) -> list[PlacedGroup]:
        """Why a gang went where the cycle on this line put it."""
        await self.ready()
        decision = self._line(line)
        if not isinstance(decision, LoggedCycle):
            raise ViewFailure(f"line {line} is no scheduling cycle")
        placed = {each.pod.uid: each.node for each in decision.decisions if isinstance(each, Bind)}

        def ask() -> list[PlacedGroup]:
            moment = self._restart(line - 1, None)
            return why_here(moment.holder.board.scheduler, key, placed)

        async with self._lock:
            return await asyncio.to_thread(ask)

    # --- the index ---------------------------------------------------------------------------------

    def _read_index(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._end)
            while (data := file.readline()).endswith(b"\n"):
                number = len(self._offsets) + 1
                self._index(number, self._end, _decoded(number, data))
                self._end += len(data)
        if self._header is None:
            raise BadLog(f"{self.path}: it is empty or does not begin with its header")
        self.start_at, self.end_at = self.time_of(1), self.time_of(len(self._times))

    def _index(self, number: int, offset: int, line: Line) -> None:
        if isinstance(line, Header):
            self._header = self._header or line
        elif self._header is None:
            raise BadLog(f"line {number}: the log does not begin with its header")
        self._offsets.append(offset)
        self._times.append(line.at if not isinstance(line, Header) else (self._times[-1] if self._times else 0.0))
        if isinstance(line, LoggedEvent):
            self._learn(line)
        elif isinstance(line, LoggedCycle):
            self._add_step(number, line)
        for event in _events(line, self._objects):
            _apply(self._objects, event)
        if number % CHECKPOINT_LINES == 0:
            self._checkpoints.append((number, {kind: dict(found) for kind, found in self._objects.items()}))
        if number == 2:
            self._times[0] = self._times[1]

    def _learn(self, line: LoggedEvent) -> None:
        """Remember groups of pods, and how the log's clock relates to the time of day.

        An object is seen after it was created, so the largest difference of the two times is the nearest to the truth.
        """
        if not isinstance(line.event, ObjectUpdated):
            return
        obj, kind = line.event.object, line.event.kind
        created = seconds_of(obj.metadata.creation_timestamp or "")
        if created:
            self._offset = max(self._offset, created - line.at)
        if kind == "Pod" and (group := group_name(obj)):
            self._gangs[obj.metadata.uid] = EntityKey("PodGroup", obj.metadata.namespace, group)
        parent = getattr(getattr(obj, "spec", None), "parent_composite_pod_group_name", None)
        if kind in ("PodGroup", "CompositePodGroup") and parent:
            key = EntityKey(kind, obj.metadata.namespace, obj.metadata.name)
            self._parents[key] = EntityKey("CompositePodGroup", obj.metadata.namespace, parent)

    def _root_of(self, key: EntityKey) -> EntityKey:
        seen: set[EntityKey] = set()
        while key in self._parents and key not in seen:
            seen.add(key)
            key = self._parents[key]
        return key

    def _add_step(self, number: int, line: LoggedCycle) -> None:
        binds = [each for each in line.decisions if isinstance(each, Bind)]
        evictions = [each for each in line.decisions if isinstance(each, Evict)]
        verdicts = [
            each
            for each in line.decisions
            if isinstance(each, SetCondition) and each.about.kind != "Pod" and each.type.endswith("Scheduled")
        ]
        about = self._about(binds, evictions, verdicts)
        if about is None:
            return
        key, text = about
        at = line.at + self._offset
        self.steps.append(Step(number, at, text, *key, bound=len(binds), evicted=len(evictions)))

    def _about(
        self, binds: list[Bind], evictions: list[Evict], verdicts: list[SetCondition]
    ) -> tuple[EntityKey, str] | None:
        """The gang that a cycle is about, and what became of it."""
        if binds:
            gangs = Counter(self._gang_of(each) for each in binds)
            key, _ = gangs.most_common(1)[0]
            more = f" and of {len(gangs) - 1} more" if len(gangs) > 1 else ""
            return key, f"{len(binds)} pods of {key.name} bound{more}"
        if evictions:
            by = evictions[0].preemptor
            return EntityKey(by.kind, by.namespace, by.name), f"{len(evictions)} pods evicted for {by.name}"
        if verdicts:
            about = verdicts[0].about
            return EntityKey(about.kind, about.namespace, about.name), f"{about.name}: {verdicts[0].reason}"
        return None

    def _gang_of(self, decision: Bind) -> EntityKey:
        pod = decision.pod
        group = self._gangs.get(pod.uid)
        return self._root_of(group) if group is not None else EntityKey("Pod", pod.namespace, pod.name)

    # --- moments -----------------------------------------------------------------------------------

    def _line_of(self, moment: str) -> int:
        last = len(self._offsets)
        if not moment:
            return last
        if not moment.isdecimal() or not 1 <= int(moment) <= last:
            raise ViewFailure(f"there is no moment {moment[:20]!r}: moments are the lines 1 to {last}")
        return int(moment)

    def _restart(self, line: int, before: _Moment | None) -> _Moment:
        """A new board at a line, from the nearest checkpoint. Its versions go on from those of the board before."""
        assert self._header is not None
        header, make = self._header, self._make_scheduler
        board = Board(lambda snapshot: make(header, snapshot))
        if before is not None:
            board.version = board.born = before.holder.board.version + 1
        number, objects = max(
            (each for each in self._checkpoints if each[0] <= line), key=lambda each: each[0], default=(0, {})
        )
        board.objects = {kind: dict(found) for kind, found in objects.items()}
        for _, each in self._lines(number + 1, line):
            for event in _events(each, board.objects):
                _apply(board.objects, event)
        fill(board)
        return _Moment(BoardHolder(board), line)

    def _advance(self, moment: _Moment, line: int) -> None:
        board = moment.holder.board
        for _, each in self._lines(moment.line + 1, line):
            for event in _events(each, board.objects):
                board.apply(event)
        moment.line = line
        fill(board)

    def _make_history(self) -> History:
        history = History()
        moment = self._restart(1, None)
        board = moment.holder.board
        last = len(self._offsets)
        every = max(1, last // SAMPLES)
        for number, line in self._lines(2, last):
            for event in _events(line, board.objects):
                board.apply(event)
                history.observe(event, board)
            if number % every == 0 or number == last:
                fill(board)
                history.sample(board, self.time_of(number))
        return history

    def _line(self, number: int) -> Line:
        if not 1 <= number <= len(self._offsets):
            raise ViewFailure(f"there is no line {number}")
        return next(line for _, line in self._lines(number, number))

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, Line]]:
        if first > last:
            return
        with self.path.open("rb") as file:
            file.seek(self._offsets[first - 1])
            for number in range(first, last + 1):
                yield number, _decoded(number, file.readline())


def _decoded(number: int, data: bytes) -> Line:
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLog(f"line {number}: {error}") from error


def _events(line: Line, objects: Objects) -> Iterator[Event]:
    """What a line changes in the objects of the cluster: an event as it is, the binds of a cycle as bound pods."""
    if isinstance(line, LoggedCycle):
        yield from _bound(line.decisions, objects)
    elif isinstance(line, LoggedEvent):
        if isinstance(line.event, BindFailed):
            yield from _unbound(line.event, objects)
        else:
            yield line.event


def _bound(decisions: list[Decision], objects: Objects) -> Iterator[Event]:
    for decision in decisions:
        if isinstance(decision, Bind):
            pod = objects.get("Pod", {}).get((decision.pod.namespace, decision.pod.name))
            if pod is not None and pod.metadata.uid == decision.pod.uid:
                yield ObjectUpdated("Pod", _on(pod, decision.node))


def _unbound(event: BindFailed, objects: Objects) -> Iterator[Event]:
    for pod in list(objects.get("Pod", {}).values()):
        if pod.metadata.uid == event.uid and pod.spec.node_name == event.node:
            # A scheduler does not believe that a bound pod is unbound again; this one begins anew.
            yield ObjectDeleted("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            yield ObjectUpdated("Pod", _on(pod, ""))


def _on(pod: Any, node: str) -> Any:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def _apply(objects: Objects, event: Event) -> None:
    if isinstance(event, ObjectUpdated):
        meta = event.object.metadata
        objects.setdefault(event.kind, {})[meta.namespace, meta.name] = event.object
    elif isinstance(event, ObjectDeleted):
        objects.get(event.kind, {}).pop((event.namespace, event.name), None)
