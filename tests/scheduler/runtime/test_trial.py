"""Trials: every step is undone exactly."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.counted_state import (
    PROFILES,
    a_random_cluster,
    everything,
    keys,
    often,
)
from tests.build.objects import a_claim, a_class, a_node, a_pod, a_volume, using
from tests.build.random_objects import random_pod


def _something(draw: Random, cluster: Cluster, trial, shapes, marks) -> None:
    shape = draw.choice(shapes)
    match draw.randrange(10):
        case 9:
            trial.keep_room(shape, draw.randrange(cluster.size), draw.choice((1, 1, 3)))
        case 8:
            slots = np.array(draw.sample(range(cluster.size), min(cluster.size, draw.choice((1, 6)))))
            trial.place_counts(shape, slots, np.array([draw.choice((1, 3)) for _ in slots]))
        case 0:
            trial.place(shape, draw.randrange(cluster.size), draw.choice((1, 1, 3)))
        case 1:
            trial.place_many(shape, draw.choice((1, 5, 20)))
        case 2:
            staying = sorted(cluster.pods.keys() - trial.evicted)
            if staying:
                trial.evict(draw.choice(staying))
        case 3 if trial.evicted:
            trial.restore(draw.choice(sorted(trial.evicted)))
        case 6:
            staying = sorted(cluster.pods.keys() - trial.evicted)
            trial.evict_all(draw.sample(staying, draw.randint(0, len(staying))))
        case 7:
            trial.restore_all(draw.sample(sorted(trial.evicted), draw.randint(0, len(trial.evicted))))
        case 4:
            marks.append((trial.mark(), everything(cluster)))
        case 5 if marks:
            mark, then = marks.pop()
            trial.undo(mark)
            assert everything(cluster) == then
        case _:
            slot = trial.best(shape)
            if slot >= 0:
                trial.place(shape, slot)
                trial.unplace(shape, slot)


@often
@given(st.integers(0, 2**32))
def test_a_trial_leaves_every_count_and_every_cached_key_as_it_was(seed: int) -> None:
    draw = Random(seed)
    cluster = a_random_cluster(draw)
    pods = [random_pod(draw, f"new{i}", rules=0.5) for i in range(3)]
    for pod in pods:
        cluster.change("Pod", pod)
    shapes = [evaluator_of(cluster).shape(pod, PROFILES[0]) for pod in pods]
    for shape in shapes:
        evaluator_of(cluster).feasibility(shape).totals(np.arange(cluster.size))
    before, cached = everything(cluster), keys(cluster, shapes)
    with evaluator_of(cluster).trial() as trial:
        marks: list[tuple[int, dict[str, object]]] = []
        for _ in range(15):
            _something(draw, cluster, trial, shapes, marks)
    assert everything(cluster) == before
    assert keys(cluster, shapes) == cached


@often
@given(st.integers(0, 2**32))
def test_a_trial_leaves_claims_and_kept_volumes_as_they_were(seed: int) -> None:
    draw = Random(seed)
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = a_cluster(*(a_node(f"n{i}", topology_zone="ab"[i % 2]) for i in range(4)), local)
    for i in range(5):
        cluster.change(
            "PersistentVolume", a_volume(f"v{i}", zone=draw.choice("ab"), size=draw.choice(("10Gi", "30Gi")))
        )
        cluster.change("PersistentVolumeClaim", a_claim(f"c{i}"))
    for i in range(2):
        cluster.assume(using(f"c{i}", memory="1Gi", name=f"p{i}"), f"n{draw.randrange(4)}")
    if draw.random() < 0.5:
        cluster.forget("pod-p0")
    pods = [using(f"c{i}", *(["c4"] if draw.random() < 0.3 else []), memory="1Gi", name=f"q{i}") for i in range(4)]
    shapes = [evaluator_of(cluster).shape(pod, PROFILES[0]) for pod in pods]
    before, cached = everything(cluster), keys(cluster, shapes)
    with evaluator_of(cluster).trial() as trial:
        marks: list[tuple[int, dict[str, object]]] = []
        for _ in range(12):
            _something(draw, cluster, trial, shapes, marks)
    assert everything(cluster) == before
    assert keys(cluster, shapes) == cached


@often
@given(st.integers(0, 2**32))
def test_evicting_many_at_once_is_the_same_as_one_after_another(seed: int) -> None:
    draw = Random(seed)
    cluster = a_random_cluster(draw, nodes=draw.randint(1, 6), rules=draw.choice((0, 0.2)))
    shape = evaluator_of(cluster).shape(random_pod(draw, "new", rules=draw.choice((0, 0.5))), PROFILES[0])
    uids = sorted(cluster.pods)
    victims = draw.sample(uids, draw.randint(0, len(uids)))
    back = draw.sample(victims, draw.randint(0, len(victims)))
    with evaluator_of(cluster).trial() as trial:
        for uid in victims:
            trial.evict(uid)
        for uid in back:
            trial.restore(uid)
        seats, expected, evicted = trial.seats(shape).tolist(), everything(cluster), set(trial.evicted)
    with evaluator_of(cluster).trial() as trial:
        trial.evict_all(victims)
        trial.restore_all(back)
        assert trial.seats(shape).tolist() == seats
        assert everything(cluster) == expected
        assert trial.evicted == evicted


def test_a_pod_is_evicted_once_and_restored_once() -> None:
    cluster = a_cluster(a_node("n0"))
    cluster.change("Pod", a_pod("p", node="n0"))
    (uid,) = cluster.pods
    with evaluator_of(cluster).trial() as trial:
        for wrong in (lambda: trial.restore_all([uid]), lambda: trial.evict_all([uid, uid])):
            with pytest.raises(ValueError, match=uid):
                wrong()


@often
@given(st.integers(0, 2**32))
def test_decisions_do_not_depend_on_the_order_in_which_nodes_came(seed: int) -> None:
    draw = Random(seed)
    nodes = [a_node(f"n{i}", topology_zone=draw.choice("ab"), cpu=draw.choice((2, 4))) for i in range(8)]
    first, second = a_cluster(*nodes), a_cluster(*draw.sample(nodes, 8))
    answers = []
    for cluster in (first, second):
        shape = evaluator_of(cluster).shape(a_pod(memory="1Gi"), PROFILES[0])
        with evaluator_of(cluster).trial() as trial:
            answers.append([cluster.names[slot] for slot in trial.place_many(shape, 20)])
    assert answers[0] == answers[1]


def test_only_one_trial_is_open_at_a_time():
    cluster = a_cluster(a_node())
    with (
        evaluator_of(cluster).trial(),
        pytest.raises(RuntimeError, match="open already"),
        evaluator_of(cluster).trial(),
    ):
        pass


def test_the_cluster_does_not_change_under_a_trial():
    cluster = a_cluster(a_node(), a_pod("running", node="n0"))
    with evaluator_of(cluster).trial():
        for attempt in (
            lambda: cluster.change("Pod", a_pod("other", node="n0")),
            lambda: cluster.remove("Pod", "ns", "running"),
            lambda: cluster.assume(a_pod("other"), "n0"),
            lambda: cluster.forget("pod-running"),
        ):
            with pytest.raises(RuntimeError, match="while a trial is open"):
                attempt()


def test_a_trial_that_ends_in_an_error_is_undone_too():
    cluster = a_cluster(a_node())
    question = asked(cluster, a_pod(memory="1Gi"))
    with pytest.raises(KeyError), evaluator_of(cluster).trial() as trial:
        trial.place(question.shape, 0, 3)
        trial.evict("nobody")
    assert not cluster.used.any()
    with evaluator_of(cluster).trial() as trial:
        assert trial.best(question.shape) == 0


def test_evicting_makes_room_and_restoring_takes_it_back():
    cluster = a_cluster(a_node(cpu=4), a_pod("running", cpu=3, memory="1Gi", node="n0"))
    question = asked(cluster, a_pod(cpu=2, memory="1Gi"))
    with evaluator_of(cluster).trial() as trial:
        assert trial.best(question.shape) == -1
        trial.evict("pod-running")
        with pytest.raises(ValueError, match="evicted already"):
            trial.evict("pod-running")
        assert trial.best(question.shape) == 0
        trial.restore("pod-running")
        assert trial.best(question.shape) == -1


def test_a_pod_whose_node_is_unknown_can_be_evicted_without_effect():
    cluster = a_cluster(a_node(), a_pod("lost", memory="1Gi", node="gone"))
    with evaluator_of(cluster).trial() as trial:
        trial.evict("pod-lost")
        trial.restore("pod-lost")
        assert not cluster.used.any()


def test_a_mask_limits_the_choice_and_the_comparison():
    cluster = a_cluster(
        a_node("clean"),
        a_node("soft", taints=["a=:PreferNoSchedule"]),
        a_node("softer", taints=["a=:PreferNoSchedule"]),
    )
    question = asked(cluster, a_pod(memory="1Gi"))
    with evaluator_of(cluster).trial() as trial:
        assert cluster.names[trial.best(question.shape)] == "clean"
        mask = np.array([name != "clean" for name in cluster.names])
        assert cluster.names[trial.best(question.shape, mask)] in ("soft", "softer")
        assert trial.best(question.shape, np.zeros(3, dtype=np.bool_)) == -1


def test_the_seed_decides_between_equal_nodes():
    nodes = [a_node(f"n{i}") for i in range(20)]
    winners = {
        asked(a_cluster(*nodes, seed=seed), a_pod(memory="1Gi"), *default_profile().plugins).best for seed in range(8)
    }
    assert len(winners) > 1
