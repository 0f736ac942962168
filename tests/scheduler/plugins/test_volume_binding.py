"""VolumeBinding."""

from __future__ import annotations

import pytest

from muster.api import types
from muster.scheduler.plugins.volume_binding import VolumeBinding
from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import a_zoned_cluster, asked, evaluator_of
from tests.build.objects import a_claim, a_class, a_pod, a_volume, of, using

BINDING = VolumeBinding()


def test_a_missing_claim_holds_the_pod_everywhere():
    question = asked(a_zoned_cluster(), using("data"), BINDING)
    assert question.text == '0/3 nodes are available: persistentvolumeclaim "data" not found.'
    assert question.nodes == set()
    assert question.final == {"a", "b", "none"}


def test_a_claim_on_its_way_out_holds_the_pod():
    cluster = a_zoned_cluster(a_claim(volume="pv", deletionTimestamp="2030-01-01T00:00:00Z"), a_volume())
    text = '0/3 nodes are available: persistentvolumeclaim "data" is being deleted.'
    assert asked(cluster, using("data"), BINDING).text == text


def test_a_lost_claim_holds_the_pod():
    cluster = a_zoned_cluster(a_claim(volume="pv", phase="Lost"))
    assert 'bound to non-existent persistentvolume "pv"' in asked(cluster, using("data"), BINDING).text


@pytest.mark.parametrize("objects", [(), (a_class(waits=False),)])
def test_an_unbound_claim_that_does_not_wait_holds_the_pod(objects):
    question = asked(a_zoned_cluster(a_claim(), *objects), using("data"), BINDING)
    assert question.text == "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def test_a_bound_volume_is_used_where_it_can_be_reached():
    question = asked(a_zoned_cluster(a_claim(volume="pv"), a_volume(zone="a")), using("data"), BINDING)
    assert question.nodes == {"a"}
    assert question.counts == {"node(s) didn't match PersistentVolume's node affinity": 2}
    assert question.final == {"b", "none"}


def test_a_claim_bound_to_a_volume_that_is_gone_refuses_every_node():
    question = asked(a_zoned_cluster(a_claim(volume="pv")), using("data"), BINDING)
    assert question.counts == {"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": 3}


def test_a_waiting_claim_goes_where_a_free_volume_is():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    question = asked(a_zoned_cluster(a_claim(), local, a_volume(zone="b")), using("data"), BINDING)
    assert question.nodes == {"b"}
    assert question.counts == {"node(s) didn't find available persistent volumes to bind": 2}


@pytest.mark.parametrize(
    "volume",
    [
        {"size": "512Mi"},
        {"storage_class": "slow"},
        {"claim": "somebody-else"},
        {"phase": "Released"},
    ],
)
def test_a_volume_that_does_not_fit_a_waiting_claim_does_not_help(volume):
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    assert asked(a_zoned_cluster(a_claim(), local, a_volume(**volume)), using("data"), BINDING).nodes == set()


def test_a_volume_reserved_for_the_claim_fits_it():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = a_zoned_cluster(a_claim(), local, a_volume(claim="data", zone="a", phase="Bound"))
    assert asked(cluster, using("data"), BINDING).nodes == {"a"}


def test_a_waiting_claim_goes_where_its_class_can_provision():
    assert asked(a_zoned_cluster(a_claim(), a_class()), using("data"), BINDING).nodes == {"a", "b", "none"}
    assert asked(a_zoned_cluster(a_claim(), a_class(zones=["a"])), using("data"), BINDING).nodes == {"a"}


def test_a_claim_that_was_promised_a_node_goes_there_only():
    promised = a_claim(annotations={"volume.kubernetes.io/selected-node": "b"})
    assert asked(a_zoned_cluster(promised, a_class()), using("data"), BINDING).nodes == {"b"}
    gone = a_claim(annotations={"volume.kubernetes.io/selected-node": "gone"})
    assert asked(a_zoned_cluster(gone, a_class()), using("data"), BINDING).nodes == set()


def test_two_waiting_claims_need_a_volume_each():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    both = using("data", "logs")
    cluster = a_zoned_cluster(a_claim(), a_claim("logs"), local, a_volume("small", zone="a"), a_volume("one", zone="b"))
    assert asked(cluster, both, BINDING).nodes == set()
    cluster.change("PersistentVolume", a_volume("large", zone="a", size="20Gi"))
    assert asked(cluster, both, BINDING).nodes == {"a"}


def test_a_free_volume_that_one_pod_counts_on_is_gone_for_the_next():
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    cluster = a_zoned_cluster(
        a_claim("one"), a_claim("two"), local, a_volume("pv-a", zone="a"), a_volume("pv-b", zone="b")
    )
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


def test_a_claim_with_a_selector_wants_a_volume_with_those_labels():
    claim = of(
        types.PersistentVolumeClaim,
        {
            "metadata": {"name": "data", "namespace": "ns"},
            "spec": {"storageClassName": "fast", "selector": {"matchLabels": {"kind": "x"}}},
        },
    )
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    assert asked(a_zoned_cluster(claim, local, a_volume()), using("data"), BINDING).nodes == set()
    assert asked(a_zoned_cluster(claim, local, a_volume(labels={"kind": "x"})), using("data"), BINDING).nodes != set()


def test_an_ephemeral_volume_has_a_claim_named_after_the_pod():
    pod = a_pod("pod", volumes=[{"name": "scratch", "ephemeral": {}}])
    assert 'persistentvolumeclaim "pod-scratch" not found' in asked(a_zoned_cluster(), pod, BINDING).text
    assert asked(a_zoned_cluster(a_claim("pod-scratch"), a_class()), pod, BINDING).nodes == {"a", "b", "none"}
