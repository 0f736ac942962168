"""Nodes as columns: slots, resources, labels, images, ranks."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import (
    MAX_AMOUNT,
    LabelColumn,
    NodeColumns,
    amount,
    is_counted,
    is_scalar,
)
from muster.scheduler.interface import cluster_events
from tests.build.cluster import a_cluster, asked
from tests.build.objects import RACK, TOPOLOGY_ZONE, a_node, a_pod


def cpu(cluster: Cluster, name: str = "n0") -> int:
    return int(cluster.used[0, cluster.index[name]])


def columns(*nodes) -> NodeColumns:
    found = NodeColumns()
    for node in nodes:
        found.set_node(node)
    return found


def test_a_node_becomes_a_column():
    cluster = a_cluster(a_node("n0", cpu="2500m", memory="1Gi", pods=7, extended={"example.com/gpu": 3}))
    room = dict(zip(cluster.resources, cluster.alloc[:, 0].tolist(), strict=True))
    assert room == {"cpu": 2500, "memory": 1024**3, "pods": 7, "example.com/gpu": 3}
    assert cluster.names == ["n0"]
    assert cluster.alive.tolist() == [True]


def test_columns_grow_with_the_number_of_nodes_and_keep_what_they_hold():
    cluster = a_cluster(a_node("n0", topology_zone="a"), a_pod("p", cpu=1, node="n0", labels={"app": "x"}))
    cluster.labels(TOPOLOGY_ZONE)
    cluster.image_sizes("app:latest")
    for i in range(1, 300):
        cluster.change("Node", a_node(f"n{i}", topology_zone="b"))
    assert cluster.size == 300
    assert cpu(cluster) == 1000
    assert cluster.label_value(TOPOLOGY_ZONE, int(cluster.labels(TOPOLOGY_ZONE)[0])) == "a"
    assert (cluster.labels(TOPOLOGY_ZONE) == cluster.label_id(TOPOLOGY_ZONE, "b")).sum() == 299


def test_a_removed_nodes_slot_is_used_again():
    cluster = a_cluster(a_node("n0", topology_zone="a", cpu=9), a_node("n1"))
    question = asked(cluster, a_pod())
    assert question.nodes == {"n0", "n1"}
    assert cluster.remove("Node", "", "n0") == {cluster_events.NODE_REMOVED}
    assert cluster.names[0] == ""
    assert question.nodes == {"n1"}
    cluster.change("Node", a_node("n2"))
    assert cluster.index["n2"] == 0
    assert cluster.labels(TOPOLOGY_ZONE)[0] == 0
    assert question.nodes == {"n1", "n2"}
    assert cluster.remove("Node", "", "never was") == cluster_events.NOTHING


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        ({"cpu": 8}, cluster_events.NODE_ALLOCATABLE),
        ({"unschedulable": True}, cluster_events.NODE_UNSCHEDULABLE),
        ({"taints": ["a=:NoSchedule"]}, cluster_events.NODE_TAINTS),
        ({"labels": {"a": "b"}}, cluster_events.NODE_LABELS),
        ({"images": {"app": 5}}, cluster_events.NODE_IMAGES),
    ],
)
def test_a_change_of_a_node_says_what_changed(other, kind):
    assert a_cluster(a_node("n0")).change("Node", a_node("n0", **other)) == {kind}


def test_ranks_do_not_depend_on_arrival_even_when_they_collide(monkeypatch):
    class Digest:
        def __init__(self, text: bytes, digest_size: int) -> None:
            self.text = text

        def digest(self) -> bytes:
            # Only the salt and the length of the name decide: alike names collide.
            _, salt, name = self.text.decode().split("/")
            return bytes([int(salt), len(name), 0, 0, 0, 0, 0, 0])

    monkeypatch.setattr("muster.scheduler.cache.node_columns.blake2b", Digest)
    ranks = []
    for order in ("abc", "cba", "bca"):
        columns = NodeColumns()
        for name in order:
            columns.set_node(a_node(name))
        ranks.append({name: int(columns.rank[columns.index[name]]) for name in order})
    assert ranks[0] == ranks[1] == ranks[2]
    assert len(set(ranks[0].values())) == 3


def test_labels_nobody_has_have_no_id():
    cluster = a_cluster(a_node("n0", topology_zone="a"))
    assert cluster.label_id(TOPOLOGY_ZONE, "b") == 0
    assert cluster.labels("never")[0] == 0


@pytest.mark.parametrize(
    ("resource", "counted", "scalar"),
    [
        ("cpu", True, False),
        ("memory", True, False),
        ("ephemeral-storage", True, False),
        ("example.com/gpu", True, True),
        ("hugepages-2Mi", True, True),
        ("attachable-volumes-csi", True, True),
        ("storage", False, True),
    ],
)
def test_which_resources_are_counted_and_which_are_scalar(resource, counted, scalar):
    assert (is_counted(resource), is_scalar(resource)) == (counted, scalar)


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", 2, 2000),
        ("memory", "1Ki", 1024),
        ("memory", "1500m", 2),
        ("memory", "-5", 0),
        ("memory", "9E", MAX_AMOUNT),
    ],
)
def test_amounts_are_whole_numbers_that_can_be_added_without_overflow(resource, text, expected):
    assert amount(resource, text) == expected


def test_a_requirement_is_evaluated_for_values_that_come_later_too():
    column = LabelColumn(4)
    column.set(0, "a")
    assert column.matching("zone", "In", ("a", "b")).tolist() == [False, True]
    assert column.matching("zone", "NotIn", ("a",)).tolist() == [True, False]

    column.set(1, "b")
    column.set(2, "c")

    assert column.matching("zone", "In", ("a", "b")).tolist() == [False, True, True, False]
    assert column.matching("zone", "NotIn", ("a",)).tolist() == [True, False, True, True]
    assert column.ids.tolist() == [1, 2, 3, 0]


def test_the_version_of_a_label_column_grows_only_with_a_change():
    column = LabelColumn(2)
    column.set(0, "a")
    column.set(0, "a")
    assert column.version == 1
    column.set(0, None)
    assert (column.version, column.ids[0]) == (2, 0)


def test_image_sizes_follow_the_nodes():
    found = columns(a_node("n0", images={"app:latest": 7}), a_node("n1"))
    assert found.image_sizes("app:latest").tolist() == [7, 0]

    found.set_node(a_node("n1", images={"app": 9}))
    assert found.image_sizes("app:latest").tolist() == [7, 9]
    found.remove_node("n0")
    assert found.image_sizes("app:latest").tolist() == [0, 9]


def test_the_version_of_images_grows_only_while_a_node_has_an_image_that_is_read():
    found = columns(a_node("n0", images={"app": 7}))
    assert found.images_version == 0
    found.image_sizes("other:latest")
    found.set_node(a_node("n1"))
    assert found.images_version == 0

    found.image_sizes("app:latest")
    found.set_node(a_node("n2"))

    assert found.images_version == 1


def test_a_new_resource_is_a_new_row_with_no_amounts():
    found = columns(a_node("n0"))
    row = found.resource_row("example.com/gpu")
    assert found.resource_row("example.com/gpu") == row == 3
    assert found.alloc[row].tolist() == [0]
    assert found.used.shape == (4, 1)


def test_equal_taints_in_one_order_share_a_set():
    taints = ["a=:NoSchedule", "b=:NoSchedule"]
    found = columns(a_node("n0", taints=taints), a_node("n1", taints=taints), a_node("n2"))
    assert found.taint_set.tolist() == [1, 1, 0]
    assert len(found.taint_sets) == 2


def test_an_unknown_node_cannot_be_removed():
    found = columns(a_node("n0"))
    version = found.node_version
    assert found.remove_node("other") == -1
    assert (found.count, found.node_version) == (1, version)


def test_ranks_differ_with_the_seed():
    ranks = []
    for seed in (0, 1):
        found = NodeColumns(seed)
        found.set_node(a_node("n0"))
        ranks.append(int(found.rank[0]))
    assert ranks[0] != ranks[1]
    assert np.all(np.array(ranks) < 2**40)


def test_nodes_share_the_images_and_labels_that_they_have_in_common():
    cluster = a_cluster(a_node("n0", images={"app:1": 5}), a_node("n1", images={"app:1": 5}))
    one, other = (cluster.node_objects[name].status.images for name in ("n0", "n1"))
    assert one is not None
    assert other is not None
    assert one[0] is other[0]
    later = a_node("n0", images={"app:1": 5})
    cluster.change("Node", later)
    assert later.status.images is one


def test_label_values_are_numbered_in_the_order_of_the_nodes_names():
    cluster = a_cluster(a_node("b", rack="r1"), a_node("c", rack="r0"), a_node("a", rack="r2"), a_node("d"))
    assert cluster.label_column(RACK).values == ["", "r2", "r1", "r0"]
    assert cluster.labels(RACK).tolist() == [2, 3, 1, 0]
