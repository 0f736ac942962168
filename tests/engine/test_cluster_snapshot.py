"""Snapshots of a live cluster: every kind, in the scheduler's own types, or the rights that are missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.errors import ApiError, no_such_path
from muster.api.resources import Resource
from muster.client.protocol import Page
from muster.engine.cluster_snapshot import take_snapshot
from muster.engine.group_membership import LABEL
from tests.client.scripts import obj

CORE = ["pods", "nodes", "namespaces"]


class Cluster:
    """A server with a few resources; as on a real one, the items of its lists have neither apiVersion nor kind."""

    def __init__(self, served: dict[str, list[str]], **items: list[dict[str, Any]]) -> None:
        self.served = {"/api/v1": CORE, **served}
        self.items = items
        self.forbidden: set[str] = set()

    async def request(self, method: str, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        if path not in self.served:
            raise no_such_path()
        return {"resources": [{"name": name} for name in self.served[path]]}

    async def get(self, resource: Resource, name: str, namespace: str) -> dict[str, Any]:
        raise ApiError(404, "NotFound", f"{resource.plural} {name} not found")

    async def list(self, resource: Resource, *, into: Any = None, **query: Any) -> Page:
        if resource.plural in self.forbidden:
            raise ApiError(403, "Forbidden", f"{resource.plural} is forbidden")
        found = self.items.get(resource.plural, [])
        return Page(found if into is None else [msgspec.convert(each, into) for each in found], "5")


async def test_every_kind_is_listed_and_the_schedulers_are_named():
    pods = [obj("p", 1, spec={"schedulerName": "b"}), obj("q", 2, spec={"schedulerName": "a"})]
    snapshot = await take_snapshot(Cluster({}, pods=pods, nodes=[obj("n", 3)]), "now")  # type: ignore[arg-type]

    assert [each.metadata.name for each in snapshot.objects["Pod"]] == ["p", "q"]
    assert [each.metadata.name for each in snapshot.objects["Node"]] == ["n"]
    assert snapshot.schedulers == ("a", "b")


async def test_groups_of_kubernetes_1_36_arrive_in_the_hub_version():
    groups = [obj("g", 1, spec={"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": "PodGroup"})]
    cluster = Cluster({"/apis/scheduling.k8s.io/v1alpha2": ["podgroups", "workloads"]}, podgroups=groups)

    snapshot = await take_snapshot(cluster)  # type: ignore[arg-type]

    (group,) = snapshot.objects["PodGroup"]
    assert group.spec.disruption_mode.all is not None


async def test_with_crds_the_label_names_the_group():
    pod = obj("p", 1)
    pod["metadata"]["labels"] = {LABEL: "g"}
    crds = {"/apis/scheduling.muster.dev/v1alpha3": ["podgroups", "workloads", "compositepodgroups"]}

    snapshot = await take_snapshot(Cluster(crds, pods=[pod]))  # type: ignore[arg-type]

    assert snapshot.objects["Pod"][0].spec.scheduling_group.pod_group_name == "g"


async def test_all_missing_rights_are_named_at_once():
    cluster = Cluster({})
    cluster.forbidden = {"pods", "nodes"}

    with pytest.raises(ApiError, match="listing nodes, pods in the whole cluster is forbidden"):
        await take_snapshot(cluster)  # type: ignore[arg-type]
