"""A recording: the decision log of a scheduler, as boards of any moment in it.

A log comes in segments, each with a header and the objects that there were when it began; their lines are numbered
through, the oldest first. They are read once to find their times, and the steps: the cycles that bound, evicted or gave
a verdict. What is added to the log later is read when it is asked for. A moment is the number of a line; the board of a
moment has taken in every line of its segment up to it. Binds count from the cycle that decided them. Going on from a
moment costs what lies between; going back starts from the nearest checkpoint.
"""

from __future__ import annotations

import asyncio
import glob
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from muster.dashboard.board import Board, Objects
from muster.dashboard.history import History, seconds_of
from muster.dashboard.recorded_changes import apply_change, changes_of
from muster.dashboard.source import BoardHolder, SourceStatus, fill
from muster.dashboard.threads import in_thread
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.groups.group import group_name
from muster.scheduler.interface.decisions import Bind, Evict, SetCondition
from muster.scheduler.interface.events import CacheSynced, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.simulation.decision_log import BadLog, Header, Line, LoggedCycle, LoggedEvent, decode
from muster.scheduler.simulation.snapshot import Snapshot
from muster.scheduler.status.messages import count_text
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


class _Index:
    """What is known of the lines of a log, by number. A later segment has a clock of its own."""

    def __init__(self) -> None:
        self.header: Header | None = None  # of the newest segment
        self.starts: list[int] = []  # the first line of each segment
        self.clocks: list[float] = []  # of each segment, from its clock to seconds since 1970
        self.complete: list[int] = []  # of each segment, the line from which all objects are known; 0: none yet
        self.places: list[tuple[int, int]] = []  # of each line: file, offset
        self.times: list[float] = []  # of each line, by the clock of its segment
        self.steps: list[Step] = []
        self.checkpoints: list[tuple[int, Objects]] = []
        self.objects: Objects = {}

    def segment_of(self, line: int) -> int:
        return bisect_right(self.starts, line) - 1

    def time_of(self, line: int) -> float:
        """When a line was written, in seconds since 1970."""
        clock = self.clocks[self.segment_of(line)]
        return self.times[line - 1] + (clock if clock > float("-inf") else 0.0)


class Recording:
    """A decision log, and the boards of its moments. One viewer has one board at a time."""

    def __init__(self, path: Path, make_scheduler: MakeScheduler) -> None:
        self.path = path
        self.status = SourceStatus("recording", path.name, ready=False)
        self._make_scheduler = make_scheduler
        self._index = _Index()
        self._read: list[tuple[Path, int]] = []  # the files, and how much of each has been read
        self._gangs: dict[str, EntityKey] = {}  # uid of a pod -> its group
        self._parents: dict[EntityKey, EntityKey] = {}
        self._moments: dict[str, _Moment] = {}
        self._lock = asyncio.Lock()
        self._history: History | None = None

    # --- the source --------------------------------------------------------------------------------

    def start(self) -> None:
        """The file is read when it is first needed."""

    async def ready(self) -> None:
        async with self._lock:
            if self._is_behind():
                await in_thread(self._read_index)
                self.status = msgspec.structs.replace(self.status, ready=True)

    async def at(self, moment: str, viewer: str = "") -> BoardHolder:
        await self.ready()
        line = self._line_of(moment)
        async with self._lock:
            found = self._moments.get(viewer)
            if found is None or not self._leads_to(found.line, line):
                found = await in_thread(self._restart, line, found)
            elif found.line < line:
                async with found.holder.lock:
                    await in_thread(self._advance, found, line)
            self._moments.pop(viewer, None)
            self._moments[viewer] = found
            while len(self._moments) > MOST_MOMENTS:
                self._moments.pop(next(iter(self._moments)))
            return found.holder

    async def changed(self, version: int) -> None:
        await asyncio.Event().wait()

    async def details(self) -> dict[str, Any]:
        return {"lines": len(self._index.places), "steps": len(self._index.steps)}

    async def close(self) -> None:
        self._moments.clear()

    async def history(self) -> History:
        """Samples over the recording; made once."""
        await self.ready()
        async with self._lock:
            if self._history is None:
                self._history = await in_thread(self._make_history)
            return self._history

    @property
    def steps(self) -> list[Step]:
        """The cycles that did something."""
        index = self._index
        return [msgspec.structs.replace(step, at=index.time_of(step.line)) for step in index.steps]

    def times(self) -> list[tuple[int, float]]:
        """Lines and when they were written, evenly chosen over the recording: what a slider moves over."""
        index = self._index
        found: list[int] = []
        for start, first, end in zip(
            index.starts, index.complete, (*index.starts[1:], len(index.places) + 1), strict=True
        ):
            lines = range(first or start, end)
            found += [*lines[:: max(1, len(index.places) // SLIDER_POINTS)], *lines[-1:]]
        return [(line, index.time_of(line)) for line in dict.fromkeys(found)]

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
            return await in_thread(ask)

    # --- the index ---------------------------------------------------------------------------------

    def _files(self) -> list[Path]:
        """The segments, the oldest first."""
        return [*sorted(self.path.parent.glob(f"{glob.escape(self.path.name)}.[0-9]*")), self.path]

    def _is_behind(self) -> bool:
        return [(path, path.stat().st_size) for path in self._files()] != self._read

    def _read_index(self) -> None:
        """Read what is new; all of it, if the files are others than before."""
        files, read = self._files(), dict(self._read)
        if [path for path, _ in self._read] != files or any(path.stat().st_size < read[path] for path in files):
            self._index, self._moments, read = _Index(), {}, {}
        self._history = None
        self._read = [(path, self._read_file(number, path, read.get(path, 0))) for number, path in enumerate(files)]
        if self._index.header is None:
            raise BadLog(f"{self.path.name} is empty or does not begin with its header")

    def _read_file(self, number: int, path: Path, offset: int) -> int:
        with path.open("rb") as file:
            file.seek(offset)
            while (data := file.readline()).endswith(b"\n"):  # the last line may not have been written whole
                self._add_line(number, offset, _decoded(len(self._index.places) + 1, data))
                offset += len(data)
        return offset

    def _add_line(self, file: int, offset: int, line: Line) -> None:
        index = self._index
        number = len(index.places) + 1
        if isinstance(line, Header):
            index.header, index.objects = line, {}
            index.starts.append(number)
            index.clocks.append(float("-inf"))
            index.complete.append(0)
        elif index.header is None:
            raise BadLog(f"line {number}: the log does not begin with its header")
        index.places.append((file, offset))
        index.times.append(line.at if not isinstance(line, Header) else 0.0)
        if isinstance(line, LoggedEvent):
            self._learn(line)
            if isinstance(line.event, CacheSynced):
                index.complete[-1] = number
        elif isinstance(line, LoggedCycle):
            index.complete[-1] = index.complete[-1] or number
            self._add_step(number, line)
        for event in changes_of(line, index.objects):
            apply_change(index.objects, event)
        if number % CHECKPOINT_LINES == 0:
            index.checkpoints.append((number, {kind: dict(found) for kind, found in index.objects.items()}))

    def _learn(self, line: LoggedEvent) -> None:
        """Remember groups of pods, and how the log's clock relates to the time of day.

        An object is seen after it was created, so the largest difference of the two times is the nearest to the truth.
        """
        if not isinstance(line.event, ObjectUpdated):
            return
        obj, kind = line.event.object, line.event.kind
        created = seconds_of(obj.metadata.creation_timestamp or "")
        if created:
            self._index.clocks[-1] = max(self._index.clocks[-1], created - line.at)
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
        self._index.steps.append(Step(number, 0.0, text, *key, bound=len(binds), evicted=len(evictions)))

    def _about(
        self, binds: list[Bind], evictions: list[Evict], verdicts: list[SetCondition]
    ) -> tuple[EntityKey, str] | None:
        """The gang that a cycle is about, and what became of it."""
        if binds:
            gangs = Counter(self._gang_of(each) for each in binds)
            key, _ = gangs.most_common(1)[0]
            more = f" and of {len(gangs) - 1} more" if len(gangs) > 1 else ""
            return key, f"{count_text(len(binds), 'pod')} of {key.name} bound{more}"
        if evictions:
            by = evictions[0].preemptor
            text = f"{count_text(len(evictions), 'pod')} evicted for {by.name}"
            return EntityKey(by.kind, by.namespace, by.name), text
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
        last = len(self._index.places)
        if not moment:
            return last
        if not moment.isdecimal() or not 1 <= int(moment) <= last:
            raise ViewFailure(f"there is no moment {moment[:20]!r}: moments are the lines 1 to {last}")
        return int(moment)

    def _restart(self, line: int, before: _Moment | None) -> _Moment:
        """A new board at a line, from the nearest checkpoint. Its versions go on from those of the board before."""
        index, make = self._index, self._make_scheduler
        assert index.header is not None
        header = index.header
        board = Board(lambda snapshot: make(header, snapshot))
        if before is not None:
            board.version = board.born = before.holder.board.version + 1
        first = index.starts[index.segment_of(line)]
        usable = (each for each in index.checkpoints if first <= each[0] <= line)
        number, objects = max(usable, key=lambda each: each[0], default=(first - 1, {}))
        board.objects = {kind: dict(found) for kind, found in objects.items()}
        for _, each in self._lines(number + 1, line):
            for event in changes_of(each, board.objects):
                apply_change(board.objects, event)
        fill(board)
        return _Moment(BoardHolder(board), line)

    def _leads_to(self, line: int, later: int) -> bool:
        """Whether a board goes from one line to another by taking in what lies between."""
        return line <= later and self._index.segment_of(line) == self._index.segment_of(later)

    def _advance(self, moment: _Moment, line: int) -> None:
        board = moment.holder.board
        for _, each in self._lines(moment.line + 1, line):
            for event in changes_of(each, board.objects):
                board.apply(event)
        moment.line = line
        fill(board)

    def _make_history(self) -> History:
        """Samples over the newest segment."""
        history, index = History(), self._index
        first, last = index.complete[-1] or index.starts[-1], len(index.places)
        moment = self._restart(first, None)
        board = moment.holder.board
        for kind, found in board.objects.items():
            for obj in found.values():
                history.observe(ObjectUpdated(kind, obj), board)
        every = max(1, (last - first) // SAMPLES)
        for number, line in self._lines(first + 1, last):
            for event in changes_of(line, board.objects):
                board.apply(event)
                history.observe(event, board)
            if number % every == 0 or number == last:
                fill(board)
                history.sample(board, index.time_of(number))
        return history

    def _line(self, number: int) -> Line:
        if not 1 <= number <= len(self._index.places):
            raise ViewFailure(f"there is no line {number}")
        return next(line for _, line in self._lines(number, number))

    def _lines(self, first: int, last: int) -> Iterator[tuple[int, Line]]:
        """Lines of one segment."""
        if first > last:
            return
        file, offset = self._index.places[first - 1]
        with self._read[file][0].open("rb") as lines:
            lines.seek(offset)
            for number in range(first, last + 1):
                yield number, _decoded(number, lines.readline())


def _decoded(number: int, data: bytes) -> Line:
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLog(f"line {number}: {error}") from error
