"""Claims, volumes, zones, attach limits and disks: where a pod's data lets it go."""

from __future__ import annotations

import pytest

from muster.api import types
from muster.scheduler.plugins.dynamic_resources import DynamicResources
from muster.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from muster.scheduler.plugins.volume_binding import VolumeBinding
from muster.scheduler.plugins.volume_restrictions import VolumeRestrictions
from muster.scheduler.plugins.volume_zone import VolumeZone
from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import TOPOLOGY_ZONE, a_claim, a_class, a_node, a_pod, a_volume, of, using

BINDING = VolumeBinding()


def zones(*objects):
    return a_cluster(a_node("a", topology_zone="a"), a_node("b", topology_zone="b"), a_node("none"), *objects)


# --- binding ----------------------------------------------------------------------------------------


def test_a_missing_claim_holds_the_pod_everywhere():
    question = asked(zones(), using("data"), BINDING)
    assert question.text == '0/3 nodes are available: persistentvolumeclaim "data" not found.'
    assert question.nodes == set()
    assert question.final == {"a", "b", "none"}


def test_a_claim_on_its_way_out_holds_the_pod():
    cluster = zones(a_claim(volume="pv", deletionTimestamp="2030-01-01T00:00:00Z"), a_volume())
    text = '0/3 nodes are available: persistentvolumeclaim "data" is being deleted.'
    assert asked(cluster, using("data"), BINDING).text == text


def test_a_lost_claim_holds_the_pod():
    cluster = zones(a_claim(volume="pv", phase="Lost"))
    assert 'bound to non-existent persistentvolume "pv"' in asked(cluster, using("data"), BINDING).text


@pytest.mark.parametrize("objects", [(), (a_class(waits=False),)])
def test_an_unbound_claim_that_does_not_wait_holds_the_pod(objects):
    question = asked(zones(a_claim(), *objects), using("data"), BINDING)
    assert question.text == "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def test_a_bound_volume_is_used_where_it_can_be_reached():
    question = asked(zones(a_claim(volume="pv"), a_volume(zone="a")), using("data"), BINDING)
    assert question.nodes == {"a"}
    assert question.counts == {"node(s) didn't match PersistentVolume's node affinity": 2}
    assert question.final == {"b", "none"}


def test_a_claim_bound_to_a_volume_that_is_gone_refuses_every_node():
    question = asked(zones(a_claim(volume="pv")), using("data"), BINDING)
    assert question.counts == {"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": 3}


def test_a_waiting_claim_goes_where_a_free_volume_is():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    question = asked(zones(a_claim(), local, a_volume(zone="b")), using("data"), BINDING)
    assert question.nodes == {"b"}
    assert question.counts == {"node(s) didn't find available persistent volumes to bind": 2}


@pytest.mark.parametrize(
    "volume",
    [
        {"size": "500Mi"},
        {"storage_class": "slow"},
        {"claim": "somebody-else"},
        {"phase": "Released"},
    ],
)
def test_a_volume_that_does_not_fit_a_waiting_claim_does_not_help(volume):
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    assert asked(zones(a_claim(), local, a_volume(**volume)), using("data"), BINDING).nodes == set()


def test_a_volume_reserved_for_the_claim_fits_it():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = zones(a_claim(), local, a_volume(claim="data", zone="a", phase="Bound"))
    assert asked(cluster, using("data"), BINDING).nodes == {"a"}


def test_a_waiting_claim_goes_where_its_class_can_provision():
    assert asked(zones(a_claim(), a_class()), using("data"), BINDING).nodes == {"a", "b", "none"}
    assert asked(zones(a_claim(), a_class(zones=["a"])), using("data"), BINDING).nodes == {"a"}


def test_a_claim_that_was_promised_a_node_goes_there_only():
    promised = a_claim(annotations={"volume.kubernetes.io/selected-node": "b"})
    assert asked(zones(promised, a_class()), using("data"), BINDING).nodes == {"b"}
    gone = a_claim(annotations={"volume.kubernetes.io/selected-node": "gone"})
    assert asked(zones(gone, a_class()), using("data"), BINDING).nodes == set()


def test_two_waiting_claims_need_a_volume_each():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    both = using("data", "logs")
    cluster = zones(a_claim(), a_claim("logs"), local, a_volume("small", zone="a"), a_volume("one", zone="b"))
    assert asked(cluster, both, BINDING).nodes == set()
    cluster.change("PersistentVolume", a_volume("large", zone="a", size="20Gi"))
    assert asked(cluster, both, BINDING).nodes == {"a"}


def test_a_free_volume_that_one_pod_counts_on_is_gone_for_the_next():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = zones(a_claim("one"), a_claim("two"), local, a_volume("pv-a", zone="a"), a_volume("pv-b", zone="b"))
    one, two = (evaluator_of(cluster).shape(using(name, name=name), default_profile()) for name in ("one", "two"))
    assert not evaluator_of(cluster).independent(one)
    with evaluator_of(cluster).trial() as trial:
        first = trial.best(one)
        trial.place(one, first)
        second = trial.best(two)
        assert {cluster.names[first], cluster.names[second]} == {"a", "b"}
        trial.place(two, second)
        trial.undo(0)
        assert trial.feasible(two).sum() == 2


def test_a_volume_is_no_longer_kept_once_the_claim_is_bound_or_its_pod_gone():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = zones(a_claim("one"), a_claim("two"), local, a_volume("pv-a", zone="a"))
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


def test_a_claim_with_a_selector_wants_a_volume_with_those_labels():
    claim = of(
        types.PersistentVolumeClaim,
        {
            "metadata": {"name": "data", "namespace": "ns"},
            "spec": {"storageClassName": "fast", "selector": {"matchLabels": {"kind": "x"}}},
        },
    )
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    assert asked(zones(claim, local, a_volume()), using("data"), BINDING).nodes == set()
    assert asked(zones(claim, local, a_volume(labels={"kind": "x"})), using("data"), BINDING).nodes != set()


def test_an_ephemeral_volume_has_a_claim_named_after_the_pod():
    pod = a_pod("pod", volumes=[{"name": "scratch", "ephemeral": {}}])
    assert 'persistentvolumeclaim "pod-scratch" not found' in asked(zones(), pod, BINDING).text
    assert asked(zones(a_claim("pod-scratch"), a_class()), pod, BINDING).nodes == {"a", "b", "none"}


def test_objects_that_come_change_and_go_are_noticed():
    cluster = zones(a_claim())
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


# --- zones ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [TOPOLOGY_ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_a_volume_of_a_zone_is_used_there_and_where_there_are_no_zones(key):
    cluster = zones(a_node("old", labels={"failure-domain.beta.kubernetes.io/zone": "a"}))
    for obj in (a_claim(volume="pv"), a_volume(labels={key: "a__c"})):
        cluster.change(type(obj).__name__, obj)
    question = asked(cluster, using("data"), VolumeZone())
    assert question.nodes == ({"a", "none", "old"} if key == TOPOLOGY_ZONE else {"none", "old"})
    assert set(question.counts) == {"node(s) had no available volume zone"}


# --- limits -----------------------------------------------------------------------------------------


def limits(node, count, driver="d"):
    entry = {"name": driver, "nodeID": node} | ({"allocatable": {"count": count}} if count is not None else {})
    return of(types.CSINode, {"metadata": {"name": node}, "spec": {"drivers": [entry]}})


def with_volumes(count):
    claims = [a_claim(f"c{i}", volume=f"v{i}") for i in range(count)]
    return [*claims, *(a_volume(f"v{i}", driver="d") for i in range(count))]


def test_a_node_takes_no_more_volumes_than_its_driver_can_attach():
    cluster = zones(
        *with_volumes(3), limits("a", 1), limits("b", None), limits("nowhere", 0), using("c0", name="p0", node="a")
    )
    question = asked(cluster, using("c1", "c2"), NodeVolumeLimits())
    assert question.nodes == {"b", "none"}
    assert question.text == "0/3 nodes are available: 1 node(s) exceed max volume count."
    assert question.final == set()


def test_a_volume_that_is_attached_already_costs_nothing():
    cluster = zones(*with_volumes(2), limits("a", 1), using("c0", name="p0", node="a"))
    assert "a" in asked(cluster, using("c0"), NodeVolumeLimits()).nodes
    assert "a" not in asked(cluster, using("c1"), NodeVolumeLimits()).nodes


def test_two_pods_with_one_claim_attach_it_once():
    cluster = zones(
        *with_volumes(2), limits("a", 2), using("c0", name="p0", node="a"), using("c0", name="p1", node="a")
    )
    question = asked(cluster, using("c1"), NodeVolumeLimits())
    assert "a" in question.nodes
    cluster.remove("Pod", "ns", "p0")
    cluster.remove("Pod", "ns", "p1")
    assert cluster.volumes.attached("d").sum() == 0


def test_a_claim_that_is_bound_while_in_use_is_counted_over():
    cluster = zones(a_class(provisioner="d"), a_claim("c0"), limits("a", 1), using("c0", name="p0", node="a"))
    assert cluster.volumes.attached("d")[cluster.index["a"]] == 1
    cluster.change("PersistentVolume", a_volume("v0", driver="d"))
    cluster.change("PersistentVolumeClaim", a_claim("c0", volume="v0"))
    assert cluster.volumes.attached("d")[cluster.index["a"]] == 1
    cluster.remove("PersistentVolume", "", "v0")
    assert cluster.volumes.attached("d")[cluster.index["a"]] == 0
    cluster.remove("PersistentVolumeClaim", "ns", "c0")
    cluster.remove("Pod", "ns", "p0")
    assert not cluster.volumes.in_use(("ns", "c0"))


def test_a_limit_that_goes_away_no_longer_counts():
    cluster = zones(*with_volumes(1), limits("a", 0))
    question = asked(cluster, using("c0"), NodeVolumeLimits())
    assert "a" not in question.nodes
    assert not cluster.change("CSINode", limits("a", 0))
    assert cluster.remove("CSINode", "", "a")
    assert "a" in question.nodes


# --- restrictions -----------------------------------------------------------------------------------


def test_a_claim_for_one_pod_keeps_every_other_pod_away():
    claim = a_claim(volume="pv", modes=("ReadWriteOncePod",))
    cluster = zones(claim, a_volume(), using("data", name="holder", node="a"))
    question = asked(cluster, using("data"), VolumeRestrictions())
    assert question.nodes == set()
    reason = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    assert question.counts == {f"node(s) unavailable due to {reason}": 3}
    assert question.final == set()
    cluster.remove("Pod", "ns", "holder")
    assert len(question.nodes) == 3


def test_a_claim_for_one_pod_is_taken_by_the_first_one_a_trial_places():
    cluster = zones(a_claim(volume="pv", modes=("ReadWriteOncePod",)), a_volume())
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
    cluster = zones(a_pod("holder", node="a", volumes=[{"name": "d"} | held]))
    question = asked(cluster, a_pod(volumes=[{"name": "d"} | wanted]), VolumeRestrictions())
    assert question.nodes == ({"b", "none"} if clash else {"a", "b", "none"})
    if clash:
        assert question.counts == {"node(s) had no available disk": 1}


# --- devices ----------------------------------------------------------------------------------------


def test_a_pod_with_device_claims_is_held_and_told_so():
    question = asked(zones(), a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}]), DynamicResources())
    text = "pod has dynamic resource claims, which this scheduler does not support"
    assert question.text == f"0/3 nodes are available: {text}."
    assert question.best == ""
    assert asked(zones(), a_pod(), DynamicResources()).best
