"""What to start, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from muster.api.gates import DEFAULT, FeatureGates


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The simulated nodes: how many, how large, and how they stand in racks and blocks (0: in none)."""

    count: int = 0
    cpu: str = "32"
    memory: str = "256Gi"
    gpu: int = 0
    nodes_per_rack: int = 0
    racks_per_block: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """Every part can be left out; the API server is always there. Without `data` nothing is kept."""

    data: Path | None = None
    https: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    kubeconfig: Path | None = None  # written when HTTPS is on and a path is given
    token_file: Path | None = None
    controllers: bool = True
    scheduler: bool = True
    scheduler_config: Path | None = None
    nodes: NodeOptions = field(default_factory=NodeOptions)
    gates: FeatureGates = DEFAULT
