"""NodeUnschedulable."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.node_unschedulable import NodeUnschedulable
from tests.build.cluster import a_cluster, asked
from tests.build.objects import a_node, a_pod

EXISTS = {"operator": "Exists"}


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
