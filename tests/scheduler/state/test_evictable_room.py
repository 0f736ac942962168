"""Evictable room: what pods below a priority take on each node, kept current by the signals."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.preemption.victims import victim_priority
from muster.scheduler.state.evictable_room import EvictableRoom
from tests.build.examples import examples
from tests.build.objects import a_node, a_pod
from tests.build.random_pressure import Pressure, a_life
from tests.build.scheduler import TestWorld, a_world


def cpu_below(world: TestWorld, priority: int) -> int:
    state = world.scheduler.state
    return int(state.evictable.below(priority)[state.cluster.row["cpu"]].sum())


def test_pods_below_the_priority_and_pods_that_leave_count():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_pod("low", node="n0", priority=1), a_pod("high", node="n0", priority=9, cpu=2)).run()
    assert [cpu_below(world, priority) for priority in (1, 2, 10)] == [0, 1000, 3000]
    world.terminate("high")
    assert [cpu_below(world, priority) for priority in (1, 2, 10)] == [2000, 3000, 3000]
    world.reap()
    assert [cpu_below(world, priority) for priority in (1, 2, 10)] == [0, 1000, 1000]


def test_a_pod_counts_once_its_bind_is_answered():
    world = a_world([a_node("n0", cpu=8)]).add(a_pod("low", priority=1))
    binds = world.scheduler.next(world.now)
    assert cpu_below(world, 5) == 0
    for bind in binds:
        world._carry_out(bind)
    assert cpu_below(world, 5) == 1000


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_kept_current_equals_what_is_computed_anew(seed: int):
    pressure = Pressure()
    deeds, state, rng = a_life(seed), pressure.world.scheduler.state, Random(seed)
    for deed in deeds:
        pressure.live([deed])
        if rng.random() < 0.5:
            state.evictable.below(5)
    kept = state.evictable.below(5)
    anew = EvictableRoom(state.cluster, state.forest, state.preemptions, state.signals).below(5)
    assert (kept == anew).all()
    lower = [m for m in state.forest.members.values() if m.uid in state.cluster.pods and victim_priority(m) < 5]
    assert lower or not kept.any() or state.preemptions.leaving()
