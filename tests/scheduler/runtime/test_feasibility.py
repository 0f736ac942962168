"""Feasible nodes and scores of a shape stay equal to those computed from scratch."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface import cluster_events
from muster.scheduler.plugins.node_affinity import NodeAffinity
from muster.scheduler.plugins.node_ports import NodePorts
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.taint_toleration import TaintToleration
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.feasibility import Feasibility
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.counted_state import (
    PROFILES,
    a_random_cluster,
    often,
)
from tests.build.examples import examples
from tests.build.objects import a_node, a_pod
from tests.build.random_objects import random_pod

PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}


def computed(cluster: Cluster, shape) -> Feasibility:
    """The feasibility of a shape computed from scratch."""
    found = Feasibility(shape, cluster)
    found.refresh()
    return found


def same(one: Feasibility, other: Feasibility) -> bool:
    arrays = ("ok", "node_ok", "base", "total", "normalized_total", "key")
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    return equal and np.array_equal(one.seats(), other.seats())


def _random_node(draw: Random, number: int):
    taints = draw.choice(((), (), ["x=:PreferNoSchedule"], ["x=:NoSchedule"]))
    return a_node(f"n{number}", cpu=draw.choice((1, 4)), taints=taints)


def _change(draw: Random, cluster: Cluster, step: int, only_pods: bool) -> None:
    match draw.randrange(4):
        case 0 if not only_pods:
            cluster.change("Node", _random_node(draw, draw.randrange(cluster.size + 2)))
        case 1 if cluster.pods:
            cluster.forget(draw.choice(sorted(cluster.pods)))
        case 2 if cluster.count > 1 and not only_pods:
            cluster.remove("Node", "", draw.choice(sorted(cluster.index)))
        case _:
            node = draw.choice(sorted(cluster.index))
            cluster.assume(a_pod(f"p{step}-{draw.randrange(10**6)}", cpu=draw.choice((1, 2)), memory="1Gi"), node)


def test_a_cache_that_fell_too_far_behind_the_log_is_built_anew():
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(4)))
    question = asked(cluster, a_pod(cpu=2, memory="1Gi"))
    assert len(question.nodes) == 4
    footprint = cluster.footprint(a_pod("other", cpu=3, memory="1Gi"))
    for turn in range(70_000):
        cluster.add_usage(footprint, turn % 4, 1 if turn % 8 < 4 else -1)
    cluster.add_usage(footprint, 0, 1)
    assert question.nodes == {"n1", "n2", "n3"}


def test_caches_grow_with_the_cluster():
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(100)))
    pod = a_pod(memory="1Gi", tolerations=[{"key": "x", "operator": "Exists", "effect": "NoSchedule"}])
    question = asked(cluster, pod)
    assert len(question.nodes) == 100
    assert question.trial.seats(question.shape).sum() == 400
    more = [a_node("soft", cpu=2, taints=["x=:PreferNoSchedule"]), a_node("hard", taints=["y=:NoSchedule"])]
    for node in more:
        cluster.change("Node", node)
    fresh = asked(a_cluster(*(a_node(f"n{i}") for i in range(100)), *more), pod)
    assert question.nodes == fresh.nodes
    assert question.scores() == fresh.scores()
    assert question.best == fresh.best
    assert question.trial.seats(question.shape).sum() == 402


@often
@given(st.integers(0, 2**32))
def test_seats_of_an_independent_shape_are_exactly_what_fits(seed: int) -> None:
    draw = Random(seed)
    cluster = a_random_cluster(draw, rules=0)
    shape = evaluator_of(cluster).shape(random_pod(draw, "new", rules=0.3), PROFILES[0])
    if not evaluator_of(cluster).independent(shape):
        return
    with evaluator_of(cluster).trial() as trial:
        for slot, seats in enumerate(trial.seats(shape)[:3].tolist()):
            mark = trial.mark()
            placed = 0
            while placed < 200 and trial.feasible(shape)[slot]:
                trial.place(shape, slot)
                placed += 1
            assert placed == min(seats, 200)
            trial.undo(mark)


def test_a_changed_label_or_taint_changes_the_answer():
    cluster = a_cluster(a_node("n0"))
    question = asked(cluster, a_pod(memory="1Gi", nodeSelector={"a": "1"}), NodeAffinity(), TaintToleration())
    assert question.nodes == set()
    assert cluster.change("Node", a_node("n0", labels={"a": "1"})) == {cluster_events.NODE_LABELS}
    assert question.nodes == {"n0"}
    assert cluster.change("Node", a_node("n0", labels={"a": "1"}, taints=["x=:NoSchedule"])) == {
        cluster_events.NODE_TAINTS
    }
    assert question.nodes == set()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_recomputed_for_changed_nodes_equals_what_is_computed_from_scratch(seed: int):
    draw = Random(seed)
    cluster = a_cluster(*(_random_node(draw, i) for i in range(draw.choice((3, 40)))))
    evaluator = Evaluator(cluster)
    tolerations = draw.choice(([], [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}]))
    pod = a_pod(memory="1Gi", container={"image": "app"}, tolerations=tolerations)
    shape = evaluator.shape(pod, default_profile())
    for step in range(12):
        only_pods = draw.random() < 0.5
        for _ in range(draw.choice((1, 1, 3, 12, 30))):
            _change(draw, cluster, step, only_pods)
        assert same(evaluator.feasibility(shape), computed(cluster, shape))


def test_nodes_with_room_are_feasible_and_their_key_orders_them():
    cluster = a_cluster(a_node("small", cpu=1), a_node("large", cpu=8), a_node("full", cpu=1))
    cluster.assume(a_pod("running", cpu=1, memory="1Gi"), "full")
    evaluator = Evaluator(cluster)
    found = evaluator.feasibility(evaluator.shape(a_pod(cpu=1, memory="1Gi"), Profile("test", [NodeResourcesFit()])))
    assert found.ok.tolist() == [True, True, False]
    assert found.key[2] == -1
    assert found.key.argmax() == cluster.index["large"]
    assert found.seats().tolist() == [1, 8, 0]


def test_the_scores_of_all_nodes_change_when_the_node_they_are_normalized_by_becomes_full():
    soft = ["a=:PreferNoSchedule", "b=:PreferNoSchedule"]
    cluster = a_cluster(a_node("clean"), a_node("one", taints=soft[:1]), a_node("two", cpu=1, taints=soft))
    evaluator = Evaluator(cluster)
    shape = evaluator.shape(a_pod(cpu=1, memory="1Gi"), Profile("test", [TaintToleration(), NodeResourcesFit()]))
    assert evaluator.feasibility(shape).normalized_total.tolist() == [300, 150, 0]
    assert evaluator.feasibility(shape).scores_depend_on_feasible_set
    cluster.assume(a_pod("running", cpu=1, memory="1Gi"), "two")
    assert evaluator.feasibility(shape).normalized_total.tolist()[:2] == [300, 0]


def test_scores_are_normalized_among_the_slots_that_are_asked_for():
    soft = ["a=:PreferNoSchedule", "b=:PreferNoSchedule"]
    cluster = a_cluster(a_node("clean"), a_node("one", taints=soft[:1]), a_node("two", taints=soft))
    evaluator = Evaluator(cluster)
    found = evaluator.feasibility(evaluator.shape(a_pod(memory="1Gi"), Profile("test", [TaintToleration()])))
    assert found.totals(slice(0, 3)).tolist() == [300, 150, 0]
    assert found.totals(np.array([0, 1])).tolist() == [300, 0]


def test_a_shape_whose_filters_couple_pods_is_not_independent():
    cluster = a_cluster(a_node())
    evaluator = Evaluator(cluster)
    profile = Profile("test", [NodePorts(), NodeResourcesFit()])
    assert evaluator.feasibility(evaluator.shape(a_pod(memory="1Gi"), profile)).independent
    assert not evaluator.feasibility(evaluator.shape(a_pod(memory="1Gi", container=PORT), profile)).independent


def test_seats_are_a_copy_and_follow_the_usage():
    cluster = a_cluster(*(a_node(f"n{i}", cpu=4) for i in range(9)))
    evaluator = Evaluator(cluster)
    shape = evaluator.shape(a_pod(cpu=1, memory="1Gi"), Profile("test", [NodeResourcesFit()]))
    evaluator.feasibility(shape).seats()[:] = 99
    cluster.assume(a_pod("running", cpu=3, memory="1Gi"), "n2")
    assert evaluator.feasibility(shape).seats().tolist() == [4, 4, 1, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("blocked", [False, True])
def test_a_pod_that_a_pre_filter_rejects_fits_no_node(blocked):
    cluster = a_cluster(a_node())
    claims = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}] if blocked else []
    evaluator = Evaluator(cluster)
    found = evaluator.feasibility(evaluator.shape(a_pod(memory="1Gi", volumes=claims), default_profile()))
    assert found.ok.tolist() == [not blocked]
