"""VolumeRestrictions."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.volume_restrictions import VolumeRestrictions
from tests.build.cluster import a_zoned_cluster, asked, evaluator_of
from tests.build.objects import a_claim, a_pod, a_volume, using


def test_a_claim_for_one_pod_keeps_every_other_pod_away():
    claim = a_claim(volume="pv", modes=("ReadWriteOncePod",))
    cluster = a_zoned_cluster(claim, a_volume(), using("data", name="holder", node="a"))
    question = asked(cluster, using("data"), VolumeRestrictions())
    assert question.nodes == set()
    reason = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    assert question.counts == {f"node(s) unavailable due to {reason}": 3}
    assert question.final == set()
    cluster.remove("Pod", "ns", "holder")
    assert len(question.nodes) == 3


def test_a_claim_for_one_pod_is_taken_by_the_first_one_a_trial_places():
    cluster = a_zoned_cluster(a_claim(volume="pv", modes=("ReadWriteOncePod",)), a_volume())
    question = asked(cluster, using("data"))
    with evaluator_of(cluster).trial() as trial:
        assert len(trial.place_many(question.shape, 5)) == 1
    assert len(question.nodes) == 3


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        ({"gcePersistentDisk": {"pdName": "x"}}, {"gcePersistentDisk": {"pdName": "x"}}, True),
        ({"gcePersistentDisk": {"pdName": "x"}}, {"gcePersistentDisk": {"pdName": "y"}}, False),
        (
            {"gcePersistentDisk": {"pdName": "x", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "x", "readOnly": True}},
            False,
        ),
        ({"gcePersistentDisk": {"pdName": "x", "readOnly": True}}, {"gcePersistentDisk": {"pdName": "x"}}, True),
        (
            {"awsElasticBlockStore": {"volumeID": "x", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "x", "readOnly": True}},
            True,
        ),
        ({"iscsi": {"iqn": "x"}}, {"iscsi": {"iqn": "x", "readOnly": True}}, True),
        (
            {"rbd": {"monitors": ["m1", "m2"], "image": "i", "pool": "p"}},
            {"rbd": {"monitors": ["m2"], "image": "i", "pool": "p"}},
            True,
        ),
        (
            {"rbd": {"monitors": ["m1"], "image": "i", "pool": "p"}},
            {"rbd": {"monitors": ["m2"], "image": "i", "pool": "p"}},
            False,
        ),
    ],
)
def test_a_disk_on_a_node_is_shared_only_by_readers(held, wanted, clash):
    cluster = a_zoned_cluster(a_pod("holder", node="a", volumes=[{"name": "d"} | held]))
    question = asked(cluster, a_pod(volumes=[{"name": "d"} | wanted]), VolumeRestrictions())
    assert question.nodes == ({"b", "none"} if clash else {"a", "b", "none"})
    if clash:
        assert question.counts == {"node(s) had no available disk": 1}
