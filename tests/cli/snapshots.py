"""Snapshot files for tests, made from the small worlds of the scheduler's tests."""

from __future__ import annotations

import gzip
from pathlib import Path

from muster.scheduler.simulation.snapshot import Snapshot, encode
from muster.views.topology import LEVELS
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def snapshot_of(world: TestWorld) -> Snapshot:
    objects: dict[str, list] = {}
    for (kind, _, _), obj in world.objects.items():
        objects.setdefault(kind, []).append(obj)
    return Snapshot(objects, ("default-scheduler",), "2026-01-01T00:00:00Z")


def saved(world: TestWorld, path: Path) -> str:
    path.write_bytes(gzip.compress(encode(snapshot_of(world))))
    return str(path)


def a_world_with_kept_room() -> TestWorld:
    """A gang that needs the whole of rack r1, where two pods end in ten minutes; the other rack is full for ever."""
    world = a_world()
    world.now = 1_767_225_600.0
    world.add(*[a_node(f"n{i}", cpu=4, labels={LEVELS[2]: f"r{i // 2}"}) for i in range(4)])
    world.add(*[a_pod(f"{i}-{j}", node=f"n{i}") for i in range(2) for j in range(4)])
    world.add(*[a_pod(f"ends-{i}", node=f"n{i}", activeDeadlineSeconds=600) for i in (2, 3)])
    world.add(a_gang("large", 2, topology=LEVELS[2]), *pods(2, group="large", cpu=4))
    world.wait(300)
    return world.add(a_gang("next", 4, created=5), *pods(4, group="next", cpu=1)).run()
