"""Writes the decision log: segments of lines, each of which can be replayed alone.

A segment is a header (format, configuration, seed, gates), a snapshot of the objects as events, and then every event
and every scheduling cycle as one JSON line each (`muster.scheduler.simulation.decision_log` says what a line holds).
The first segment of a run begins with the first lists, which are a snapshot. The file of the log is the newest segment;
older ones have a number behind its name, and the oldest go when the segments together are larger than allowed. Lines
reach the operating system at least once a second, so that a process that is killed loses no more than that. Only the
owner can read the files: they hold what the API server would show to nobody else. A log that cannot be written ends;
the scheduler goes on.
"""

from __future__ import annotations

import asyncio
import glob
import io
import logging
import os
import time
from pathlib import Path
from typing import Any

from muster.api.gates import GANG_SCHEDULING
from muster.engine.settings import Settings
from muster.logs import keys
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.interface.events import Event
from muster.scheduler.simulation import decision_log

log = logging.getLogger(__name__)

SEGMENTS = 4  # that the allowed size is divided into
FLUSH_SECONDS = 0.5
BUFFER = 1 << 18


class DecisionLog:
    """An open log."""

    def __init__(self, path: Path, header: decision_log.Header, max_size: int) -> None:
        self.path = path
        self._header = decision_log.encode(header)
        self._max_size = max_size
        self._file: io.BufferedWriter | None = None
        self._written = 0  # bytes of this segment after its snapshot
        self._least = max_size // SEGMENTS  # of them, before another segment begins
        self._flushed_at = 0.0
        self.next_segment()

    @classmethod
    def open(cls, path: Path, config: dict[str, Any], settings: Settings) -> DecisionLog:
        """Start a new log; what an earlier run has written to the file becomes an older segment."""
        gates = settings.gates
        header = decision_log.Header(
            config=config, seed=settings.seed, gangs=gates.enabled(GANG_SCHEDULING), gates=gates.switched()
        )
        return cls(path, header, settings.decision_log_size)

    # --- lines -------------------------------------------------------------------------------------

    def event(self, event: Event, now: float) -> None:
        self._write(decision_log.encode(decision_log.LoggedEvent(now, event)))

    def cycle(self, decisions: list[Decision], now: float) -> None:
        self._write(decision_log.encode(decision_log.LoggedCycle(now, decisions)))

    def snapshot_ends(self) -> None:
        """What was written so far does not count towards the size of the segment, which must be worth it."""
        self._least = max(self._max_size // SEGMENTS, self._written)
        self._written = 0

    def _write(self, line: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line)
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(line)
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS:  # the task below may be kept waiting by a long cycle
            self.flush()

    def flush(self) -> None:
        """Hand all lines to the operating system."""
        self._flushed_at = time.monotonic()
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    async def run(self) -> None:
        """Flush now and then, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self.flush()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                log.error("The decision log is incomplete", extra=keys(file=str(self.path), err=str(error)))

    def _give_up(self, error: OSError) -> None:
        log.error("The decision log ends here", extra=keys(file=str(self.path), err=str(error)))
        file, self._file = self._file, None
        if file is not None:
            file.raw.close()  # what is in the buffer cannot be written either

    # --- segments ----------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether another segment should begin."""
        return self._file is not None and self._written >= self._least

    @property
    def is_overfull(self) -> bool:
        """Whether that has been put off for long."""
        return self._file is not None and self._written >= self._least * 3 // 2

    def next_segment(self) -> None:
        """End the segment and begin another one with a header."""
        self.close()
        try:
            self._shift()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.fchmod(descriptor, 0o600)
            self._file = io.BufferedWriter(io.FileIO(descriptor, "wb"), BUFFER)
            self._file.write(self._header)
            self._file.flush()
        except OSError as error:
            self._give_up(error)
        self._written = 0

    def _shift(self) -> None:
        """The present file becomes an older segment, and the oldest segments go."""
        older = older_segments(self.path)
        if self.path.exists() and self.path.stat().st_size:
            number = int(older[-1].suffix[1:]) + 1 if older else 1
            older.append(self.path.rename(self.path.with_name(f"{self.path.name}.{number:06d}")))
        allowed = self._max_size - self._max_size // SEGMENTS
        sizes = [segment.stat().st_size for segment in older]
        while sizes and sum(sizes) > (allowed if len(sizes) > 1 else self._max_size):  # one more if that is possible
            older.pop(0).unlink()
            sizes.pop(0)


def older_segments(path: Path) -> list[Path]:
    """The segments before the newest one, which has the name of the log; the oldest first."""
    found = path.parent.glob(f"{glob.escape(path.name)}.[0-9]*")
    return sorted((each for each in found if each.suffix[1:].isdigit()), key=lambda each: int(each.suffix[1:]))
