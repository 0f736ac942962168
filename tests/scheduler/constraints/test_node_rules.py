"""Node names, cordons, taints and node affinity: who may go where, in which words, and who is liked."""

from __future__ import annotations

import pytest

from muster.scheduler.interface import cluster_events
from muster.scheduler.plugins.node_affinity import NodeAffinity
from muster.scheduler.plugins.node_name import NodeName
from muster.scheduler.plugins.node_unschedulable import NodeUnschedulable
from muster.scheduler.plugins.taint_toleration import TaintToleration
from tests.build.cluster import a_cluster, asked
from tests.build.objects import TOPOLOGY_ZONE, a_node, a_pod

EXISTS = {"operator": "Exists"}


def terms(*expressions, fields=()):
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


def required(*found):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(found)}}}


def preferred(*found):
    wishes = [{"weight": weight, "preference": term} for weight, term in found]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}


def test_a_pod_that_names_its_node_goes_there_only():
    question = asked(a_cluster(a_node("n0"), a_node("n1")), a_pod(node="n1"), NodeName())
    assert question.nodes == {"n1"}
    assert question.counts == {"node(s) didn't satisfy plugin(s) [NodeName]": 1}


def test_a_pod_that_names_an_unknown_node_goes_nowhere():
    question = asked(a_cluster(a_node("n0")), a_pod(node="elsewhere"), NodeName())
    assert question.nodes == set()
    assert question.text == "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeName]."


def test_a_cordoned_node_takes_no_pods():
    question = asked(a_cluster(a_node("n0", unschedulable=True), a_node("n1")), a_pod(), NodeUnschedulable())
    assert question.nodes == {"n1"}
    assert question.text == "0/2 nodes are available: 1 node(s) were unschedulable."
    assert question.final == {"n0"}


@pytest.mark.parametrize(
    "toleration",
    [EXISTS, {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}],
)
def test_a_cordoned_node_takes_pods_that_tolerate_the_cordon(toleration):
    cluster = a_cluster(a_node("n0", unschedulable=True))
    assert asked(cluster, a_pod(tolerations=[toleration]), NodeUnschedulable()).nodes == {"n0"}


@pytest.mark.parametrize(
    ("taint", "tolerations", "goes"),
    [
        ("a=b:NoSchedule", [], False),
        ("a=b:NoExecute", [], False),
        ("a=b:PreferNoSchedule", [], True),
        ("a=b:NoSchedule", [{"key": "a", "value": "b"}], True),
        ("a=b:NoSchedule", [{"key": "a", "value": "c"}], False),
        ("a=b:NoSchedule", [{"key": "a", "operator": "Exists", "effect": "NoExecute"}], False),
        ("a=b:NoSchedule", [EXISTS], True),
    ],
)
def test_a_hard_taint_keeps_away_who_does_not_tolerate_it(taint, tolerations, goes):
    question = asked(a_cluster(a_node("n0", taints=[taint])), a_pod(tolerations=tolerations), TaintToleration())
    assert question.nodes == ({"n0"} if goes else set())
    if not goes:
        assert question.text == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
        assert question.final == {"n0"}


def test_the_node_with_most_soft_taints_scores_0_and_one_without_100():
    two = ["a=:PreferNoSchedule", "b=:PreferNoSchedule"]
    cluster = a_cluster(a_node("clean"), a_node("one", taints=two[:1]), a_node("two", taints=two))
    assert asked(cluster, a_pod(), TaintToleration()).scores() == {"clean": 100, "one": 50, "two": 0}


def test_soft_taints_tolerated_by_a_hard_effect_still_count():
    cluster = a_cluster(a_node("clean"), a_node("soft", taints=["a=:PreferNoSchedule"]))
    tolerant = a_pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule"}])
    assert asked(cluster, tolerant, TaintToleration()).scores() == {"clean": 100, "soft": 0}


def test_soft_taints_are_compared_among_feasible_nodes_only():
    cluster = a_cluster(
        a_node("clean"),
        a_node("soft", taints=["a=:PreferNoSchedule"]),
        a_node("worse", taints=["a=:PreferNoSchedule", "b=:PreferNoSchedule", "c=:NoSchedule"]),
    )
    assert asked(cluster, a_pod(), TaintToleration()).scores() == {"clean": 100, "soft": 0}


def test_a_node_selector_must_match_every_pair():
    cluster = a_cluster(a_node("n0", labels={"a": "1", "b": "2"}), a_node("n1", labels={"a": "1"}))
    question = asked(cluster, a_pod(nodeSelector={"a": "1", "b": "2"}), NodeAffinity())
    assert question.nodes == {"n0"}
    assert question.counts == {"node(s) didn't match Pod's node affinity/selector": 1}
    assert question.final == {"n1"}


@pytest.mark.parametrize(
    ("term", "nodes"),
    [
        (terms({"key": "n", "operator": "In", "values": ["5", "7"]}), {"five"}),
        (terms({"key": "n", "operator": "NotIn", "values": ["5"]}), {"ten", "none"}),
        (terms({"key": "n", "operator": "Exists"}), {"five", "ten"}),
        (terms({"key": "n", "operator": "DoesNotExist"}), {"none"}),
        (terms({"key": "n", "operator": "Gt", "values": ["5"]}), {"ten"}),
        (terms({"key": "n", "operator": "Lt", "values": ["6"]}), {"five"}),
        (terms(), set()),
        (terms(fields=[{"key": "metadata.name", "operator": "In", "values": ["ten"]}]), {"ten"}),
        (terms(fields=[{"key": "metadata.name", "operator": "NotIn", "values": ["ten"]}]), {"five", "none"}),
        (terms(fields=[{"key": "metadata.name", "operator": "Exists"}]), set()),
        (terms(fields=[{"key": "metadata.uid", "operator": "In", "values": ["ten"]}]), set()),
    ],
)
def test_required_terms_choose_nodes(term, nodes):
    cluster = a_cluster(a_node("five", labels={"n": "5"}), a_node("ten", labels={"n": "10"}), a_node("none"))
    assert asked(cluster, a_pod(affinity=required(term)), NodeAffinity()).nodes == nodes


def test_one_of_several_required_terms_is_enough():
    cluster = a_cluster(
        a_node("a", topology_zone="a"),
        a_node("b", topology_zone="b"),
        a_node("c", topology_zone="c"),
    )
    found = [terms({"key": TOPOLOGY_ZONE, "operator": "In", "values": [zone]}) for zone in "ab"]
    assert asked(cluster, a_pod(affinity=required(*found)), NodeAffinity()).nodes == {"a", "b"}


def test_terms_that_pin_names_rule_out_all_other_nodes_beforehand():
    pins = [terms(fields=[{"key": "metadata.name", "operator": "In", "values": [name]}]) for name in ("n0", "n9")]
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(3)))
    question = asked(cluster, a_pod(affinity=required(*pins)), NodeAffinity())
    assert question.nodes == {"n0"}
    assert question.text == "0/3 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."


def test_terms_that_pin_two_names_at_once_conflict():
    both = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]
    question = asked(
        a_cluster(a_node("n0"), a_node("n1")), a_pod(affinity=required(terms(fields=both))), NodeAffinity()
    )
    assert question.text == "0/2 nodes are available: pod affinity terms conflict."
    assert question.nodes == set()
    assert question.final == {"n0", "n1"}


def test_a_name_and_terms_for_another_name_cannot_both_be_met():
    pin = terms(fields=[{"key": "metadata.name", "operator": "In", "values": ["n0"]}])
    question = asked(
        a_cluster(a_node("n0"), a_node("n1")), a_pod(node="n1", affinity=required(pin)), NodeName(), NodeAffinity()
    )
    text = "0/2 nodes are available: node(s) didn't satisfy plugin(s) [NodeName NodeAffinity] simultaneously."
    assert question.text == text


def test_preferred_terms_add_their_weights_and_the_best_node_scores_100():
    cluster = a_cluster(
        a_node("both", labels={TOPOLOGY_ZONE: "a", "x": "1"}),
        a_node("one", topology_zone="a"),
        a_node("none"),
    )
    wishes = preferred(
        (30, terms({"key": TOPOLOGY_ZONE, "operator": "Exists"})), (10, terms({"key": "x", "operator": "Exists"}))
    )
    assert asked(cluster, a_pod(affinity=wishes), NodeAffinity()).scores() == {"both": 100, "one": 75, "none": 0}


def test_affinity_added_by_the_profile_is_enforced_in_its_own_words():
    rule = NodeAffinity(
        {"addedAffinity": required(terms({"key": TOPOLOGY_ZONE, "operator": "Exists"}))["nodeAffinity"]}
    )
    question = asked(a_cluster(a_node("n0", topology_zone="a"), a_node("n1")), a_pod(), rule)
    assert question.nodes == {"n0"}
    assert question.counts == {"node(s) didn't match scheduler-enforced node affinity": 1}


def test_a_changed_label_or_taint_changes_the_answer():
    cluster = a_cluster(a_node("n0"))
    question = asked(cluster, a_pod(nodeSelector={"a": "1"}), NodeAffinity(), TaintToleration())
    assert question.nodes == set()
    assert cluster.change("Node", a_node("n0", labels={"a": "1"})) == {cluster_events.NODE_LABELS}
    assert question.nodes == {"n0"}
    assert cluster.change("Node", a_node("n0", labels={"a": "1"}, taints=["x=:NoSchedule"])) == {
        cluster_events.NODE_TAINTS
    }
    assert question.nodes == set()
