"""Manifests for clusters whose groups are custom resources can be tried like native ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.scheduler.simulation.snapshot import Snapshot
from muster.views.documents import Document
from muster.views.simulate import Answer, simulate
from tests.build.objects import a_gang, a_node
from tests.build.scheduler import a_world
from tests.cli.snapshots import snapshot_of

LABELS = {"scheduling.muster.dev/pod-group": "g"}
CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]


def group(minimum: int, version: str = "v1beta1") -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {
        "apiVersion": f"scheduling.muster.dev/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def pod(name: str) -> dict[str, Any]:
    meta = {"name": name, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": CONTAINERS}}


def job(pods: int, **labels: str) -> dict[str, Any]:
    pod = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def tried(cluster: Snapshot, *objects: dict[str, Any]) -> Answer:
    return simulate(cluster, [[Document("f", 1, obj) for obj in objects]])


def a_cluster(*objects: Any, by_label: bool = False) -> Snapshot:
    found = snapshot_of(a_world([a_node("n0", cpu=2)]).add(*objects))
    return msgspec.structs.replace(found, groups_by_label=by_label)


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
def test_a_gang_is_whole_or_waits(version: str):
    assert tried(a_cluster(), group(2, version), pod("a"), pod("b")).fits
    answer = tried(a_cluster(), group(3, version), *[pod(name) for name in "abc"])
    assert (answer.fits, len(answer.placements)) == (False, 0)


def test_the_label_in_a_template_counts():
    answer = tried(a_cluster(), group(3), job(3, **LABELS))
    assert (answer.pods, len(answer.placements)) == (3, 0)


def test_a_pod_joins_a_group_of_the_cluster():
    gang = a_gang("g", 3)
    moved = msgspec.structs.replace(gang, metadata=msgspec.structs.replace(gang.metadata, namespace="default"))
    assert tried(a_cluster(moved, by_label=True), pod("a")).pending[0].reason.endswith("1 of 3 members exist")


def test_where_groups_are_custom_resources_nobody_makes_them_for_jobs():
    assert len(tried(a_cluster(by_label=True), job(3)).placements) == 2
    assert len(tried(a_cluster(), job(3)).placements) == 0


def test_on_a_server_with_the_native_api_the_label_says_nothing():
    assert tried(a_cluster(), pod("a")).fits
