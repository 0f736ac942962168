"""NodeAffinity."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.node_affinity import NodeAffinity
from tests.build.cluster import a_cluster, asked
from tests.build.objects import TOPOLOGY_ZONE, a_node, a_pod


def terms(*expressions, fields=()):
    return {"matchExpressions": list(expressions), "matchFields": list(fields)}


def required(*found):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(found)}}}


def preferred(*found):
    wishes = [{"weight": weight, "preference": term} for weight, term in found]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}


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
    cluster = a_cluster(a_node("a", topology_zone="a"), a_node("b", topology_zone="b"), a_node("c", topology_zone="c"))
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


def test_preferred_terms_add_their_weights_and_the_best_node_scores_100():
    cluster = a_cluster(
        a_node("both", topology_zone="a", labels={"x": "1"}), a_node("one", topology_zone="a"), a_node("none")
    )
    wishes = preferred(
        (30, terms({"key": TOPOLOGY_ZONE, "operator": "Exists"})), (10, terms({"key": "x", "operator": "Exists"}))
    )
    assert asked(cluster, a_pod(affinity=wishes), NodeAffinity()).scores() == {"both": 100, "one": 75, "none": 0}


def test_affinity_added_by_the_profile_is_enforced_in_its_own_words():
    plugin = NodeAffinity(
        {"addedAffinity": required(terms({"key": TOPOLOGY_ZONE, "operator": "Exists"}))["nodeAffinity"]}
    )
    question = asked(a_cluster(a_node("n0", topology_zone="a"), a_node("n1")), a_pod(), plugin)
    assert question.nodes == {"n0"}
    assert question.counts == {"node(s) didn't match scheduler-enforced node affinity": 1}
