"""The planner against brute force: the same answer on thousands of small worlds."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.scheduler.placement.verdict import Infeasible, Placed, Undecided
from muster.scheduler.preemption.resolvability import worth_preempting_for
from tests.build.cluster import evaluator_of
from tests.build.examples import examples
from tests.build.planning import Scene
from tests.build.planning_cases import Small, a_small_world
from tests.promises.planning_oracle import placeable

SAMPLE = 1500
CASES = 2000  # of the long row, in a full run


def check_seats(small: Small, verdict: Placed) -> None:
    """The oracle's own look at a plan: nobody over capacity, everybody where it may be."""
    free = [list(pair) for pair in small.free]
    for seat in verdict.assignments:
        node, kind = int(seat.node[1:]), small.kind_of[seat.uid]
        assert kind.only is None or small.labels[node]["kind"] == kind.only
        free[node][0] -= kind.cpu
        free[node][1] -= kind.memory
    assert all(cpu >= 0 and memory >= 0 for cpu, memory in free)


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_the_verdict_equals_the_oracles(seed: int) -> None:
    small = a_small_world(random.Random(seed))

    verdict = small.scene.plan(small.demand).verdict  # the scene validates plans and checks proofs

    if isinstance(verdict, Placed):
        assert placeable(small)
        check_seats(small, verdict)
        assert worth_preempting_for(small.demand, evaluator_of(small.scene.cluster)), (
            "what can be placed now can be placed at all"
        )
    elif isinstance(verdict, Infeasible):
        assert not placeable(small)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_the_order_in_which_nodes_arrive_changes_nothing(seed: int) -> None:
    small = a_small_world(random.Random(seed))
    nodes = list(small.scene.cluster.node_objects.values())
    mirror = Scene(seed=small.scene.seed, pods=small.scene.pods).nodes(*nodes[::-1])

    here, there = small.scene.plan(small.demand).verdict, mirror.plan(small.demand).verdict

    assert type(here) is type(there)
    if isinstance(here, Placed) and isinstance(there, Placed):
        assert [(s.uid, s.node) for s in here.assignments] == [(s.uid, s.node) for s in there.assignments]


def test_hardly_any_small_world_stays_undecided() -> None:
    rng = random.Random(20)
    worlds = [a_small_world(rng, most_pods=14) for _ in range(SAMPLE // 3)]

    undecided = sum(isinstance(small.scene.plan(small.demand).verdict, Undecided) for small in worlds)

    assert undecided < len(worlds) / 100


def check_worlds(seed: int, cases: int) -> None:
    """So many worlds, one after the other: placed if and only if the oracle can place it."""
    rng = random.Random(seed)
    for number in range(cases):
        small = a_small_world(rng)
        verdict = small.scene.plan(small.demand).verdict
        assert isinstance(verdict, Placed) == placeable(small), f"world {number} of seed {seed}"
        if isinstance(verdict, Placed):
            check_seats(small, verdict)


def test_the_verdict_equals_the_oracles_in_a_long_row_of_worlds() -> None:
    check_worlds(2012, examples(CASES))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_verdict_equals_the_oracles_on_thousands_of_worlds() -> None:
    check_worlds(6012, int(os.environ.get("ORACLE_CASES", str(10 * SAMPLE))))
