"""Shapes: requests over all resources, and values computed once."""

from __future__ import annotations

from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.objects import a_node, a_pod

PROFILE = default_profile()


def test_requests_cover_every_resource_known_by_now():
    cluster = a_cluster(a_node())
    shape = evaluator_of(cluster).shape(a_pod(cpu=1, memory="1Mi"), PROFILE)
    assert shape.request_vector(cluster).tolist() == [1000, 1024**2, 1]
    cluster.change("Node", a_node("n1", extended={"example.com/gpu": 2}))
    assert shape.request_vector(cluster).tolist() == [1000, 1024**2, 1, 0]
    assert "like ns/pod" in repr(shape)


def test_a_memo_is_computed_once():
    cluster = a_cluster(a_node())
    shape = Evaluator(cluster).shape(a_pod(), default_profile())
    calls = []

    def build() -> int:
        calls.append(1)
        return len(calls)

    assert [shape.memo("key", build), shape.memo("key", build)] == [1, 1]
    assert shape.memo("other", build) == 2


def test_a_memo_with_a_version_is_computed_once_for_each_version():
    cluster = a_cluster(a_node())
    shape = Evaluator(cluster).shape(a_pod(), default_profile())
    calls = []

    def build() -> int:
        calls.append(1)
        return len(calls)

    assert [shape.memo_at("key", version, build) for version in (1, 1, 2, 2, 1)] == [1, 1, 2, 2, 3]


def test_ignored_resources_are_no_part_of_the_request():
    cluster = a_cluster(a_node())
    profile = Profile("test", [NodeResourcesFit({"ignoredResources": ["example.com/gpu"]})])
    shape = Evaluator(cluster).shape(a_pod(cpu=1, memory="1Ki", requests={"example.com/gpu": 2}), profile)
    assert shape.request_vector(cluster).tolist() == [1000, 1024, 1, 0]
    assert shape.amounts == {"cpu": 1000, "memory": 1024, "example.com/gpu": 2}
    assert shape.request_rows == ((0, 1000), (1, 1024), (3, 2))
