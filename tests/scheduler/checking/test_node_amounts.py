"""Requests and allocatable amounts, added up from the API objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.scheduler.checking.node_amounts import amounts_of, requests
from tests.build.cluster import a_cluster
from tests.build.objects import a_node, a_pod
from tests.build.placements import fault, two_nodes


def test_init_containers_sidecars_and_overhead_are_added_up():
    scene = two_nodes()
    request = {"resources": {"requests": {"cpu": "500m"}}}
    heavy = a_pod(
        "g-0",
        cpu=1,
        initContainers=[{**request, "restartPolicy": "Always"}, {"resources": {"requests": {"cpu": "1800m"}}}],
    )
    assert "cpu" in fault(scene, scene.gang("g", heavy), g_0="n0")
    light = a_pod("h-0", cpu=1, overhead={"cpu": "1100m"})
    assert "cpu" in fault(scene, scene.gang("h", light), h_0="n0")


def cpu(amount: str, **more: Any) -> dict[str, Any]:
    return {"name": "x", "resources": {"requests": {"cpu": amount}}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 1000),
        ({"containers": [cpu("1"), cpu("500m")]}, 1500),
        ({"initContainers": [cpu("3"), cpu("2")]}, 3000),  # one after the other
        ({"initContainers": [cpu("2", restartPolicy="Always"), cpu("3")]}, 5000),  # the sidecar runs beside the second
        ({"initContainers": [cpu("3"), cpu("2", restartPolicy="Always")]}, 3000),
        ({"initContainers": [cpu("2", restartPolicy="Always")]}, 3000),  # sidecar and container
        ({"overhead": {"cpu": "250m"}}, 1250),
        ({"resources": {"requests": {"cpu": "4"}}}, 4000),
        ({"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}}, 5000),
    ],
)
def test_a_pod_requests_the_larger_of_its_start_and_its_steady_state(spec: dict[str, Any], expected: int):
    assert requests(a_pod("p", **spec)) == {"cpu": expected}


def test_only_resources_that_the_scheduler_compares_are_counted():
    pod = a_pod("p", cpu=None, requests={"memory": "1Ki", "nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi", "secret": 7})
    spec = {"requests": {"nvidia.com/gpu": "5", "memory": "3Ki"}}  # of a pod as a whole only cpu, memory and hugepages

    assert requests(pod) == {"memory": 1024, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 * 2**20}
    assert requests(a_pod("q", cpu=None, requests={"nvidia.com/gpu": 2}, resources=spec)) == {
        "nvidia.com/gpu": 2,
        "memory": 3072,
    }
    assert requests(a_pod("none", cpu=0)) == {}


def test_what_pods_request_of_a_node_follows_every_change_of_its_pods():
    first, second = a_pod("a", cpu=1, node="n0"), a_pod("b", cpu=2, memory="1Ki", node="n0")
    cluster = a_cluster(a_node("n0"), first)
    amounts = amounts_of(cluster)
    assert amounts.requested(0, frozenset()) == {"pods": 1, "cpu": 1000}

    cluster.change("Pod", second)
    assert amounts.requested(0, frozenset()) == {"pods": 2, "cpu": 3000, "memory": 1024}
    assert amounts.requested(0, frozenset({"pod-a"})) == {"pods": 1, "cpu": 2000, "memory": 1024}
    assert amounts.requested(0, frozenset({"pod-other"})) == {"pods": 2, "cpu": 3000, "memory": 1024}

    cluster.change("Pod", a_pod("a", cpu=4, node="n0"))
    assert amounts.requested(0, frozenset())["cpu"] == 6000
    cluster.remove("Pod", "ns", "b", "pod-b")
    assert amounts.requested(0, frozenset()) == {"pods": 1, "cpu": 4000}
    assert amounts.requested(7, frozenset()) == {"pods": 0}


def test_what_a_node_has_is_that_of_the_object_as_it_is_now():
    node = a_node("n0", cpu="1500m", memory="2Ki", pods=9)
    cluster = a_cluster(node)
    amounts = amounts_of(cluster)

    assert amounts.allocatable(node) == {"cpu": 1500, "memory": 2048, "pods": 9}
    assert amounts.allocatable(a_node("n0", cpu=3))["cpu"] == 3000
    assert amounts_of(cluster) is amounts


def test_a_pod_is_read_once_and_again_when_it_is_another_object():
    amounts = amounts_of(a_cluster())
    pod = a_pod("p", cpu=2)

    assert amounts.shape(pod) is amounts.shape(pod)
    assert amounts.shape(msgspec.structs.replace(pod)) is not amounts.shape(pod)


@pytest.mark.parametrize(
    ("spec", "depends", "volumes"),
    [
        ({}, False, False),
        ({"affinity": {"nodeAffinity": {}}}, False, False),
        ({"affinity": {"podAffinity": {}}}, True, False),
        ({"affinity": {"podAntiAffinity": {}}}, True, False),
        ({"volumes": [{"name": "v"}]}, False, True),
    ],
)
def test_it_is_known_which_pods_depend_on_others_and_which_have_volumes(spec: Any, depends: bool, volumes: bool):
    shape = amounts_of(a_cluster()).shape(a_pod("p", **spec))

    assert (shape.depends_on_pods, shape.has_volumes) == (depends, volumes)
