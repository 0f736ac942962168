"""Why no node is feasible, in the message of kube-scheduler."""

from __future__ import annotations

import numpy as np

from muster.scheduler.framework.plugin import FilterStatus
from muster.scheduler.plugins.node_affinity import NodeAffinity
from muster.scheduler.plugins.node_name import NodeName
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.taint_toleration import TaintToleration
from muster.scheduler.runtime.diagnosis import Diagnosis, diagnose
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import Profile
from tests.build.cluster import a_cluster, asked
from tests.build.objects import a_node, a_pod


def terms(*expressions, fields=()):
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


def required(*found):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(found)}}}


def diagnosis_of(cluster, pod, *plugins) -> Diagnosis:
    return diagnose(Evaluator(cluster).shape(pod, Profile("test", plugins)), cluster, None)


def test_an_empty_cluster_has_no_best_node_and_says_so():
    question = asked(a_cluster(), a_pod())
    assert question.best == ""
    assert question.text == "no nodes available to schedule pods"


def test_the_diagnosis_can_be_limited_to_some_nodes():
    cluster = a_cluster(a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=8))
    question = asked(cluster, a_pod(cpu=2, memory="1Gi"))
    mask = np.array([name != "n2" for name in cluster.names])
    diagnosis = question.trial.diagnose(question.shape, mask)
    assert diagnosis.message_text() == "0/2 nodes are available: 2 Insufficient cpu."
    after = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert diagnosis.message_text(after) == f"0/2 nodes are available: 2 Insufficient cpu. {after}"


def test_a_name_and_terms_for_another_name_cannot_both_be_met():
    pin = terms(fields=[{"key": "metadata.name", "operator": "In", "values": ["n0"]}])
    question = asked(
        a_cluster(a_node("n0"), a_node("n1")),
        a_pod(node="n1", affinity=required(pin)),
        NodeName(),
        NodeAffinity(),
    )
    text = "0/2 nodes are available: node(s) didn't satisfy plugin(s) [NodeName NodeAffinity] simultaneously."
    assert question.text == text


def test_a_node_is_counted_under_the_first_plugin_that_rejects_it():
    cluster = a_cluster(
        a_node("both", cpu=1, taints=["x=:NoSchedule"]),
        a_node("small", cpu=1),
        a_node("tainted", taints=["x=:NoSchedule"]),
    )
    found = diagnosis_of(cluster, a_pod(cpu=2, memory="1Gi"), TaintToleration(), NodeResourcesFit())
    assert found.counts == {"node(s) had untolerated taint(s)": 2, "Insufficient cpu": 1}
    other = diagnosis_of(cluster, a_pod(cpu=2, memory="1Gi"), NodeResourcesFit(), TaintToleration())
    assert other.counts == {"node(s) had untolerated taint(s)": 1, "Insufficient cpu": 2}
    assert found.message_text() == ("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).")


def test_it_names_the_plugins_and_the_resources_that_were_short():
    cluster = a_cluster(a_node("small", cpu=1), a_node("tainted", taints=["x=:NoSchedule"]))
    found = diagnosis_of(cluster, a_pod(cpu=2, memory="1Gi"), TaintToleration(), NodeResourcesFit())
    assert found.rejected_by == {"TaintToleration", "NodeResourcesFit", ("NodeResourcesFit", "cpu")}


def test_unresolvable_nodes_are_those_where_evictions_cannot_help():
    cluster = a_cluster(a_node("small", cpu=1), a_node("full", cpu=2), a_node("tainted", taints=["x=:NoSchedule"]))
    cluster.assume(a_pod("running", cpu=1, memory="1Gi"), "full")
    found = diagnosis_of(cluster, a_pod(cpu=2, memory="1Gi"), TaintToleration(), NodeResourcesFit())
    assert found.unresolvable.tolist() == [True, False, True]


def test_statuses_without_slots_are_left_out():
    found = Diagnosis(2, np.zeros(2, dtype=np.bool_))
    none, some = np.array([], dtype=np.int64), np.array([0, 1])
    found.add([FilterStatus("nothing", none, True, "A"), FilterStatus("some", some, np.array([False, True]), "B")])
    found.add([FilterStatus("some", some, False, ("B", "cpu"))])
    assert found.counts == {"some": 4}
    assert found.rejected_by == {"B", ("B", "cpu")}
    assert found.unresolvable.tolist() == [False, True]


def test_removed_nodes_are_not_counted():
    cluster = a_cluster(a_node("n0", cpu=1), a_node("n1", cpu=1))
    cluster.remove("Node", "", "n0")
    found = diagnosis_of(cluster, a_pod(cpu=2, memory="1Gi"), NodeResourcesFit())
    assert (found.total, found.counts) == (1, {"Insufficient cpu": 1})


def test_nodes_excluded_by_name_are_not_filtered():
    pinned = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [pinned]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    cluster = a_cluster(a_node("n0", cpu=1), a_node("n1", cpu=1))
    found = diagnosis_of(cluster, a_pod(cpu=2, memory="1Gi", affinity=affinity), NodeAffinity(), NodeResourcesFit())
    assert found.counts == {"node(s) didn't satisfy plugin(s) [NodeAffinity]": 1, "Insufficient cpu": 1}
    assert found.unresolvable.tolist() == [True, True]
