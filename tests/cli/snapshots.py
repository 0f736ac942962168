"""Snapshot files for tests, made from the small worlds of the scheduler's tests."""

from __future__ import annotations

import gzip
from pathlib import Path

from muster.scheduler.simulation.snapshot import Snapshot, encode
from tests.build.scheduler import TestWorld


def snapshot_of(world: TestWorld) -> Snapshot:
    objects: dict[str, list] = {}
    for (kind, _, _), obj in world.objects.items():
        objects.setdefault(kind, []).append(obj)
    return Snapshot(objects, ("default-scheduler",), "2026-01-01T00:00:00Z")


def saved(world: TestWorld, path: Path) -> str:
    path.write_bytes(gzip.compress(encode(snapshot_of(world))))
    return str(path)
