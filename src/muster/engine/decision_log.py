"""Writes the decision log: a header, then every event and every scheduling cycle as one JSON line each.

Lines are buffered and written by the loop's own thread; the log is for explaining and replaying a run, and
losing the last second of it in a crash is acceptable. `muster.scheduler.replay` says what a line holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from muster.api.gates import GANG_SCHEDULING
from muster.engine.settings import Settings
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.interface.events import Event
from muster.scheduler.simulation import decision_log


class DecisionLog:
    """An open log file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @classmethod
    def open(cls, path: Path, config: dict[str, Any], settings: Settings) -> DecisionLog:
        """Start a new log; an older one of the same name is replaced."""
        log = cls(path.open("wb", buffering=1 << 18))
        gates = settings.gates
        header = decision_log.Header(
            config=config, seed=settings.seed, gangs=gates.enabled(GANG_SCHEDULING), gates=gates.switched()
        )
        log._file.write(decision_log.encode(header))
        return log

    def event(self, event: Event, now: float) -> None:
        self._file.write(decision_log.encode(decision_log.LoggedEvent(now, event)))

    def cycle(self, decisions: list[Decision], now: float) -> None:
        self._file.write(decision_log.encode(decision_log.LoggedCycle(now, decisions)))

    def close(self) -> None:
        self._file.close()
