"""The options of an embedded control plane."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.api.gates import DEFAULT, GENERIC_WORKLOAD, FeatureGates


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The simulated nodes: how many, how large, and how many are in a rack and a block."""

    count: int = 0
    cpu: str = "64"
    memory: str = "512Gi"
    gpu: int = 0
    nodes_per_rack: int = 8
    racks_per_block: int = 4
    devices: tuple[str, ...] = ()  # simulated devices of every node, such as gpu:8


@dataclass(frozen=True, slots=True)
class Options:
    """Every component but the API server can be left out. Without `data` nothing is kept."""

    data: Path | None = None
    https: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    kubeconfig: Path | None = None  # written when HTTPS is on and a path is given
    token_file: Path | None = None
    webhook_endpoints: Mapping[str, str] = field(default_factory=dict[str, str])  # namespace/service -> host:port
    controllers: bool = True
    simulated_managers: tuple[str, ...] = ()  # of `muster.controllers.simulated_managers`: jobset, lws
    workloads: bool = True  # groups are made for Jobs, JobSets and the like (needs the controllers)
    scheduler: bool = True
    scheduler_config: Path | None = None
    decision_log: Path | None = None
    decision_log_size: int = 256 << 20
    nodes: NodeOptions = field(default_factory=NodeOptions)
    gates: FeatureGates = DEFAULT
    freeze: bool = True  # exclude what is alive after the start from garbage collection (gc.freeze)
    repeatable_names: bool = False  # generated names and uids follow from the objects, not from chance
    watch_loop: bool = False  # say in the log what holds the event loop
    clock: Callable[[], float] = time.time  # of the API server: creationTimestamp

    @property
    def makes_groups(self) -> bool:
        """Whether pods may be put into groups that the controllers make."""
        return self.workloads and self.controllers and self.gates.enabled(GENERIC_WORKLOAD)
