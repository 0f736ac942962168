"""A scheduler that has been given the objects of a cluster, so that it can be asked."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import TYPE_CHECKING

from muster.views.failures import ViewFailure

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
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


def scheduler_for(snapshot: Snapshot, progress: Progress | None = None) -> Scheduler:
    """A scheduler that has been given the cluster's objects, and knows what room is kept as of then."""
    from muster.scheduler.cache.run_times import seconds_of
    from muster.scheduler.simulation.snapshot import scheduler_of

    config, total = config_for(snapshot), len(snapshot)
    if progress is None:
        scheduler = scheduler_of(snapshot, config)
    else:
        scheduler = scheduler_of(snapshot, config, lambda events: progress.through(events, "Taking it in", total))
    scheduler.adopt_reservations(seconds_of(snapshot.taken_at) or time.time())
    return scheduler
