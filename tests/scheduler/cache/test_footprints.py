"""What a pod adds to its node: requests, ports, disks, claims, affinity terms."""

from __future__ import annotations

import pytest

from muster.api import types
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import (
    HostPort,
    InlineDisk,
    carried_terms,
    claim_names,
    host_ports,
    label_keys,
    nonzero_requested,
    requested,
    spreading_owner,
)
from tests.build.objects import a_pod, of

MIB = 1024 * 1024
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def spec(**body):
    return of(types.PodSpec, body)


def container(**requests):
    return {"name": "c", "resources": {"requests": requests}}


def a_term(key: str, **more):
    selector = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    return {"topologyKey": f"top-{key}", "labelSelector": selector} | more


def with_ports(*ports, **body):
    return of(types.PodSpec, {"containers": [{"name": "c", "ports": list(ports)}]} | body)


def test_containers_add_up():
    assert requested(spec(containers=[container(cpu="1"), container(cpu="500m", memory="1Mi")])) == {
        "cpu": 1500,
        "memory": MIB,
    }


def test_the_largest_init_container_counts_if_it_is_larger_than_all_containers():
    found = spec(containers=[container(cpu="1")], initContainers=[container(cpu="3"), container(cpu="2")])
    assert requested(found) == {"cpu": 3000}


def test_a_sidecar_runs_beside_the_containers_and_beside_later_init_containers():
    sidecar = container(cpu="1") | {"restartPolicy": "Always"}
    found = spec(containers=[container(cpu="2")], initContainers=[container(cpu="3"), sidecar, container(cpu="3")])
    assert requested(found) == {"cpu": 4000}


def test_overhead_comes_on_top():
    assert requested(spec(containers=[container(cpu="1")], overhead={"cpu": "250m"})) == {"cpu": 1250}


def test_pod_level_resources_replace_the_sum_of_the_containers():
    found = spec(
        containers=[container(cpu="1", memory="1Mi")],
        resources={"requests": {"cpu": "3", "example.com/gpu": "1"}},
        overhead={"cpu": "1"},
    )
    assert requested(found) == {"cpu": 4000, "memory": MIB}


def test_resources_that_nodes_do_not_offer_are_not_counted():
    assert requested(spec(containers=[container(storage="1Gi", pods="5", cpu="1")])) == {"cpu": 1000}


def test_containers_without_requests_are_taken_to_use_a_little():
    assert nonzero_requested(spec(containers=[container(), container(cpu="1")])) == (1100, 400 * MIB)
    assert nonzero_requested(spec(containers=[container(cpu="0", memory="0")])) == (0, 0)


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.2", "TCP", 80), False),
        (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "UDP", 80), False),
        (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 81), False),
        (InlineDisk("ISCSI", "d", True), InlineDisk("ISCSI", "d", True), False),
        (InlineDisk("ISCSI", "d", True), InlineDisk("ISCSI", "d", False), True),
        (InlineDisk("ISCSI", "d", True, False), InlineDisk("ISCSI", "d", True, False), True),
        (InlineDisk("ISCSI", "d", False), InlineDisk("ISCSI", "e", False), False),
        (InlineDisk("ISCSI", "d", False), InlineDisk("RBD", "d", False), False),
    ],
)
def test_which_ports_and_disks_conflict(one, other, conflict):
    assert one.conflicts(other) == other.conflicts(one) == conflict


def test_host_ports_are_those_of_containers_and_sidecars_once_each():
    port = {"containerPort": 8080, "hostPort": 80}
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 81}]}
    init = {"name": "i", "ports": [{"containerPort": 1, "hostPort": 99}]}
    spec = with_ports(port, port, {"containerPort": 9}, initContainers=[sidecar, init])
    assert host_ports(spec) == (HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 81))


def test_on_the_host_network_container_ports_are_host_ports():
    port = {"containerPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}
    assert host_ports(with_ports(port)) == ()
    assert host_ports(with_ports(port, hostNetwork=True)) == (HostPort("10.0.0.1", "UDP", 53),)


def test_claims_are_named_in_the_pod_or_after_it():
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {}},
        {"name": "token"},
    ]
    assert claim_names(a_pod("p", volumes=volumes)) == ("data", "p-scratch")


def test_the_terms_that_a_pod_carries_have_their_kind_and_a_sign():
    affinity = {
        "podAffinity": {
            REQUIRED: [a_term("hard")],
            PREFERRED: [{"weight": 5, "podAffinityTerm": a_term("soft")}],
        },
        "podAntiAffinity": {
            REQUIRED: [a_term("anti")],
            PREFERRED: [{"weight": 7, "podAffinityTerm": a_term("soft-anti")}],
        },
    }
    found = {(term.kind, term.topology, term.weight) for term in carried_terms(a_pod(affinity=affinity))}
    assert found == {
        ("hard", "top-hard", 0),
        ("preferred", "top-soft", 5),
        ("anti", "top-anti", 0),
        ("preferred", "top-soft-anti", -7),
    }


def test_label_keys_are_those_of_all_selectors_of_a_pod():
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash"]}
    spread["labelSelector"] = {"matchLabels": {"app": "web"}}
    affinity = {
        "podAffinity": {REQUIRED: [a_term("near", matchLabelKeys=["same"])]},
        "podAntiAffinity": {
            PREFERRED: [{"weight": 1, "podAffinityTerm": a_term("anti", mismatchLabelKeys=["differs"])}]
        },
    }
    pod = a_pod(affinity=affinity, topologySpreadConstraints=[spread])
    assert set(label_keys(pod.spec)) == {"hash", "app", "near", "same", "anti", "differs"}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [("ReplicaSet/web", ("ReplicaSet", "web")), ("StatefulSet/db", ("StatefulSet", "db")), ("Job/j", None)],
)
def test_only_some_controllers_spread_their_pods_by_default(owner, expected):
    assert spreading_owner(a_pod(owner=owner)) == expected


def test_equal_pods_share_a_footprint_and_its_vector_has_a_row_for_pods():
    cluster = Cluster()
    first = cluster.footprint(a_pod("a", cpu=1, memory="1Ki", requests={"example.com/gpu": 2}))
    second = cluster.footprint(a_pod("b", cpu=1, memory="1Ki", requests={"example.com/gpu": 2}))
    assert first is second
    assert first.vector.tolist() == [1000, 1024, 1, 2]
    assert cluster.resources[3] == "example.com/gpu"
    assert cluster.footprint(a_pod("c", cpu=None, memory=None)).vector.tolist() == [0, 0, 1]
    assert cluster.footprint(a_pod("c", cpu=None, memory=None)).nonzero.tolist() == [100, 200 * 1024**2]


def test_the_label_keys_of_a_pod_are_known_once_its_footprint_is():
    cluster = Cluster()
    kept = cluster.footprint(a_pod(affinity={"podAntiAffinity": {REQUIRED: [a_term("index")]}}))
    assert cluster.pod_counts.keys == {"index"}
    assert len(kept.carried) == 1
