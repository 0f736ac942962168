"""NodeVolumeLimits."""

from __future__ import annotations

from muster.api import types
from muster.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from tests.scheduler.plugins.builders import (
    a_claim,
    a_cluster,
    a_node,
    a_volume,
    asked,
    of,
    using,
)


def zones(*objects):
    return a_cluster(a_node("a", zone="a"), a_node("b", zone="b"), a_node("none"), *objects)


def limits(node, count, driver="d"):
    entry = {"name": driver, "nodeID": node} | ({"allocatable": {"count": count}} if count is not None else {})
    return of(types.CSINode, {"metadata": {"name": node}, "spec": {"drivers": [entry]}})


def with_volumes(count):
    claims = [a_claim(f"c{i}", volume=f"v{i}") for i in range(count)]
    return [*claims, *(a_volume(f"v{i}", driver="d") for i in range(count))]


def test_a_node_takes_no_more_volumes_than_its_driver_can_attach():
    cluster = zones(
        *with_volumes(3), limits("a", 1), limits("b", None), limits("nowhere", 0), using("c0", name="p0", on="a")
    )
    question = asked(cluster, using("c1", "c2"), NodeVolumeLimits())
    assert question.nodes == {"b", "none"}
    assert question.text == "0/3 nodes are available: 1 node(s) exceed max volume count."
    assert question.final == set()


def test_a_volume_that_is_attached_already_costs_nothing():
    cluster = zones(*with_volumes(2), limits("a", 1), using("c0", name="p0", on="a"))
    assert "a" in asked(cluster, using("c0"), NodeVolumeLimits()).nodes
    assert "a" not in asked(cluster, using("c1"), NodeVolumeLimits()).nodes


def test_two_pods_with_one_claim_attach_it_once():
    cluster = zones(*with_volumes(2), limits("a", 2), using("c0", name="p0", on="a"), using("c0", name="p1", on="a"))
    question = asked(cluster, using("c1"), NodeVolumeLimits())
    assert "a" in question.nodes
    cluster.remove("Pod", "ns", "p0")
    cluster.remove("Pod", "ns", "p1")
    assert cluster.volumes.attached("d").sum() == 0


def test_a_limit_that_goes_away_no_longer_counts():
    cluster = zones(*with_volumes(1), limits("a", 0))
    question = asked(cluster, using("c0"), NodeVolumeLimits())
    assert "a" not in question.nodes
    assert not cluster.change("CSINode", limits("a", 0))
    assert cluster.remove("CSINode", "", "a")
    assert "a" in question.nodes
