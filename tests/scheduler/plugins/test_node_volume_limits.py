"""NodeVolumeLimits."""

from __future__ import annotations

from muster.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from tests.build.cluster import a_zoned_cluster, asked
from tests.build.objects import a_claim, a_csi_node, a_volume, using


def with_volumes(count):
    claims = [a_claim(f"c{i}", volume=f"v{i}") for i in range(count)]
    return [*claims, *(a_volume(f"v{i}", driver="d") for i in range(count))]


def test_a_node_takes_no_more_volumes_than_its_driver_can_attach():
    cluster = a_zoned_cluster(
        *with_volumes(3),
        a_csi_node("a", 1),
        a_csi_node("b", None),
        a_csi_node("nowhere", 0),
        using("c0", name="p0", node="a"),
    )
    question = asked(cluster, using("c1", "c2"), NodeVolumeLimits())
    assert question.nodes == {"b", "none"}
    assert question.text == "0/3 nodes are available: 1 node(s) exceed max volume count."
    assert question.final == set()


def test_a_volume_that_is_attached_already_costs_nothing():
    cluster = a_zoned_cluster(*with_volumes(2), a_csi_node("a", 1), using("c0", name="p0", node="a"))
    assert "a" in asked(cluster, using("c0"), NodeVolumeLimits()).nodes
    assert "a" not in asked(cluster, using("c1"), NodeVolumeLimits()).nodes


def test_two_pods_with_one_claim_attach_it_once():
    cluster = a_zoned_cluster(
        *with_volumes(2), a_csi_node("a", 2), using("c0", name="p0", node="a"), using("c0", name="p1", node="a")
    )
    question = asked(cluster, using("c1"), NodeVolumeLimits())
    assert "a" in question.nodes
    cluster.remove("Pod", "ns", "p0")
    cluster.remove("Pod", "ns", "p1")
    assert cluster.volumes.attached("d").sum() == 0


def test_a_limit_that_goes_away_no_longer_counts():
    cluster = a_zoned_cluster(*with_volumes(1), a_csi_node("a", 0))
    question = asked(cluster, using("c0"), NodeVolumeLimits())
    assert "a" not in question.nodes
    assert not cluster.change("CSINode", a_csi_node("a", 0))
    assert cluster.remove("CSINode", "", "a")
    assert "a" in question.nodes
