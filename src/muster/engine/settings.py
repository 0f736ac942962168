"""How an engine is run, apart from what it decides: concurrency, election, endpoints, the decision log."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path

from muster.api.gates import DEFAULT, FeatureGates
from muster.engine.call_queue import ConcurrencyLimits
from muster.engine.leader_election import Election

# Seldom, because nearly everything a scheduler makes stays; but never so much at once that a collection of the two
# younger generations takes long (a million objects take 200 ms).
GC_THRESHOLDS = (25_000, 4, 1_000)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every field has a value that suits an engine inside `muster up`."""

    gates: FeatureGates = DEFAULT
    limits: ConcurrencyLimits = field(default_factory=ConcurrencyLimits)
    election: Election | None = None  # None: no one else is there to lead
    share_cluster: bool = False  # bind under the lease that Musters share
    workloads: bool = False  # groups are made for Jobs, JobSets and the like, and their pods are in them by themselves
    seed: int = 0
    instance: str = field(default_factory=lambda: f"muster-{socket.gethostname()}")
    decision_log: Path | None = None
    decision_log_size: int = 256 << 20  # bytes of all its segments together
    tune_gc: bool = False  # freeze what the first lists brought, collect seldom
    patience: float = 10.0  # how long a stop waits for binds under way
    most_events: int = 5000  # taken in before the loop lets others run
