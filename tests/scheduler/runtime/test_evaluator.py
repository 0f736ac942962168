"""Which pods share a shape, and which results are cached."""

from __future__ import annotations

import gc

import pytest

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.taint_toleration import TaintToleration
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.objects import a_node, a_pod, apart_from_label

PROFILE = default_profile()


def one_shape(cluster, *pods):
    shapes = [evaluator_of(cluster).shape(pod, PROFILE) for pod in pods]
    return all(shape is shapes[0] for shape in shapes)


def test_only_so_many_shapes_are_cached(monkeypatch):
    monkeypatch.setattr("muster.scheduler.runtime.evaluator._CACHED_SLOTS", 1)
    cluster = a_cluster(a_node())
    for i in range(70):
        evaluator_of(cluster).feasibility(evaluator_of(cluster).shape(a_pod(cpu=f"{i + 1}m"), PROFILE))
    assert len(evaluator_of(cluster)._feasibility) == 64


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
    app = {"container": {"image": "app"}}
    assert one_shape(a_cluster(), a_pod("a", **app), a_pod("b", **app))
    assert not one_shape(a_cluster(), a_pod("a", **app), a_pod("b", **(app | other)))


def test_profiles_do_not_share_shapes():
    cluster = a_cluster()
    assert evaluator_of(cluster).shape(a_pod(), PROFILE) is not evaluator_of(cluster).shape(a_pod(), default_profile())


def test_a_label_splits_shapes_once_a_selector_mentions_it():
    cluster = a_cluster(a_node("n0"), a_node("n1"))
    pods = [a_pod("a", labels={"index": "1"}), a_pod("b", labels={})]
    assert one_shape(cluster, *pods)
    cluster.change("Pod", a_pod("hermit", affinity=apart_from_label("index")))
    assert not one_shape(cluster, *pods)


def test_a_selector_nobody_knew_of_cannot_come_up_in_a_trial():
    cluster = a_cluster(a_node())
    with evaluator_of(cluster).trial(), pytest.raises(RuntimeError):
        evaluator_of(cluster).shape(a_pod(affinity=apart_from_label("index")), PROFILE)


def test_a_shape_nobody_holds_is_forgotten():
    cluster = a_cluster(a_node())
    shape = evaluator_of(cluster).shape(a_pod(affinity=apart_from_label("x")), PROFILE)
    assert list(cluster.pod_counts.carried())
    del shape
    gc.collect()
    assert not list(cluster.pod_counts.carried())


def test_the_feasibility_of_a_shape_is_kept_and_brought_up_to_date():
    cluster = a_cluster(a_node("n0", cpu=1))
    evaluator = Evaluator(cluster)
    shape = evaluator.shape(a_pod(cpu=1, memory="1Gi"), default_profile())
    found = evaluator.feasibility(shape)
    assert found.ok.tolist() == [True]
    cluster.assume(a_pod("running", cpu=1, memory="1Gi"), "n0")
    assert evaluator.feasibility(shape) is found
    assert found.ok.tolist() == [False]


def test_the_shape_that_was_not_used_longest_is_removed_first(monkeypatch):
    monkeypatch.setattr("muster.scheduler.runtime.evaluator._CACHED_SLOTS", 1)
    evaluator = Evaluator(a_cluster(a_node()))
    shapes = [evaluator.shape(a_pod(cpu=f"{i + 1}m"), default_profile()) for i in range(65)]
    first = evaluator.feasibility(shapes[0])
    second = evaluator.feasibility(shapes[1])
    for shape in shapes[2:64]:
        evaluator.feasibility(shape)
    evaluator.feasibility(shapes[0])

    evaluator.feasibility(shapes[64])

    assert evaluator.feasibility(shapes[0]) is first
    assert evaluator.feasibility(shapes[1]) is not second


def test_the_labels_that_a_plugin_reads_split_shapes():
    class Labelled(Plugin):
        name = "Labelled"
        pod_labels = frozenset({"quiet"})

    evaluator = Evaluator(Cluster())
    pods = [a_pod("a", labels={"quiet": "1"}), a_pod("b", labels={"quiet": "2"})]
    plain, labelled = Profile("plain", [NodeResourcesFit()]), Profile("labelled", [NodeResourcesFit(), Labelled()])
    assert evaluator.shape(pods[0], plain) is evaluator.shape(pods[1], plain)
    assert evaluator.shape(pods[0], labelled) is not evaluator.shape(pods[1], labelled)


def test_the_empty_capacity_leaves_out_what_runs_and_nodes_that_are_rejected():
    cluster = a_cluster(a_node("n0", cpu=4), a_node("n1", cpu=4, taints=["x=:NoSchedule"]), a_node("n2", cpu=1, pods=9))
    cluster.assume(a_pod("running", cpu=3, memory="1Gi"), "n0")
    cluster.remove("Node", "", "n2")
    evaluator = Evaluator(cluster)
    shape = evaluator.shape(a_pod(cpu=1, memory="1Gi"), Profile("test", [TaintToleration(), NodeResourcesFit()]))
    assert evaluator.feasibility(shape).seats().tolist() == [1, 0, 0]
    assert evaluator.empty_capacity(shape).tolist() == [4, 0, 0]


def test_a_trial_sees_and_changes_the_cluster_of_the_evaluator():
    cluster = a_cluster(a_node("n0", cpu=2))
    evaluator = Evaluator(cluster)
    shape = evaluator.shape(a_pod(cpu=1, memory="1Gi"), default_profile())
    assert evaluator.independent(shape)
    with evaluator.trial() as trial:
        trial.place(shape, 0)
        assert cluster.locked
        assert evaluator.feasibility(shape).seats().tolist() == [1]
    assert not cluster.locked
    assert evaluator.feasibility(shape).seats().tolist() == [2]
