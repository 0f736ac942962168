"""Claims in use, promised volumes and attachments."""

from __future__ import annotations

import pytest

from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.cache.volumes import (
    BIND_COMPLETED,
    SELECTED_NODE,
    Attachment,
    Volumes,
    accessible_from,
    bound,
    can_bind,
    claim_size,
    selected_node,
    volume_size,
)
from muster.scheduler.plugins.volume_binding import VolumeBinding
from tests.build.cluster import a_zoned_cluster, asked
from tests.build.objects import a_claim, a_class, a_csi_node, a_node, a_volume, using

BINDING = VolumeBinding()
ONE, TWO = ("ns", "one"), ("ns", "two")


def volumes_of(*objects) -> Volumes:
    """The volumes of a cluster with the nodes a and b."""
    columns = NodeColumns()
    for name in ("a", "b"):
        columns.set_node(a_node(name))
    volumes = Volumes(columns)
    for obj in objects:
        volumes.set(obj)
    return volumes


def test_a_volume_is_no_longer_kept_once_the_claim_is_bound_or_its_pod_gone():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = a_zoned_cluster(a_claim("one"), a_claim("two"), local, a_volume("pv-a", zone="a"))
    cluster.assume(using("one", name="one"), "a")
    question = asked(cluster, using("two", name="two"), BINDING)
    assert question.nodes == set()
    cluster.change("PersistentVolumeClaim", a_claim("one", volume="elsewhere"))
    assert question.nodes == {"a"}
    cluster.change("PersistentVolumeClaim", a_claim("one"))
    assert question.nodes == set()
    cluster.remove("PersistentVolume", "", "pv-a")
    cluster.change("PersistentVolume", a_volume("pv-a", zone="a"))
    assert question.nodes == {"a"}
    cluster.forget("pod-one")
    assert question.nodes == {"a"}


def test_objects_that_come_change_and_go_are_noticed():
    cluster = a_zoned_cluster(a_claim())
    question = asked(cluster, using("data"), BINDING)
    assert question.nodes == set()
    assert cluster.change("StorageClass", a_class())
    assert not cluster.change("StorageClass", a_class())
    assert len(question.nodes) == 3
    assert cluster.change("PersistentVolume", a_volume(zone="a"))
    assert cluster.change("PersistentVolumeClaim", a_claim(volume="pv"))
    assert not cluster.change("PersistentVolumeClaim", a_claim(volume="pv"))
    assert question.nodes == {"a"}
    assert cluster.remove("PersistentVolume", "", "pv")
    assert not cluster.remove("PersistentVolume", "", "pv")
    assert question.nodes == set()
    assert cluster.remove("StorageClass", "", "fast")
    assert cluster.remove("PersistentVolumeClaim", "ns", "data")
    assert "not found" in question.text


def test_a_claim_that_is_bound_while_in_use_is_counted_over():
    cluster = a_zoned_cluster(
        a_class(provisioner="d"), a_claim("c0"), a_csi_node("a", 1), using("c0", name="p0", node="a")
    )
    assert cluster.volumes.attached("d")[cluster.index["a"]] == 1
    cluster.change("PersistentVolume", a_volume("v0", driver="d"))
    cluster.change("PersistentVolumeClaim", a_claim("c0", volume="v0"))
    assert cluster.volumes.attached("d")[cluster.index["a"]] == 1
    cluster.remove("PersistentVolume", "", "v0")
    assert cluster.volumes.attached("d")[cluster.index["a"]] == 0
    cluster.remove("PersistentVolumeClaim", "ns", "c0")
    cluster.remove("Pod", "ns", "p0")
    assert not cluster.volumes.in_use(("ns", "c0"))


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({}, True),
        ({"size": "2Gi"}, True),
        ({"size": "512Mi"}, False),
        ({"storage_class": "slow"}, False),
        ({"claim": "data"}, True),
        ({"claim": "other"}, False),
        ({"phase": "Available"}, True),
        ({"phase": "Released"}, False),
        ({"phase": "Bound", "claim": "data"}, True),
    ],
)
def test_which_volumes_a_claim_can_be_bound_to(volume, expected):
    assert can_bind(a_volume(**volume), a_claim()) == expected


def test_a_claim_needs_all_its_access_modes():
    assert not can_bind(a_volume(), a_claim(modes=("ReadWriteOnce", "ReadOnlyMany")))


def test_the_node_affinity_of_a_volume_says_where_it_is_accessible():
    local = a_volume(zone="a")
    key = local.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].key
    here, there = (a_node("n", labels={key: zone}) for zone in ("a", "b"))
    assert accessible_from(local, here)
    assert not accessible_from(local, there)
    assert accessible_from(a_volume(), there)


def test_sizes_are_in_bytes():
    assert volume_size(a_volume(size="1Ki")) == 1024
    assert claim_size(a_claim(size="10Gi")) == 10 * 1024**3


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ({}, False),
        ({"volume": "pv"}, True),
        ({"volume": "pv", "phase": "Pending"}, False),
        ({"volume": "pv", "phase": "Pending", "annotations": {BIND_COMPLETED: "yes"}}, True),
    ],
)
def test_a_claim_is_bound_when_it_has_a_volume_and_the_binding_is_complete(claim, expected):
    assert bound(a_claim(**claim)) == expected


def test_the_selected_node_is_an_annotation():
    assert selected_node(a_claim()) == ""
    assert selected_node(a_claim(annotations={SELECTED_NODE: "a"})) == "a"


def test_claims_in_use_are_promised_the_smallest_volumes_that_no_other_claim_has():
    volumes = volumes_of(a_claim("one"), a_claim("two"), a_volume("large", size="30Gi"), a_volume("small"))
    volumes.add_users("ns", ("one",), 0, 1)
    volumes.add_users("ns", ("two",), 1, 1)
    assert (volumes.promised.volume_of(ONE), volumes.promised.volume_of(TWO)) == ("small", "large")
    assert volumes.promised.claim_of("small") == ONE
    assert not volumes.promised.free_for(volumes.volumes["small"], TWO)
    assert volumes.promised.free_for(volumes.volumes["small"], ONE)

    volumes.add_users("ns", ("one",), 0, -1)

    assert volumes.promised.volume_of(ONE) == ""
    assert volumes.promised.free_for(volumes.volumes["small"], TWO)
    assert volumes.promised.volume_of(TWO) == "large", "a promise stays"


def test_a_claim_keeps_its_promise_until_its_last_pod_is_removed():
    volumes = volumes_of(a_claim("one"), a_volume("pv"))
    volumes.add_users("ns", ("one",), 0, 1)
    volumes.add_users("ns", ("one",), 1, 1)
    volumes.add_users("ns", ("one",), 0, -1)
    assert volumes.promised.volume_of(ONE) == "pv"
    assert volumes.node_of_first_user(ONE) == "b"
    volumes.add_users("ns", ("one",), 1, -1)
    assert volumes.promised.volume_of(ONE) == ""
    assert volumes.node_of_first_user(ONE) == ""
    assert not volumes.in_use(ONE)


@pytest.mark.parametrize(
    "claim", [a_claim("one", volume="pv"), a_claim("one", annotations={SELECTED_NODE: "a"})], ids=["bound", "selected"]
)
def test_a_claim_with_a_volume_or_a_selected_node_is_promised_nothing(claim):
    volumes = volumes_of(claim, a_volume("pv"))
    volumes.add_users("ns", ("one",), 0, 1)
    assert volumes.promised.volume_of(ONE) == ""


def test_promises_can_be_restored_and_the_version_tells():
    volumes = volumes_of(a_claim("one"), a_volume("pv"))
    before = volumes.promised.state()
    volumes.add_users("ns", ("one",), 0, 1)
    after, version = volumes.promised.state(), volumes.promised.version

    volumes.promised.restore(before)
    assert volumes.promised.claim_of("pv") is None
    assert volumes.promised.version > version
    version = volumes.promised.version
    volumes.promised.restore(before)
    assert volumes.promised.version == version
    volumes.promised.restore(after)
    assert volumes.promised.claim_of("pv") == ONE


def test_the_smallest_of_several_claims_is_promised_its_volume_first():
    small, large = a_claim("zz", size="10Gi"), a_claim("one", size="20Gi")
    volumes = volumes_of(large, small, a_volume("smaller", size="25Gi"), a_volume("larger", size="30Gi"))
    volumes.add_users("ns", ("one", "zz"), 0, 1)
    assert volumes.promised.volume_of(("ns", "zz")) == "smaller"
    assert volumes.promised.volume_of(ONE) == "larger"


def test_an_attachment_is_the_volume_of_a_claim_or_a_new_one_of_its_class():
    volumes = volumes_of(a_class(provisioner="new"), a_claim("one"), a_claim("two", volume="pv"))
    assert volumes.attachment(ONE) == Attachment("new", "ns/one")
    assert volumes.attachment(TWO) == Attachment("", "")
    volumes.set(a_volume("pv", driver="d"))
    assert volumes.attachment(TWO) == Attachment("d", "handle-pv")
    assert volumes.attachment(("ns", "unknown")) == Attachment("", "")


def test_claims_of_one_volume_are_one_attachment_on_a_node():
    volumes = volumes_of(a_volume("pv", driver="d"), a_claim("one", volume="pv"), a_claim("two", volume="pv"))
    volumes.add_users("ns", ("one", "two"), 0, 1)
    volumes.add_users("ns", ("one",), 1, 2)
    volumes.add_users("ns", ("one",), 1, -1)
    assert volumes.attached("d").tolist() == [1, 1]
    assert volumes.attached_at(Attachment("d", "handle-pv")).tolist() == [1, 1]
    volumes.add_users("ns", ("one",), 0, -1)
    assert volumes.attached("d").tolist() == [1, 1]
    volumes.add_users("ns", ("two",), 0, -1)
    assert volumes.attached("d").tolist() == [0, 1]
    volumes.add_users("ns", ("one",), 1, -1)
    assert volumes.attached("d").tolist() == [0, 0]
    assert volumes.attached("other").tolist() == [0, 0]
