"""The cluster under events: which pods are counted where, and which updates change nothing."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface import cluster_events
from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.counted_state import (
    PROFILES,
    a_random_cluster,
    everything,
    keys,
    often,
    register,
)
from tests.build.objects import a_node, a_pod, apart_from_label
from tests.build.random_objects import random_pod

PROFILE = default_profile()


def cpu(cluster: Cluster, name: str = "n0") -> int:
    return int(cluster.used[0, cluster.index[name]])


def test_a_heartbeat_is_no_news():
    cluster = a_cluster(a_node("n0"))
    before = cluster.usage_log.end
    assert cluster.change("Node", a_node("n0")) == cluster_events.NOTHING
    assert cluster.usage_log.end == before


def test_a_bound_pod_counts_on_its_node():
    cluster = a_cluster(a_node(), a_pod("p", cpu=2, memory=None, node="n0"))
    assert cpu(cluster) == 2000
    assert cluster.used[2, 0] == 1
    assert cluster.nonzero[:, 0].tolist() == [2000, 200 * 1024**2]
    assert [placed.pod.metadata.name for placed in cluster.pods_on(0)] == ["p"]


def test_a_pod_without_a_node_does_not_count():
    cluster = a_cluster(a_node())
    assert cluster.change("Pod", a_pod("p")) == cluster_events.NOTHING
    assert cpu(cluster) == 0
    assert not cluster.pods


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_room(phase):
    cluster = a_cluster(a_node(), a_pod("p", node="n0"))
    assert cluster.change("Pod", a_pod("p", node="n0", phase=phase)) == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0
    assert cluster.change("Pod", a_pod("p", node="n0", phase=phase)) == cluster_events.NOTHING


def test_a_pod_being_deleted_keeps_its_room_until_it_is_gone():
    cluster = a_cluster(a_node(), a_pod("p", node="n0"))
    cluster.change("Pod", a_pod("p", node="n0", deleting=True))
    assert cpu(cluster) == 1000
    assert cluster.remove("Pod", "ns", "p") == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0
    assert cluster.remove("Pod", "ns", "p") == cluster_events.NOTHING


def test_an_update_that_changes_nothing_the_scheduler_reads_is_no_news():
    cluster = a_cluster(a_node(), a_pod("p", node="n0", phase="Pending"))
    before = cluster.usage_log.end
    running = a_pod("p", node="n0", phase="Running", terminationGracePeriodSeconds=5)
    assert cluster.change("Pod", running) == cluster_events.NOTHING
    assert cluster.usage_log.end == before
    assert cluster.pods["pod-p"].pod is running


def test_a_resized_pod_counts_with_its_new_size():
    cluster = a_cluster(a_node(), a_pod("p", cpu=1, node="n0"))
    assert cluster_events.POD_CHANGED in cluster.change("Pod", a_pod("p", cpu=3, node="n0"))
    assert cpu(cluster) == 3000


def test_a_pod_on_an_unknown_node_counts_when_the_node_comes():
    cluster = a_cluster(a_pod("p", node="n0"))
    assert cluster.pods["pod-p"].slot == -1
    cluster.change("Node", a_node("n0"))
    assert cpu(cluster) == 1000


def test_pods_of_a_removed_node_wait_for_it_to_come_back_or_leave():
    cluster = a_cluster(a_node("n0"), a_pod("p", memory="1Gi", node="n0"), a_pod("q", memory="1Gi", node="n0"))
    cluster.remove("Node", "", "n0")
    assert not cluster.used.any()
    cluster.remove("Pod", "ns", "q")
    cluster.change("Node", a_node("n0"))
    assert cpu(cluster) == 1000
    assert set(cluster.pods) == {"pod-p"}


def test_a_pod_that_loses_its_node_no_longer_counts():
    cluster = a_cluster(a_node(), a_pod("p", node="n0"))
    assert cluster.change("Pod", a_pod("p")) == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0


def test_a_new_pod_of_the_same_name_means_that_the_old_one_is_gone():
    cluster = a_cluster(a_node(), a_pod("p", node="n0"))
    again = a_pod("p", node="n0", cpu=2)
    again = msgspec.structs.replace(again, metadata=msgspec.structs.replace(again.metadata, uid="other"))
    cluster.change("Pod", again)
    assert cpu(cluster) == 2000
    assert cluster.remove("Pod", "ns", "p", "pod-p") == cluster_events.NOTHING
    assert cpu(cluster) == 2000
    assert cluster.remove("Pod", "ns", "p", "other") == {cluster_events.POD_GONE}
    assert cpu(cluster) == 0


def test_an_unknown_kind_is_no_news():
    cluster = a_cluster(a_node())
    assert cluster.change("ConfigMap", a_pod()) == cluster_events.NOTHING
    assert cluster.remove("ConfigMap", "ns", "x") == cluster_events.NOTHING


def test_an_assumed_pod_counts_until_it_is_forgotten():
    cluster = a_cluster(a_node())
    cluster.assume(a_pod("p"), "n0")
    assert cpu(cluster) == 1000
    cluster.forget("pod-p")
    assert cpu(cluster) == 0
    cluster.forget("pod-p")


def test_the_watch_confirms_an_assumption_without_counting_twice():
    cluster = a_cluster(a_node())
    cluster.assume(a_pod("p"), "n0")
    cluster.change("Pod", a_pod("p"))
    assert cpu(cluster) == 1000
    before = cluster.usage_log.end
    cluster.change("Pod", a_pod("p", node="n0"))
    assert (cpu(cluster), cluster.usage_log.end) == (1000, before)
    cluster.forget("pod-p")
    assert cpu(cluster) == 1000


def test_a_pod_bound_elsewhere_than_assumed_moves():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    cluster.assume(a_pod("p"), "n0")
    cluster.change("Pod", a_pod("p", node="n1"))
    assert (cpu(cluster, "n0"), cpu(cluster, "n1")) == (0, 1000)


def test_assuming_again_moves_the_pod():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    cluster.assume(a_pod("p"), "n0")
    cluster.assume(a_pod("p"), "n1")
    assert (cpu(cluster, "n0"), cpu(cluster, "n1")) == (0, 1000)


def test_running_pods_are_told_apart_too_once_a_selector_mentions_a_label():
    cluster = a_cluster(a_node("n0"), a_node("n1"), a_pod("a", node="n0", labels={"index": "1"}), a_pod("b", node="n1"))
    assert asked(cluster, a_pod("hermit", affinity=apart_from_label("index"))).nodes == {"n1"}


def test_a_pod_on_an_unknown_node_is_told_apart_before_its_node_comes():
    cluster = a_cluster(a_pod("a", node="n0", labels={"index": "1"}))
    hermit = a_pod("hermit", affinity=apart_from_label("index"))
    evaluator_of(cluster).shape(hermit, PROFILE)
    cluster.change("Node", a_node("n0"))
    assert asked(cluster, hermit).nodes == set()


@often
@given(st.integers(0, 2**32))
def test_assuming_many_pods_counts_as_assuming_them_in_turn(seed: int) -> None:
    at_once, in_turn = a_random_cluster(Random(seed)), a_random_cluster(Random(seed))
    draw = Random(seed)
    pods = [random_pod(draw, f"p{draw.randrange(12)}", rules=0.5) for _ in range(draw.randint(1, 12))]
    seats = [(pod, f"n{draw.randrange(8)}") for pod in pods]  # two of the nodes do not exist
    for cluster in (at_once, in_turn):
        for pod in pods:
            cluster.change("Pod", pod)
            evaluator_of(cluster).feasibility(evaluator_of(cluster).shape(pod, PROFILES[0]))

    at_once.assume_many([(pod, at_once.footprint(pod), node) for pod, node in seats])
    for pod, node in seats:
        in_turn.assume(pod, node)

    assert everything(at_once) == everything(in_turn)
    assert register(at_once) == register(in_turn)
    shapes = [[evaluator_of(cluster).shape(pod, PROFILES[0]) for pod in pods] for cluster in (at_once, in_turn)]
    assert keys(at_once, shapes[0]) == keys(in_turn, shapes[1])
