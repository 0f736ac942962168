"""NodeName."""

from __future__ import annotations

from muster.scheduler.plugins.node_name import NodeName
from tests.build.cluster import a_cluster, asked
from tests.build.objects import a_node, a_pod


def test_a_pod_that_names_its_node_goes_there_only():
    question = asked(a_cluster(a_node("n0"), a_node("n1")), a_pod(node="n1"), NodeName())
    assert question.nodes == {"n1"}
    assert question.counts == {"node(s) didn't satisfy plugin(s) [NodeName]": 1}


def test_a_pod_that_names_an_unknown_node_goes_nowhere():
    question = asked(a_cluster(a_node("n0")), a_pod(node="elsewhere"), NodeName())
    assert question.nodes == set()
    assert question.text == "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeName]."
