"""Nobody is forgotten: after any sequence of events a scheduler at rest has decided what a new one would decide.

The new scheduler is given the same objects at the same clock and tries everything once. If it binds, nominates, keeps
room for or judges anything differently, a change that mattered did not wake an entity. Searches have ended and backoffs
are over when the two are compared. The fallback timer, which would hide a difference, runs out only after that. It must
find nothing then: what it finds is a fault.
"""

from __future__ import annotations

import os

import pytest

from muster.scheduler.queue import scheduling_queue
from muster.scheduler.queue.entity import EntityState
from tests.build.examples import examples
from tests.build.random_pressure import CrowdedWorld, Deed, Pressure, a_life, a_tense_life

SEQUENCES = int(os.environ.get("ORACLE_SEQUENCES", "0"))  # set by `make oracle`
PARTS = 32  # so that each ends in time, also with coverage on a busy machine
UNDECIDED, INFEASIBLE = ("UNSCHEDULABLE", "PlacementNotGuaranteed"), ("UNSCHEDULABLE", "Unschedulable")
BACKOFFS_OVER = 120.0  # seconds: longer than any backoff, and than an eviction that was refused counts
FALLBACK_SECONDS = 10_000.0  # longer than any life


@pytest.fixture(autouse=True)
def late_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_queue, "FALLBACK_SECONDS", FALLBACK_SECONDS)


def verdicts(world: CrowdedWorld) -> dict[str, tuple[str, str]]:
    """The state of every entity, and its verdict where a cycle has given one."""
    tried = (EntityState.UNSCHEDULABLE, EntityState.PREEMPTING)
    return {
        f"{entity.key.kind} {entity.key.name}": (entity.state.name, entity.reason if entity.state in tried else "")
        for entity in world.scheduler.state.queue.entities.values()
    }


def nominations(world: CrowdedWorld) -> dict[str, str]:
    pods = {name: obj for (kind, _, name), obj in world.objects.items() if kind == "Pod"}
    return {name: pod.status.nominated_node_name for name, pod in pods.items() if pod.status.nominated_node_name}


def reservations(world: CrowdedWorld) -> dict[str, list[str]]:
    """The nodes on which room is kept, one for each seat."""
    return {kept.entity.name: sorted(node for _, node in kept.seats) for kept in world.scheduler.state.reservations}


def difference(deeds: list[Deed], *, plain: bool = True) -> str:
    """What a new scheduler decides otherwise after these deeds, or the timer finds; empty if nothing."""
    pressure = Pressure(plain=plain)
    pressure.live(deeds)
    world = pressure.settle(BACKOFFS_OVER)
    objects = world.restarted()
    fresh = objects.restarted()
    for each in (world, fresh):
        each.wait(BACKOFFS_OVER)
    if any(verdicts(world).get(key) == INFEASIBLE for key, found in verdicts(fresh).items() if found == UNDECIDED):
        # Known from a time when less search told. The new one is to find out, however long it takes.
        fresh = objects.restarted(patient=True)
        fresh.wait(BACKOFFS_OVER)
    for what in (CrowdedWorld.bound, verdicts, nominations, reservations):
        here, there = what(world), what(fresh)
        keys = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
        if keys:
            return "; ".join(f"{what.__name__} of {key}: {here.get(key)}, new {there.get(key)}" for key in keys)
    world.wait(FALLBACK_SECONDS)
    missed = world.scheduler.take_missed()
    return f"the timer found {missed}" if missed else ""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_scheduler_at_rest_has_decided_what_a_new_one_decides(part: int):
    for seed in range(part, SEQUENCES or examples(1000), PARTS):
        found = difference(a_life(seed))
        assert not found, f"sequence {seed}: {found}"


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_where_most_pods_wait_for_others_to_leave(part: int, plain: bool):
    for seed in range(part, (SEQUENCES or examples(1000)) // 10, PARTS):
        found = difference(a_tense_life(seed), plain=plain)
        assert not found, f"tense sequence {seed}, {plain=}: {found}"
