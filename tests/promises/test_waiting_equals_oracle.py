"""Nobody is forgotten: after any sequence of events a scheduler at rest has decided what a new one would decide.

The new scheduler is given the same objects at the same clock and tries everything once. If it binds, nominates or
judges anything differently, a change that mattered did not wake an entity. The fallback timer, which would hide that,
is switched off. Searches have ended and backoffs are over when the two are compared.
"""

from __future__ import annotations

import os
from math import inf

import pytest

from muster.scheduler.queue import scheduling_queue
from muster.scheduler.queue.entity import EntityState
from tests.build.examples import examples
from tests.build.random_pressure import CrowdedWorld, Deed, Pressure, a_life

SEQUENCES = int(os.environ.get("ORACLE_SEQUENCES", "0"))  # set by `make oracle`
PARTS = 8
UNDECIDED_BEFORE = (("UNSCHEDULABLE", "PlacementNotGuaranteed"), ("UNSCHEDULABLE", "Unschedulable"))
BACKOFFS_OVER = 120.0  # seconds: longer than any backoff, and than an eviction that was refused counts


@pytest.fixture(autouse=True)
def no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_queue, "FALLBACK_SECONDS", inf)


def verdicts(world: CrowdedWorld) -> dict[str, tuple[str, str]]:
    """The state of every entity, and its verdict where a cycle has given one.

    Of an undecided one room that was lost can make an infeasible one; only the fallback timer looks for that.
    """
    tried = (EntityState.UNSCHEDULABLE, EntityState.PREEMPTING)
    return {
        f"{entity.key.kind} {entity.key.name}": (entity.state.name, entity.verdict if entity.state in tried else "")
        for entity in world.scheduler.state.queue.entities.values()
    }


def nominations(world: CrowdedWorld) -> dict[str, str]:
    pods = {name: obj for (kind, _, name), obj in world.objects.items() if kind == "Pod"}
    return {name: pod.status.nominated_node_name for name, pod in pods.items() if pod.status.nominated_node_name}


def difference(deeds: list[Deed]) -> str:
    """What a new scheduler decides otherwise after these deeds; empty if nothing."""
    pressure = Pressure()
    pressure.live(deeds)
    world = pressure.world
    world.wait(BACKOFFS_OVER)
    fresh = world.restarted().wait(BACKOFFS_OVER)
    for what in (CrowdedWorld.bound, verdicts, nominations):
        here, there = what(world), what(fresh)
        keys = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
        keys = [key for key in keys if (here.get(key), there.get(key)) != UNDECIDED_BEFORE]
        if keys:
            return "; ".join(f"{what.__name__} of {key}: {here.get(key)}, new {there.get(key)}" for key in keys)
    return ""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_scheduler_at_rest_has_decided_what_a_new_one_decides(part: int):
    for seed in range(part, SEQUENCES or examples(1000), PARTS):
        found = difference(a_life(seed))
        assert not found, f"sequence {seed}: {found}"
