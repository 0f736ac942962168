"""Placing many pods in one pass gives the result of placing them one by one."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.scheduler.plugins.node_ports import NodePorts
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.taint_toleration import TaintToleration
from muster.scheduler.runtime.bulk_placement import next_nodes
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.feasibility import Feasibility
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.counted_state import (
    PROFILES,
    a_random_cluster,
    often,
)
from tests.build.objects import HOSTNAME, a_node, a_pod, apart
from tests.build.random_objects import random_pod

APART = apart(HOSTNAME, app="web")


def feasibility_of(cluster, pod, *plugins) -> Feasibility:
    evaluator = Evaluator(cluster)
    return evaluator.feasibility(evaluator.shape(pod, Profile("test", plugins) if plugins else default_profile()))


@often
@given(st.integers(0, 2**32), st.sampled_from(PROFILES), st.booleans())
def test_many_at_once_is_the_same_as_one_after_another(seed: int, profile: Profile, masked: bool) -> None:
    draw = Random(seed)
    cluster = a_random_cluster(draw, nodes=draw.randint(1, 12), rules=draw.choice((0, 0.2)))
    pod = random_pod(draw, "new", rules=draw.choice((0, 0.5)))
    shape = evaluator_of(cluster).shape(pod, profile)
    mask = np.array([draw.random() < 0.7 for _ in range(cluster.size)]) if masked else None
    count = draw.randint(1, 60)
    with evaluator_of(cluster).trial() as trial:
        one_by_one: list[int] = []
        while len(one_by_one) < count and (slot := trial.best(shape, mask)) >= 0:
            trial.place(shape, slot)
            one_by_one.append(slot)
        used = cluster.used.copy()
    with evaluator_of(cluster).trial() as trial:
        assert trial.place_many(shape, count, mask) == one_by_one
        assert np.array_equal(cluster.used, used)


def test_a_rule_that_cannot_look_ahead_makes_many_go_one_by_one():
    class Halves(NodeResourcesFit):
        name = "Halves"

        @property
        def can_predict(self) -> bool:
            return False

    cluster = a_cluster(*(a_node(f"n{i}") for i in range(3)))
    plain = evaluator_of(cluster).shape(a_pod(memory="1Gi"), Profile("a", [NodeResourcesFit()]))
    halves = evaluator_of(cluster).shape(a_pod(memory="1Gi"), Profile("b", [Halves()]))
    with evaluator_of(cluster).trial() as trial:
        expected = trial.place_many(plain, 12)
    with evaluator_of(cluster).trial() as trial:
        assert trial.place_many(halves, 12) == expected
    assert len(expected) == 12


def test_pods_alternate_between_equal_nodes_until_these_are_full():
    found = feasibility_of(
        a_cluster(a_node("a", cpu=3), a_node("b", cpu=3)), a_pod(cpu=1, memory="1Gi"), NodeResourcesFit()
    )
    slots = next_nodes(found, 10, None)
    assert slots is not None
    assert np.bincount(slots).tolist() == [3, 3]
    assert all({slots[i], slots[i + 1]} == {0, 1} for i in (0, 2, 4))


def test_the_node_that_scores_higher_comes_first():
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    cluster = a_cluster(*(a_node(name, cpu=8, memory="32Gi") for name in ("empty", "used")))
    cluster.assume(a_pod("running", cpu=4, memory="8Gi"), "used")
    found = feasibility_of(cluster, a_pod(cpu=1, memory="1Gi"), NodeResourcesFit(strategy))
    assert next_nodes(found, 6, None) == [1, 1, 1, 1, 0, 0]


def test_few_pods_and_pods_that_affect_each_other_are_placed_one_by_one():
    cluster = a_cluster(a_node("a"), a_node("b"))
    assert next_nodes(feasibility_of(cluster, a_pod(memory="1Gi")), 3, None) is None
    assert next_nodes(feasibility_of(cluster, a_pod(memory="1Gi")), 4, None) is not None
    assert (
        next_nodes(feasibility_of(cluster, a_pod(memory="1Gi", labels={"app": "web"}, affinity=APART)), 4, None) is None
    )


def test_a_mask_excludes_nodes():
    found = feasibility_of(a_cluster(a_node("a"), a_node("b")), a_pod(cpu=1, memory="1Gi"), NodeResourcesFit())
    assert next_nodes(found, 9, np.array([False, True])) == [1, 1, 1, 1]
    assert next_nodes(found, 9, np.array([False, False])) == []


def test_a_node_with_a_host_port_takes_one_pod():
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    cluster = a_cluster(*(a_node(name) for name in "abc"))
    found = feasibility_of(cluster, a_pod(memory="1Gi", container=port), NodeResourcesFit(), NodePorts())
    assert sorted(next_nodes(found, 9, None) or ()) == [0, 1, 2]


def test_it_stops_when_the_node_is_full_that_scores_are_normalized_by():
    cluster = a_cluster(a_node("soft", cpu=100, pods=1, taints=["x=:PreferNoSchedule"]), a_node("clean", cpu=4))
    plugins, weights = [TaintToleration(), NodeResourcesFit()], {"TaintToleration": 1, "NodeResourcesFit": 50}
    evaluator = Evaluator(cluster)
    found = evaluator.feasibility(
        evaluator.shape(a_pod(cpu=1, memory="1Gi"), Profile("test", plugins, weights=weights))
    )
    assert found.scores_depend_on_feasible_set
    assert next_nodes(found, 9, None) == [0]


def test_more_pods_than_keys_computed_in_advance():
    tiny = [a_node(f"tiny{i}", cpu=1, memory="1Gi") for i in range(10)]
    cluster = a_cluster(a_node("large", cpu=70, memory="70Gi"), a_node("larger", cpu=100, memory="100Gi"), *tiny)
    evaluator = Evaluator(cluster)
    shape = evaluator.shape(a_pod(cpu=1, memory="1Gi"), Profile("test", [NodeResourcesFit()]))
    with evaluator.trial() as trial:
        one_by_one = []
        for _ in range(60):
            one_by_one.append(trial.best(shape))
            trial.place(shape, one_by_one[-1])
    assert next_nodes(evaluator.feasibility(shape), 60, None) == one_by_one
