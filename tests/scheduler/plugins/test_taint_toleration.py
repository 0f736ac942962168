"""TaintToleration."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.taint_toleration import TaintToleration
from tests.build.cluster import a_cluster, asked
from tests.build.objects import a_node, a_pod

EXISTS = {"operator": "Exists"}


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
