"""A run of the scheduler as a list of lines, and the check that running it again gives the same decisions.

A log is a header (config, seed), then every event with the time at which it was handled, and every scheduling cycle
with its decisions. A long log comes in segments, each of which is a log: the objects that there were when it began are
its first events. A replay feeds a new scheduler the same events at the same times and compares the decisions of
each cycle byte for byte; the first difference is reported with both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from muster.api.gates import GANG_SCHEDULING, FeatureGates, resolve
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.interface.events import KINDS, Event, ObjectUpdated

VERSION = 2  # what is written; older ones are read


class Header(msgspec.Struct, frozen=True, tag="muster-decision-log", tag_field="line"):
    """What the scheduler was made from: its configuration as it was read, the seed, the gates not at their default."""

    config: dict[str, Any]
    seed: int = 0
    gangs: bool = True
    version: int = VERSION
    gates: dict[str, bool] = {}

    def feature_gates(self) -> FeatureGates:
        """The gates that the scheduler ran with; older logs know only whether gangs were on."""
        return resolve(self.gates if self.gangs else {**self.gates, GANG_SCHEDULING: False})[0]


class LoggedEvent(msgspec.Struct, frozen=True, tag="event", tag_field="line"):
    """The scheduler handled an event."""

    at: float
    event: Event


class LoggedCycle(msgspec.Struct, frozen=True, tag="turn", tag_field="line"):
    """A scheduling cycle and its decisions."""

    at: float
    decisions: list[Decision]


Line = Header | LoggedEvent | LoggedCycle


class Difference(msgspec.Struct, frozen=True):
    """The first cycle whose decisions are not the logged ones."""

    line: int
    at: float
    index: int  # of the first decision that differs
    logged: str
    replayed: str

    def __str__(self) -> str:
        return (
            f"line {self.line} (time {self.at}): decision {self.index} differs\n"
            f"  logged:   {self.logged or '(none)'}\n"
            f"  replayed: {self.replayed or '(none)'}"
        )


class Replayed(msgspec.Struct, frozen=True, rename={"cycles": "turns"}):
    """What a replay found. `muster replay -o json` calls the cycles turns."""

    events: int
    cycles: int
    decisions: int
    difference: Difference | None = None


class SchedulerProtocol(Protocol):
    """What the engine and a replay need of a scheduler."""

    def handle(self, event: Event, now: float) -> None: ...

    def next(self, now: float) -> list[Decision]: ...

    def wake_at(self, now: float) -> float | None: ...


class BadLog(Exception):
    """A log that cannot be read; the message says where and why."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)


def encode(line: Line) -> bytes:
    """One line, with its newline."""
    return _encoder.encode(line) + b"\n"


def decode(data: bytes) -> Line:
    """One line back. Objects of events become the projections they were."""
    line = _decoder.decode(data)
    if isinstance(line, LoggedEvent) and isinstance(line.event, ObjectUpdated):
        kind = line.event.kind
        if kind not in KINDS:
            raise msgspec.ValidationError(f"unknown kind {kind}")
        obj = msgspec.convert(line.event.object, KINDS[kind])
        return LoggedEvent(line.at, ObjectUpdated(kind, obj))
    return line


def replay(lines: Iterable[bytes], make_scheduler: Callable[[Header], SchedulerProtocol]) -> Replayed:
    """Run a log again. `make_scheduler` builds a scheduler from the header."""
    scheduler: SchedulerProtocol | None = None
    events = cycles = decisions = 0
    for number, data in enumerate(lines, 1):
        if not data.strip():
            continue
        if scheduler is not None and not data.endswith(b"\n") and not _is_whole(data):
            break  # the process was killed while it wrote
        line = _read(number, data)
        if isinstance(line, Header):
            if line.version > VERSION:
                raise BadLog(
                    f"line {number}: log version {line.version} is newer than {VERSION}, which this Muster reads"
                )
            if scheduler is not None:
                raise BadLog(f"line {number}: a second header")
            scheduler = make_scheduler(line)
        elif scheduler is None:
            raise BadLog(f"line {number}: the log does not begin with its header")
        elif isinstance(line, LoggedEvent):
            events += 1
            scheduler.handle(line.event, line.at)
        else:
            cycles += 1
            decisions += len(line.decisions)
            difference = _compare(number, line, scheduler.next(line.at))
            if difference is not None:
                return Replayed(events, cycles, decisions, difference)
    if scheduler is None:
        raise BadLog("the log is empty")
    return Replayed(events, cycles, decisions)


def _is_whole(data: bytes) -> bool:
    try:
        decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _read(number: int, data: bytes) -> Line:
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLog(f"line {number}: {error}") from error


def _compare(number: int, cycle: LoggedCycle, made: list[Decision]) -> Difference | None:
    logged = [_encoder.encode(each) for each in cycle.decisions]
    replayed = [_encoder.encode(each) for each in made]
    if logged == replayed:
        return None
    index = next(
        (i for i, (a, b) in enumerate(zip(logged, replayed, strict=False)) if a != b), min(len(logged), len(replayed))
    )

    def side(texts: list[bytes]) -> str:
        return texts[index].decode() if index < len(texts) else ""

    return Difference(number, cycle.at, index, side(logged), side(replayed))
