"""A scheduler that has been given the objects of a cluster, so that it can be asked."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import TYPE_CHECKING

from muster.views.failures import ViewFailure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.interface.events import ObjectUpdated
    from muster.scheduler.runtime.config import Config
    from muster.scheduler.simulation.snapshot import Snapshot
    from muster.views.progress import Progress

MOST_BYTES = 2 << 30


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot file, gzipped or plain."""
    from muster.scheduler.simulation.snapshot import BadSnapshot, decode

    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            with gzip.open(path) as packed:
                data = packed.read(MOST_BYTES)
        return decode(data)
    except (OSError, EOFError, BadSnapshot) as error:
        raise ViewFailure(f"{path}: {error}") from error


def config_for(snapshot: Snapshot) -> Config:
    """The default profile for every scheduler name of the pods, so that every pending pod is scheduled."""
    from muster.scheduler.runtime.config import default_config

    return default_config(*sorted({*snapshot.schedulers, "default-scheduler", "muster"}))


def time_of(snapshot: Snapshot) -> float:
    """When the cluster was as the snapshot says, in seconds since the epoch; now, if it does not say."""
    from muster.scheduler.cache.run_times import seconds_of

    return seconds_of(snapshot.taken_at) or time.time()


def scheduler_for(snapshot: Snapshot, progress: Progress | None = None, *, now: float | None = None) -> Scheduler:
    """A scheduler with the gates of the cluster's own, given its objects, which knows what room is kept as of then."""
    from muster.engine.ignored_fields import visible_events
    from muster.scheduler.simulation.snapshot import scheduler_of

    gates, total = snapshot.feature_gates(), len(snapshot)
    now = time_of(snapshot) if now is None else now

    def through(events: Iterable[ObjectUpdated]) -> Iterable[ObjectUpdated]:
        shown = visible_events(events, gates)
        return shown if progress is None else progress.through(shown, "Taking it in", total)

    scheduler = scheduler_of(snapshot, config_for(snapshot), through, now=now)
    scheduler.adopt_held_seats(now)
    scheduler.adopt_reservations(now)
    return scheduler
