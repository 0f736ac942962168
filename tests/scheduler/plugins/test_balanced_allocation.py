"""NodeResourcesBalancedAllocation, with known numbers."""

from __future__ import annotations

from muster.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from tests.build.cluster import a_cluster, asked
from tests.build.objects import a_node, a_pod


def test_balance_is_65_where_a_pod_tilts_an_empty_node():
    cluster = a_cluster(a_node(cpu=4, memory="10Gi"))
    question = asked(cluster, a_pod(cpu=2, memory="1Gi"), NodeResourcesBalancedAllocation())
    assert question.scores() == {"n0": 65}


def test_balance_is_75_where_nothing_changes_and_above_where_it_improves():
    nodes = [a_node(name, cpu=4, memory="32Gi") for name in ("even", "tilted")]
    cluster = a_cluster(*nodes, a_pod("other", cpu=2, memory=None, node="tilted"))
    question = asked(cluster, a_pod(cpu=1, memory="8Gi"), NodeResourcesBalancedAllocation())
    assert question.scores()["even"] == 75
    assert question.scores()["tilted"] >= 75
    better = asked(cluster, a_pod(cpu=None, memory="16Gi"), NodeResourcesBalancedAllocation())
    assert better.scores()["tilted"] == 50 + (50 + 100 - 75) // 2


def test_balance_has_no_say_for_pods_that_request_neither():
    cluster = a_cluster(a_node())
    assert asked(cluster, a_pod(cpu=None, memory=None), NodeResourcesBalancedAllocation()).scores() == {"n0": 0}


def test_balance_over_three_resources_is_the_standard_deviation():
    plugin = NodeResourcesBalancedAllocation(
        {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": "example.com/gpu"}]}
    )
    cluster = a_cluster(
        a_node("n0", cpu=4, memory="4Gi", extended={"example.com/gpu": 4}), a_node("n1", cpu=4, memory="4Gi")
    )
    question = asked(cluster, a_pod(cpu=4, memory="2Gi", requests={"example.com/gpu": 1}), plugin)
    # Shares 1, 0.5, 0.25 deviate by 0.3118 from their mean; without the gpu there are only two shares.
    assert question.scores("n0", "n1") == {"n0": 50 + (50 + 68 - 100) // 2, "n1": 50 + (50 + 75 - 100) // 2}
    for slot in range(2):
        one = plugin.score_one(question.shape, cluster, slot)
        assert one == question.scores("n0", "n1")[cluster.names[slot]]
