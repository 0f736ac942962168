"""The controller beside a server that it does not run: kinds are looked for, groups may be custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.crds import crds
from muster.api.membership import JOB_SETS
from muster.api.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, WORKLOADS, Resource
from muster.controllers import ControllerManager
from muster.controllers.controller import Controller
from muster.controllers.external_clusters import CRD_COMPOSITES, CRD_POD_GROUPS, ON_CRDS
from muster.controllers.workloads.controller import DISCOVERY_PERIOD, WorkloadController
from muster.controllers.workloads.settings import WorkloadSettings, settings_for
from tests.controllers.workloads.conftest import NAMES, WorkloadWorld
from tests.controllers.workloads.owners import a_jobset, a_replicated_job

CRD_WORKLOADS = WORKLOADS._replace(group=CRD_POD_GROUPS.group)


COUNT = "kueue.x-k8s.io/pod-group-total-count"


async def begin(cluster: WorkloadWorld, settings: WorkloadSettings | None, *more: type[Controller]) -> None:
    cluster.manager = ControllerManager(
        cluster.client,
        clock=cluster.clock,
        collections=(),
        controllers=(*more, WorkloadController),
        workloads=settings,
    )
    cluster.follow(cluster.manager.run())
    await cluster.manager.ready.wait()
    await cluster.settle()


async def names(cluster: WorkloadWorld, resource: Resource) -> list[str]:
    return [each["metadata"]["name"] for each in (await cluster.client.list(resource, "default")).items]


def two_jobs() -> Any:
    return a_jobset(a_replicated_job("a"), a_replicated_job("b"))


async def test_a_kind_is_found_when_it_is_there_and_let_go_when_it_is_not(cluster: WorkloadWorld):
    await begin(cluster, WorkloadSettings(NAMES, discovers=True))
    await cluster.define("jobset")
    await cluster.advance(DISCOVERY_PERIOD + 1)
    await cluster.submit(two_jobs())
    assert len((await cluster.names())["PodGroup"]) == 2

    name = "jobsets.jobset.x-k8s.io"
    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    await cluster.client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"metadata": {"finalizers": None}})
    await cluster.advance(DISCOVERY_PERIOD + 1)
    await cluster.define("jobset")
    await cluster.advance(DISCOVERY_PERIOD + 1)
    other = two_jobs()
    other["metadata"]["name"] = "again"
    await cluster.submit(other)
    assert any(name.startswith("again-") for name in (await cluster.names())["PodGroup"])


async def test_a_kind_that_may_not_be_read_is_named(
    cluster: WorkloadWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    request = cluster.client.request
    refused = True

    async def review(method: str, path: str, body: Any = None, query: Any = None) -> Any:
        if path.endswith("/selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]["resource"]
            return {"status": {"allowed": not (refused and asked == "jobsets")}}
        return await request(method, path, body, query)

    monkeypatch.setattr(cluster.client, "request", review)
    await cluster.define("jobset")
    await begin(cluster, WorkloadSettings(NAMES, discovers=True))
    await cluster.submit(two_jobs())
    assert (await cluster.names())["PodGroup"] == []
    assert any("No groups are made for a kind" in record.message for record in caplog.records)

    refused = False
    await cluster.advance(DISCOVERY_PERIOD + 1)
    assert len((await cluster.names())["PodGroup"]) == 2


async def test_groups_that_are_custom_resources_are_made_as_such(cluster: WorkloadWorld):
    for each in crds():
        await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, each)
    await cluster.define("jobset")
    settings = settings_for(NAMES, (CRD_POD_GROUPS, CRD_COMPOSITES, CRD_WORKLOADS), discovers=True)
    assert settings is not None
    await begin(cluster, settings)
    await cluster.submit(two_jobs())

    assert await cluster.names() == {"Workload": [], "CompositePodGroup": [], "PodGroup": []}
    counts = [len(await names(cluster, each)) for each in (CRD_WORKLOADS, CRD_COMPOSITES, CRD_POD_GROUPS)]
    assert counts == [1, 1, 2]

    await cluster.client.patch(JOB_SETS, "train", {"spec": {"suspend": True}}, "default")
    await cluster.advance(5)
    counts = [len(await names(cluster, each)) for each in (CRD_WORKLOADS, CRD_COMPOSITES, CRD_POD_GROUPS)]
    assert counts == [0, 0, 0]


async def test_members_without_a_label_keep_their_group_that_is_a_custom_resource(cluster: WorkloadWorld):
    for each in crds():
        await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, each)
    settings = settings_for(NAMES, (CRD_POD_GROUPS, CRD_COMPOSITES, CRD_WORKLOADS), discovers=True)
    cluster.server.backend.hooks.join_group = None  # nothing is written on pods
    await begin(cluster, settings, *ON_CRDS)
    meta = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}, "annotations": {COUNT: "1"}}
    await cluster.pod("p", metadata=meta, schedulerName="muster")
    await cluster.settle()
    before: Any = await cluster.get(CRD_POD_GROUPS, "g")

    await cluster.client.delete(CRD_POD_GROUPS, "g", "default")
    await cluster.advance(5)
    after: Any = await cluster.get(CRD_POD_GROUPS, "g")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]  # protected while its pod is there

    await cluster.client.delete(PODS, "p", "default", grace_period_seconds=0)
    await cluster.advance(5)
    assert await names(cluster, CRD_POD_GROUPS) == []


def test_where_groups_are_not_served_there_are_no_settings():
    assert settings_for(NAMES, (), discovers=True) is None
