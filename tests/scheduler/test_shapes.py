"""Which pods are one shape, and what splits them."""

from __future__ import annotations

import gc

import pytest

from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import HOSTNAME, a_node, a_pod

PROFILE = default_profile()


def one_shape(cluster, *pods):
    shapes = [evaluator_of(cluster).shape(pod, PROFILE) for pod in pods]
    return all(shape is shapes[0] for shape in shapes)


def looking_at(key):
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_of_an_indexed_job_are_one_shape():
    pods = [a_pod(f"job-{i}", labels={"job-completion-index": str(i)}) for i in range(5)]
    assert one_shape(a_cluster(), *pods)


def test_a_random_volume_name_does_not_split_a_shape():
    pods = [a_pod(f"p{i}", volumes=[{"name": f"kube-api-access-{i}"}]) for i in range(2)]
    assert one_shape(a_cluster(), *pods)


def test_the_order_of_labels_and_selectors_does_not_split_a_shape():
    cluster = a_cluster()
    first = a_pod("a", nodeSelector={"x": "1", "y": "2"}, requests={"example.com/gpu": 1})
    second = a_pod("b", nodeSelector={"y": "2", "x": "1"}, requests={"example.com/gpu": 1})
    assert one_shape(cluster, first, second)


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": 2},
        {"namespace": "other"},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"node": "n0"},
        {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"owner": "ReplicaSet/web"},
        {"container": {"image": "other"}},
        {"hostNetwork": True},
    ],
)
def test_whatever_scheduling_looks_at_splits_a_shape(other):
    assert not one_shape(a_cluster(), a_pod("a"), a_pod("b", **other))


def test_profiles_do_not_share_shapes():
    cluster = a_cluster()
    assert evaluator_of(cluster).shape(a_pod(), PROFILE) is not evaluator_of(cluster).shape(a_pod(), default_profile())


def test_a_label_splits_shapes_once_a_selector_mentions_it():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    pods = [a_pod("a", labels={"index": "1"}), a_pod("b", labels={})]
    assert one_shape(cluster, *pods)
    cluster.change("Pod", a_pod("hermit", affinity=looking_at("index")))
    assert not one_shape(cluster, *pods)


def test_running_pods_are_told_apart_too_once_a_selector_mentions_a_label():
    cluster = a_cluster(a_node("n0"), a_node("n1"), a_pod("a", node="n0", labels={"index": "1"}), a_pod("b", node="n1"))
    assert asked(cluster, a_pod("hermit", affinity=looking_at("index"))).nodes == {"n1"}


def test_a_pod_on_an_unknown_node_is_told_apart_before_its_node_comes():
    cluster = a_cluster(a_pod("a", node="n0", labels={"index": "1"}))
    hermit = a_pod("hermit", affinity=looking_at("index"))
    evaluator_of(cluster).shape(hermit, PROFILE)
    cluster.change("Node", a_node("n0"))
    assert asked(cluster, hermit).nodes == set()


def test_a_selector_nobody_knew_of_cannot_come_up_in_a_trial():
    cluster = a_cluster(a_node())
    with evaluator_of(cluster).trial(), pytest.raises(RuntimeError):
        evaluator_of(cluster).shape(a_pod(affinity=looking_at("index")), PROFILE)


def test_requests_cover_every_resource_known_by_now():
    cluster = a_cluster(a_node())
    shape = evaluator_of(cluster).shape(a_pod(cpu=1, memory="1Mi"), PROFILE)
    assert shape.request_vector(cluster).tolist() == [1000, 1024**2, 1]
    cluster.change("Node", a_node("n1", extended={"example.com/gpu": 2}))
    assert shape.request_vector(cluster).tolist() == [1000, 1024**2, 1, 0]
    assert "like ns/pod" in repr(shape)


def test_a_shape_nobody_holds_is_forgotten():
    cluster = a_cluster(a_node())
    shape = evaluator_of(cluster).shape(a_pod(affinity=looking_at("x")), PROFILE)
    assert list(cluster.pod_counts.carried())
    del shape
    gc.collect()
    assert not list(cluster.pod_counts.carried())


def test_a_tally_nobody_reads_is_left_out_of_its_classes():
    cluster = a_cluster(a_node("n0"), a_pod("seen", node="n0", labels={"x": "1"}))
    question = asked(cluster, a_pod(affinity=looking_at("x")))
    assert question.nodes == set()
    seen = cluster.pods["pod-seen"].footprint.label_class
    assert len(seen.counts) == 1
    evaluator_of(cluster)._feasibility.clear()
    del question
    gc.collect()
    cluster.change("Pod", a_pod("again", node="n0", labels={"x": "1"}))
    assert seen.counts == []
