"""Admission: what a kubelet would ask about an assumed pod, asked again."""

from __future__ import annotations

import pytest

from muster.api.types import Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.admission import admission_fault
from tests.build.cluster import a_cluster
from tests.build.objects import a_node, a_pod


def assumed(pod: Pod, *there: Pod, **node: object) -> Cluster:
    cluster = a_cluster(a_node("n0", **{"cpu": 2, **node}), *there)
    cluster.assume(pod, "n0")
    return cluster


def fault(cluster: Cluster, ignored: str = "") -> str | None:
    return admission_fault(cluster, "pod-p", lambda name: name == ignored)


def test_a_pod_that_fits_is_admitted():
    assert fault(assumed(a_pod("p", cpu=1), a_pod("other", cpu=1, node="n0"))) is None


@pytest.mark.parametrize(
    ("other", "what"),
    [(a_pod("other", cpu=2, node="n0"), "cpu"), (a_pod("other", cpu=0, memory="64Gi", node="n0"), "memory")],
)
def test_a_resource_that_the_pod_requests_is_exhausted(other: Pod, what: str):
    cluster = assumed(a_pod("p", cpu=1, memory="1Gi"), other, memory="64Gi")
    assert what in (fault(cluster) or "")
    assert fault(cluster, what) is None


def test_a_resource_that_the_pod_does_not_request_may_be_exhausted():
    assert fault(assumed(a_pod("p", cpu=1), a_pod("other", cpu=0, memory="64Gi", node="n0"), memory="1Gi")) is None


def test_the_number_of_pods_counts():
    assert "pods" in (fault(assumed(a_pod("p", cpu=0), a_pod("other", cpu=0, node="n0"), pods=1)) or "")


def test_a_pod_that_is_not_placed_has_a_fault():
    assert fault(a_cluster(a_node("n0"))) == "the pod is no longer placed there"
