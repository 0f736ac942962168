"""What a pod requires of its node, checked on the API objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.types import PersistentVolume, PersistentVolumeClaim
from muster.scheduler.checking.node_rules import NodeRules, claims_fault, claims_of, ports_conflict, ports_of
from tests.build.cluster import a_cluster
from tests.build.objects import RACK, a_node, a_pod
from tests.build.placements import fault, two_nodes
from tests.build.planning import Scene


@pytest.mark.parametrize(
    ("node", "pod", "words"),
    [
        ({"labels": {"disk": "slow"}}, {"nodeSelector": {"disk": "fast"}}, "selector"),
        ({"taints": ["team=:NoSchedule"]}, {}, "taint team"),
        ({"unschedulable": True}, {}, "unschedulable"),
    ],
)
def test_rules_about_nodes_are_judged_again(node: dict, pod: dict, words: str):
    scene = Scene().nodes(a_node("n0", **node))
    assert words in fault(scene, scene.gang("g", a_pod("g-0", cpu=1, **pod)), g_0="n0")


def test_a_port_is_not_given_twice():
    scene = two_nodes()
    port = [{"containerPort": 80, "hostPort": 80}]
    gang = scene.gang("g", *(a_pod(f"g-{i}", cpu=1, container={"ports": port}) for i in range(2)))
    assert "port 80" in fault(scene, gang, g_0="n0", g_1="n0")


def test_a_claim_for_one_pod_has_one_user():
    scene = two_nodes()
    claim = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    scene.cluster.change("PersistentVolumeClaim", msgspec.convert(claim, PersistentVolumeClaim))
    volume = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    gang = scene.gang("g", *(a_pod(f"g-{i}", cpu=1, volumes=volume) for i in range(2)))
    assert "claim c" in fault(scene, gang, g_0="n0", g_1="n1")


def test_a_volume_must_be_in_reach():
    scene = two_nodes()
    term = {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["r0"]}]}
    volume = {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}
    claim = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"volumeName": "pv"}}
    scene.cluster.change("PersistentVolume", msgspec.convert(volume, PersistentVolume))
    scene.cluster.change("PersistentVolumeClaim", msgspec.convert(claim, PersistentVolumeClaim))
    gang = scene.gang("g", a_pod("g-0", cpu=1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    assert "cannot reach" in fault(scene, gang, g_0="n1")
    assert fault(scene, gang, g_0="n0") == ""


def required(*expressions: dict[str, Any], fields: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions)} | ({"matchFields": fields} if fields else {})
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": needed}}


@pytest.mark.parametrize(
    ("spec", "n0", "n1"),
    [
        ({}, None, None),
        ({"nodeName": "n1"}, "by name", None),
        ({"nodeSelector": {"disk": "fast"}}, None, "selector"),
        (required({"key": "disk", "operator": "In", "values": ["fast"]}), None, "affinity"),
        (required({"key": "disk", "operator": "DoesNotExist"}), "affinity", None),
        (required(fields=[{"key": "metadata.name", "operator": "In", "values": ["n1"]}]), "affinity", None),
    ],
)
def test_each_rule_about_nodes_is_checked_for_each_node(spec: dict[str, Any], n0: str | None, n1: str | None):
    rules = NodeRules(a_pod("p", **spec))
    for node, words in ((a_node("n0", labels={"disk": "fast"}), n0), (a_node("n1"), n1)):
        for _ in range(2):  # the second time from memory
            refusal = rules.refusal(node)
            assert (refusal is None) if words is None else words in (refusal or ""), refusal


def test_a_node_that_changed_is_checked_again():
    rules = NodeRules(a_pod("p"))

    assert rules.refusal(a_node("n0")) is None
    assert rules.refusal(a_node("n0", unschedulable=True)) == "the node is unschedulable"
    assert rules.refusal(a_node("n0", taints=["team=a:NoSchedule"])) == "the taint team is not tolerated"
    assert rules.refusal(a_node("n0")) is None


def test_a_cordon_can_be_tolerated():
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}

    assert NodeRules(a_pod("p", tolerations=[toleration])).refusal(a_node("n0", unschedulable=True)) is None


def test_the_ports_of_a_pod_are_host_ports_of_what_keeps_running():
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 90}]}
    sidecar = {
        "name": "s",
        "restartPolicy": "Always",
        "ports": [{"hostPort": 1, "containerPort": 1, "protocol": "UDP"}],
    }
    starting = {"name": "i", "ports": [{"hostPort": 2, "containerPort": 2}]}

    assert list(ports_of(a_pod("p", container=ports))) == [("0.0.0.0", "TCP", 8080)]
    assert list(ports_of(a_pod("p", container=ports, hostNetwork=True)))[1] == ("0.0.0.0", "TCP", 90)
    found = list(ports_of(a_pod("p", container=ports, initContainers=[sidecar, starting])))
    assert found == [("0.0.0.0", "TCP", 8080), ("0.0.0.0", "UDP", 1)]


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        (("10.0.0.1", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), True),
        (("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 81), False),
    ],
)
def test_ports_conflict_on_one_address_or_all(other: tuple[str, str, int], conflict: bool):
    assert ports_conflict(("10.0.0.1", "TCP", 80), other) is conflict
    assert ports_conflict(other, ("10.0.0.1", "TCP", 80)) is conflict


def test_claims_are_named_or_made_for_the_pod():
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "ephemeral": {}},
        {"name": "d", "emptyDir": {}},
    ]
    assert claims_of(a_pod("p", volumes=volumes)) == [("ns", "c"), ("ns", "p-b")]


def a_claim(mode: str) -> PersistentVolumeClaim:
    raw = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"accessModes": [mode]}}
    return msgspec.convert(raw, PersistentVolumeClaim)


def test_a_running_user_of_an_exclusive_claim_counts_unless_it_is_evicted():
    user = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    cluster = a_cluster(a_node("n0"), a_claim("ReadWriteOncePod"), a_pod("running", node="n0", **user))
    new = [(a_pod("new", **user), 0)]

    assert "2 would use it" in (claims_fault(cluster, new, frozenset()) or "")
    assert claims_fault(cluster, new, frozenset({"pod-running"})) is None
    shared = a_cluster(a_node("n0"), a_claim("ReadWriteMany"), a_pod("running", node="n0", **user))
    assert claims_fault(shared, new, frozenset()) is None
