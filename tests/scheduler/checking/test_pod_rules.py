"""Rules between pods, checked on the API objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.types import Namespace, Pod, PodAffinityTerm
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.pod_rules import RunningPods, between_pods, same_domain
from tests.build.cluster import a_cluster
from tests.build.objects import HOSTNAME, RACK, ZONE, a_node, a_pod, apart, near
from tests.build.placements import fault, two_nodes


def test_members_that_repel_each_other_must_be_apart():
    scene = two_nodes()
    rule = apart("kubernetes.io/hostname", job="x")
    gang = scene.gang("g", *(a_pod(f"g-{i}", cpu=1, labels={"job": "x"}, affinity=rule) for i in range(2)))
    assert "near" in fault(scene, gang, g_0="n0", g_1="n0")
    assert fault(scene, gang, g_0="n0", g_1="n1") == ""


def test_a_running_pod_keeps_others_away():
    scene = two_nodes().running(a_pod("guard", cpu=1, node="n0", affinity=apart(ZONE, job="x")))
    gang = scene.gang("g", a_pod("g-0", cpu=1, labels={"job": "x"}))
    assert "kept away by guard" in fault(scene, gang, g_0="n1")


def test_required_company_must_be_there():
    scene = two_nodes()
    gang = scene.gang(
        "g", a_pod("g-0", cpu=1, labels={"role": "lead"}), a_pod("g-1", cpu=1, affinity=near(RACK, role="lead"))
    )
    assert "needs" in fault(scene, gang, g_0="n0", g_1="n1")
    assert fault(scene, gang, g_0="n0", g_1="n0") == ""


def test_hard_spreading_is_counted_again():
    scene = two_nodes()
    rule = {
        "maxSkew": 1,
        "topologyKey": RACK,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": "x"}},
    }
    pods = [a_pod(f"g-{i}", cpu=1, labels={"job": "x"}, topologySpreadConstraints=[rule]) for i in range(2)]
    assert "unevenly" in fault(scene, scene.gang("g", *pods), g_0="n0", g_1="n0")


def a_term(**fields: Any) -> PodAffinityTerm:
    raw = {"topologyKey": RACK, "labelSelector": {"matchLabels": {"app": "x"}}} | fields
    return msgspec.convert(raw, PodAffinityTerm)


@pytest.mark.parametrize(
    ("term", "other", "selected"),
    [
        ({}, {"labels": {"app": "x"}}, True),
        ({}, {"labels": {"app": "y"}}, False),
        ({}, {"labels": {"app": "x"}, "namespace": "else"}, False),
        ({"namespaces": ["else"]}, {"labels": {"app": "x"}, "namespace": "else"}, True),
        ({"namespaces": ["else"]}, {"labels": {"app": "x"}}, False),
        ({"namespaceSelector": {}}, {"labels": {"app": "x"}, "namespace": "known"}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {"labels": {"app": "x"}, "namespace": "known"}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, {"labels": {"app": "x"}, "namespace": "known"}, False),
        ({"matchLabelKeys": ["v"]}, {"labels": {"app": "x", "v": "1"}}, True),
        ({"matchLabelKeys": ["v"]}, {"labels": {"app": "x", "v": "2"}}, False),
        ({"matchLabelKeys": ["unset"]}, {"labels": {"app": "x"}}, True),
        ({"mismatchLabelKeys": ["v"]}, {"labels": {"app": "x", "v": "1"}}, False),
        ({"mismatchLabelKeys": ["v"]}, {"labels": {"app": "x", "v": "2"}}, True),
    ],
)
def test_a_term_selects_by_labels_and_namespace(term: dict[str, Any], other: dict[str, Any], selected: bool):
    namespace = msgspec.convert({"metadata": {"name": "known", "labels": {"team": "a"}}}, Namespace)
    running = RunningPods(a_cluster(namespace), frozenset())

    assert running.selects(a_term(**term), a_pod("owner", labels={"v": "1"}), a_pod("other", **other)) is selected


def test_running_pods_are_those_on_nodes_that_stay():
    cluster = a_cluster(
        a_node("n0"), a_pod("a", node="n0"), a_pod("b", node="n0"), a_pod("lost", node="gone"), a_pod("pending")
    )
    assert [pod.metadata.name for pod, _ in RunningPods(cluster, frozenset({"pod-b"})).pods()] == ["a"]


def test_pods_that_repel_others_are_found_near_the_given_slots():
    def a_guard(name: str, node: str, **more: Any) -> Pod:
        return a_pod(name, node=node, affinity=apart(RACK, app="x"), **more)

    cluster = a_cluster(
        *(a_node(f"n{i}", rack=f"r{i // 2}") for i in range(4)),
        a_guard("near", "n1"),
        a_guard("far", "n2"),
        a_guard("evicted", "n0"),
        a_guard("foreign", "n1", namespace="else"),
        a_pod("plain", node="n1"),
    )
    running = RunningPods(cluster, frozenset({"pod-evicted"}))

    def names(*arguments: Any) -> set[str]:
        return {pod.metadata.name for pod, _ in running.repelling(*arguments)}

    slot = cluster.index["n0"]
    assert names() == {"near", "far", "foreign"}
    assert "near" in names([slot], [a_pod("new")])
    assert "far" not in names([slot], [a_pod("new")])
    assert names([slot], [a_pod("new", namespace="third")]) == set()


def test_nodes_share_a_domain_only_with_the_label():
    one, other, without = a_node("n0", rack="r0"), a_node("n1", rack="r0"), a_node("n2")

    assert same_domain(RACK, one, other)
    assert not same_domain(RACK, one, a_node("n3", rack="r1"))
    assert not same_domain(RACK, without, a_node("n4"))


def fault_between(cluster: Cluster, *placed: tuple[Pod, str]) -> str | None:
    """The first fault between pods that are placed in this order."""
    running = RunningPods(cluster, frozenset())
    on_nodes = [(pod, cluster.node_objects[node]) for pod, node in placed]
    return between_pods(running, on_nodes, {id(pod): pod for pod, _ in placed}, list(running.repelling()))


def two_racks(*pods: Pod) -> Cluster:
    return a_cluster(a_node("n0", rack="r0"), a_node("n1", rack="r0"), a_node("n2", rack="r1"), a_node("n3"), *pods)


def test_the_first_pod_that_requires_its_own_kind_may_begin_anywhere():
    alike = a_pod("p", labels={"app": "x"}, affinity=near(RACK, app="x"))

    assert fault_between(two_racks(), (alike, "n0"), (alike, "n1")) is None
    assert "not near" in (fault_between(two_racks(), (alike, "n0"), (alike, "n2")) or "")
    assert "lacks the label" in (fault_between(two_racks(), (alike, "n3")) or "")
    there = a_pod("there", labels={"app": "x"}, node="n2")
    assert "not near" in (fault_between(two_racks(there), (alike, "n0")) or "")


def test_required_affinity_holds_at_the_moment_of_placement():
    lead, worker = a_pod("lead", labels={"role": "lead"}), a_pod("w", affinity=near(RACK, role="lead"))

    assert fault_between(two_racks(), (lead, "n0"), (worker, "n1")) is None
    assert "not near" in (fault_between(two_racks(), (worker, "n1"), (lead, "n0")) or "")


def test_anti_affinity_counts_running_and_placed_pods_in_the_domain():
    alone = a_pod("alone", affinity=apart(RACK, app="x"))
    other = a_pod("x", labels={"app": "x"})

    assert fault_between(two_racks(), (other, "n2"), (alone, "n0")) is None
    assert "too near" in (fault_between(two_racks(), (alone, "n0"), (other, "n1")) or "")
    assert "too near" in (fault_between(two_racks(a_pod("there", labels={"app": "x"}, node="n1")), (alone, "n0")) or "")
    assert fault_between(two_racks(), (alone, "n3"), (other, "n3")) is None  # without the label there is no domain


def test_anti_affinity_does_not_count_the_pod_itself():
    own = a_pod("own", labels={"app": "x"}, affinity=apart(HOSTNAME, app="x"))

    assert fault_between(two_racks(), (own, "n0"), (own, "n1")) is None
    assert "too near" in (fault_between(two_racks(), (own, "n0"), (own, "n0")) or "")


def a_spread_pod(**fields: Any) -> Pod:
    spec = {key: fields.pop(key) for key in ("nodeSelector", "tolerations") if key in fields}
    rule = {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "DoNotSchedule"} | fields
    rule["labelSelector"] = {"matchLabels": {"app": "x"}}
    return a_pod("s", labels={"app": "x", "v": "1"}, topologySpreadConstraints=[rule], **spec)


def test_spreading_counts_matching_pods_of_every_eligible_domain():
    pod = a_spread_pod()

    assert fault_between(two_racks(), (pod, "n0"), (pod, "n2")) is None
    assert fault_between(two_racks(), (pod, "n0")) is None
    assert "unevenly" in (fault_between(two_racks(), (pod, "n0"), (pod, "n1")) or "")
    assert "unevenly" in (fault_between(two_racks(a_pod("t", labels={"app": "x"}, node="n0")), (pod, "n1")) or "")
    assert fault_between(two_racks(a_pod("t", labels={"app": "y"}, node="n0")), (pod, "n1")) is None
    assert "lacks the label" in (fault_between(two_racks(), (pod, "n3")) or "")


@pytest.mark.parametrize(
    ("fields", "even"),
    [
        ({}, False),
        ({"maxSkew": 2}, True),
        ({"nodeSelector": {RACK: "r0"}}, True),  # the other rack is not eligible
        ({"nodeSelector": {RACK: "r0"}, "nodeAffinityPolicy": "Ignore"}, False),
        ({"nodeTaintsPolicy": "Honor"}, True),  # the other rack is tainted
        ({"matchLabelKeys": ["v"]}, True),  # the running pod is of another version
    ],
)
def test_which_nodes_and_pods_count_for_spreading(fields: dict[str, Any], even: bool):
    running = a_pod("t", labels={"app": "x", "v": "0"}, node="n0")
    cluster = a_cluster(a_node("n0", rack="r0"), a_node("n2", rack="r1", taints=["t=:NoSchedule"]), running)

    assert (fault_between(cluster, (a_spread_pod(**fields), "n0")) is None) is even


def test_too_few_domains_count_as_an_empty_one():
    cluster = a_cluster(a_node("n0", rack="r0"), a_pod("t", labels={"app": "x"}, node="n0"))

    assert fault_between(cluster, (a_spread_pod(), "n0")) is None
    assert "unevenly" in (fault_between(cluster, (a_spread_pod(minDomains=2), "n0")) or "")
