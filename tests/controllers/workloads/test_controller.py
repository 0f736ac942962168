"""The controller of workloads: what it makes, follows, leaves alone and removes, and its bad days."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.errors import ApiError
from muster.api.membership import JOB_SETS, JOBSET, LEADER_WORKER_SETS, OWNER_KIND, OWNER_NAME, POD_GROUP_LABEL
from muster.api.resources import (
    COMPOSITE_POD_GROUPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    STATEFUL_SETS,
    WORKLOADS,
)
from muster.controllers.objects import UnstructuredObject
from muster.controllers.simulated_managers.leader_worker_set import revision_of
from muster.controllers.workloads.controller import WorkloadController
from muster.server.admission.workload_groups import WorkloadGroups
from tests.controllers.workloads.conftest import WorkloadWorld
from tests.controllers.workloads.owners import a_jobset, a_replicated_job, a_template, an_lws, ours

NOTHING: dict[str, list[str]] = {"Workload": [], "CompositePodGroup": [], "PodGroup": []}
ONLY = (WorkloadController.name, "customresourcedefinition-controller")


async def group(cluster: WorkloadWorld, name: str) -> Any:
    return await cluster.get(POD_GROUPS, name)


async def minimum(cluster: WorkloadWorld, name: str) -> Any:
    found = await group(cluster, name)
    return found["spec"]["schedulingPolicy"]["gang"]["minCount"]


async def run_all(cluster: WorkloadWorld) -> None:
    """Play scheduler and kubelet: everything is bound, runs and is ready."""
    for pod in await cluster.pods():
        if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
            await cluster.client.bind("default", pod["metadata"]["name"], pod["metadata"]["uid"], "n")
        if pod["status"].get("phase") not in ("Running", "Succeeded", "Failed"):
            await cluster.phase(pod["metadata"]["name"], "Running", ready=True)
    await cluster.settle()


# --- made ------------------------------------------------------------------------------------------


async def test_a_jobset_gets_its_tree_and_its_pods_are_in_it(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    made = await cluster.submit(a_jobset(a_replicated_job("driver"), a_replicated_job("workers", 2, 3)))

    uid = made["metadata"]["uid"][:8]
    assert await cluster.names() == {
        "Workload": [f"train-{uid}-0"],
        "CompositePodGroup": [f"train-{uid}-0", f"train-workers-{uid}-0"],
        "PodGroup": [f"train-driver-0-{uid}-0", f"train-workers-0-{uid}-0", f"train-workers-1-{uid}-0"],
    }
    leaves = [await cluster.leaf_of(pod) for pod in await cluster.pods()]
    assert {name: leaves.count(name) for name in leaves} == {
        f"train-driver-0-{uid}-0": 1,
        f"train-workers-0-{uid}-0": 3,
        f"train-workers-1-{uid}-0": 3,
    }
    for name in leaves:
        meta = (await group(cluster, name))["metadata"]
        assert (meta["labels"][OWNER_KIND], meta["labels"][OWNER_NAME]) == ("JobSet", "train")
        owners = [(each["kind"], each.get("controller", False)) for each in meta["ownerReferences"]]
        assert owners == [("JobSet", True), ("Workload", False)]


async def test_an_lws_gets_a_group_for_each_replica(cluster: WorkloadWorld):
    await cluster.begin("lws")
    await cluster.submit(an_lws(3, 2))

    pods = await cluster.pods()
    assert len(pods) == 6
    assert (await cluster.names())["PodGroup"] == sorted({await cluster.leaf_of(pod) for pod in pods})
    assert [await minimum(cluster, name) for name in (await cluster.names())["PodGroup"]] == [3, 3]


async def test_everything_goes_with_its_owner(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    await cluster.submit(a_jobset(a_replicated_job("a"), a_replicated_job("b", 2)))
    await cluster.client.delete(JOB_SETS, "train", "default")
    await cluster.settle()
    for pod in await cluster.pods():
        await cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period_seconds=0)
    await cluster.settle()

    assert await cluster.names() == NOTHING


async def test_a_stateful_set_is_a_gang_only_where_its_template_says_so(cluster: WorkloadWorld):
    await cluster.begin()
    for name, template in (("plain", a_template()), ("gang", a_template(gang="all"))):
        template["metadata"] = {**template.get("metadata", {}), "labels": {"app": name}}
        template["spec"]["restartPolicy"] = "Always"
        spec = {"replicas": 2, "podManagementPolicy": "Parallel", "serviceName": "s", "template": template}
        await cluster.create(STATEFUL_SETS, name, spec={**spec, "selector": {"matchLabels": {"app": name}}})
    await cluster.settle()

    (name,) = (await cluster.names())["PodGroup"]
    assert name.startswith("gang-")
    assert await minimum(cluster, name) == 2


async def test_groups_of_plain_pods_live_as_long_as_their_pods(cluster: WorkloadWorld):
    await cluster.begin()
    meta = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    }
    for name in ("a", "b"):
        await cluster.pod(name, metadata=meta)
    await cluster.settle()
    assert await minimum(cluster, "g") == 2

    for name in ("a", "b"):
        await cluster.client.delete(PODS, name, "default", grace_period_seconds=0)
    await cluster.settle()
    assert await cluster.names() == NOTHING


async def test_pods_of_another_scheduler_get_nothing(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    template = a_template()
    template["spec"]["schedulerName"] = "other"
    await cluster.submit(a_jobset(a_replicated_job("w", 2, 2, template)))

    assert len(await cluster.pods()) == 4
    assert await cluster.names() == NOTHING


async def test_who_names_a_group_is_left_alone(cluster: WorkloadWorld):
    await cluster.begin()
    await cluster.pod("p", metadata={"labels": {POD_GROUP_LABEL: "mine"}})
    await cluster.advance(60)

    assert await cluster.names() == NOTHING
    assert await cluster.leaf_of((await cluster.pods())[0]) == "mine"


async def test_a_jobset_of_another_cluster_gets_nothing(cluster: WorkloadWorld):
    await cluster.begin(which=ONLY)
    await cluster.define("jobset")
    await cluster.settle()
    await cluster.submit(a_jobset(a_replicated_job("w", 2), managedBy="kueue.x-k8s.io/multikueue"))

    assert await cluster.names() == NOTHING


# --- followed --------------------------------------------------------------------------------------


async def test_a_suspended_jobset_loses_its_groups_with_its_pods_and_gets_them_back(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    await cluster.submit(a_jobset(a_replicated_job("a"), a_replicated_job("b", 2)))
    before = await cluster.names()
    await cluster.client.patch(JOB_SETS, "train", {"spec": {"suspend": True}}, "default")
    await cluster.advance(5)
    for pod in await cluster.pods():
        await cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period_seconds=0)
    await cluster.advance(5)
    assert await cluster.pods() == []
    assert await cluster.names() == NOTHING

    await cluster.client.patch(JOB_SETS, "train", {"spec": {"suspend": False}}, "default")
    await cluster.advance(30)
    assert await cluster.names() == before


async def test_a_restarted_jobset_has_groups_of_both_attempts_until_the_old_pods_are_gone(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    made = await cluster.submit(a_jobset(a_replicated_job("w", 2, 1), failurePolicy={"maxRestarts": 3}))
    uid = made["metadata"]["uid"][:8]
    await run_all(cluster)
    await cluster.client.patch(JOB_SETS, "train", {"status": {"restarts": 1}}, "default", subresource="status")
    await cluster.settle()
    old = {f"train-w-0-{uid}-0", f"train-w-1-{uid}-0"}
    new = {f"train-w-0-{uid}-1", f"train-w-1-{uid}-1"}
    assert set((await cluster.names())["PodGroup"]) == old | new
    for name in old:
        assert "deletionTimestamp" not in (await group(cluster, name))["metadata"]

    for pod in await cluster.pods():
        if pod["metadata"]["labels"][f"{JOBSET}restart-attempt"] == "0":
            await cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period_seconds=0)
    await cluster.advance(60)
    assert set((await cluster.names())["PodGroup"]) == new
    assert {await cluster.leaf_of(pod) for pod in await cluster.pods()} == new


async def test_a_minimum_shrinks_at_once_and_grows_with_its_pods(cluster: WorkloadWorld):
    await cluster.begin(which=ONLY)
    template = a_template(gang="all")
    template["metadata"]["labels"] = {"app": "s"}
    template["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": 2, "podManagementPolicy": "Parallel", "serviceName": "s", "template": template}
    made = await cluster.create(STATEFUL_SETS, "s", spec={**spec, "selector": {"matchLabels": {"app": "s"}}})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": made["metadata"]["uid"]}
    meta = {**template["metadata"], "ownerReferences": [{**owner, "controller": True}]}
    for name in ("s-0", "s-1"):
        await cluster.pod(name, metadata=meta)
    await cluster.settle()
    (name,) = (await cluster.names())["PodGroup"]
    assert await minimum(cluster, name) == 2

    await cluster.client.patch(STATEFUL_SETS, "s", {"spec": {"replicas": 1}}, "default")
    await cluster.settle()
    assert await minimum(cluster, name) == 1

    running = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": ""}
    running["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    await cluster.client.patch(POD_GROUPS, name, {"status": {"conditions": [running]}}, "default", subresource="status")
    await cluster.client.patch(STATEFUL_SETS, "s", {"spec": {"replicas": 3}}, "default")
    await cluster.settle()
    assert await minimum(cluster, name) == 1

    await cluster.pod("s-2", metadata=meta)
    await cluster.settle()
    assert await minimum(cluster, name) == 3


async def test_a_rolling_update_never_mixes_revisions(cluster: WorkloadWorld):
    await cluster.begin("lws")
    await cluster.submit(an_lws(2, 2))
    await run_all(cluster)
    before = (await cluster.names())["PodGroup"]
    patch = {"spec": {"leaderWorkerTemplate": {"size": 3}}}
    await cluster.client.patch(LEADER_WORKER_SETS, "serve", patch, "default")
    for _ in range(12):
        await cluster.advance(5)
        for pod in await cluster.pods():
            if pod["metadata"].get("deletionTimestamp"):
                await cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period_seconds=0)
        await run_all(cluster)

    after = (await cluster.names())["PodGroup"]
    assert not set(before) & set(after)
    assert [await minimum(cluster, name) for name in after] == [3, 3]
    sizes = [await cluster.leaf_of(pod) for pod in await cluster.pods()]
    assert sorted(sizes.count(name) for name in after) == [3, 3]


async def test_a_kind_is_followed_from_its_definition_on_and_its_groups_end_with_it(cluster: WorkloadWorld):
    await cluster.begin()
    await cluster.define("jobset")
    await cluster.settle()
    await cluster.submit(a_jobset(a_replicated_job("a"), a_replicated_job("b")))
    assert len((await cluster.names())["PodGroup"]) == 2

    await cluster.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "jobsets.jobset.x-k8s.io")
    await cluster.advance(10)
    assert await cluster.names() == NOTHING


# --- bad days --------------------------------------------------------------------------------------


async def test_a_wrong_annotation_is_an_event_on_the_workload_once(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    await cluster.submit(a_jobset(a_replicated_job("w", 2), annotations=ours(gang_level="everything")))
    await run_all(cluster)

    events = await cluster.events()
    assert "must be one of set, role, replica" in events["BadAnnotation"]


async def test_pods_whose_workload_nobody_knows_start_one_by_one_and_it_is_said(cluster: WorkloadWorld):
    await cluster.begin()
    labels = {
        f"{JOBSET}jobset-name": "lost",
        f"{JOBSET}jobset-uid": "abc",
        f"{JOBSET}restart-attempt": "0",
        "batch.kubernetes.io/job-name": "lost-w-0",
    }
    await cluster.pod("p", metadata={"labels": labels})
    await cluster.advance(29)
    assert await cluster.names() == NOTHING

    await cluster.advance(2)
    assert (await group(cluster, "lost-w-0-abc-0"))["spec"]["schedulingPolicy"] == {"basic": {}}
    assert "JobSet lost is of a kind that the server does not have" in (await cluster.events())["GroupOwnerUnknown"]

    await cluster.client.delete(PODS, "p", "default", grace_period_seconds=0)
    await cluster.settle()
    assert await cluster.names() == NOTHING


async def test_a_name_that_is_taken_is_said_and_never_touched(cluster: WorkloadWorld):
    await cluster.begin("lws")
    lws = an_lws(2, 1)
    name = f"serve-0-{revision_of(msgspec.convert(lws, UnstructuredObject))}"
    before = await cluster.create(POD_GROUPS, name, spec={"schedulingPolicy": {"basic": {}}})
    await cluster.submit(lws)

    assert (await group(cluster, name))["spec"] == before["spec"]
    assert "belongs to somebody else" in (await cluster.events())["GroupNameTaken"]


async def test_a_missing_right_is_an_event(cluster: WorkloadWorld, monkeypatch: pytest.MonkeyPatch):
    await cluster.begin("jobset")
    create = cluster.client.create

    async def refuse(resource: Any, *args: Any, **more: Any) -> Any:
        if resource.plural in ("podgroups", "compositepodgroups", "workloads"):
            raise ApiError(403, "Forbidden", "podgroups is forbidden")
        return await create(resource, *args, **more)

    monkeypatch.setattr(cluster.client, "create", refuse)
    await cluster.submit(a_jobset(a_replicated_job("w", 2)))
    assert "podgroups is forbidden" in (await cluster.events())["MissingRights"]

    monkeypatch.setattr(cluster.client, "create", create)
    await cluster.advance(61)
    assert len((await cluster.names())["PodGroup"]) == 2


async def test_two_hundred_jobsets_at_once(cluster: WorkloadWorld):
    await cluster.begin(which=ONLY)
    await cluster.define("jobset")
    await cluster.settle()
    for number in range(200):
        owner = a_jobset(a_replicated_job("a"), a_replicated_job("b"))
        meta = {"name": f"train-{number}", "namespace": "default"}
        await cluster.client.create(JOB_SETS, {**owner, "metadata": meta}, "default")
    await cluster.settle()

    names = await cluster.names()
    assert (len(names["Workload"]), len(names["CompositePodGroup"]), len(names["PodGroup"])) == (200, 200, 400)


async def test_what_is_made_by_hand_among_our_groups_is_not_deleted(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    made = await cluster.submit(a_jobset(a_replicated_job("a"), a_replicated_job("b")))
    owner = {"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "name": "train", "uid": made["metadata"]["uid"]}
    meta = {"ownerReferences": [{**owner, "controller": True}]}
    await cluster.create(POD_GROUPS, "by-hand", metadata=meta, spec={"schedulingPolicy": {"basic": {}}})
    await cluster.advance(5)

    assert await group(cluster, "by-hand") is not None


async def test_a_group_that_somebody_deleted_is_made_again(cluster: WorkloadWorld):
    await cluster.begin(which=ONLY)
    await cluster.define("jobset")
    await cluster.settle()
    await cluster.submit(a_jobset(a_replicated_job("a"), a_replicated_job("b")))
    (root,) = (await cluster.names())["CompositePodGroup"]
    for name in (await cluster.names())["PodGroup"]:
        await cluster.client.patch(POD_GROUPS, name, {"metadata": {"finalizers": None}}, "default")
        await cluster.client.delete(POD_GROUPS, name, "default")
    await cluster.advance(5)

    assert len((await cluster.names())["PodGroup"]) == 2
    assert await cluster.get(COMPOSITE_POD_GROUPS, root) is not None
    assert len((await cluster.names())["Workload"]) == 1
    assert await cluster.get(WORKLOADS, root) is not None


async def test_a_managed_namespace_needs_no_mention_of_us(cluster: WorkloadWorld):
    hooks = cluster.server.backend.hooks
    hooks.join_group = WorkloadGroups(("muster",))
    await cluster.client.create(
        NAMESPACES, {"metadata": {"name": "m", "labels": {"scheduling.muster.dev/managed": "true"}}}
    )
    meta = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}
    body = {"metadata": {"name": "p", **meta}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    there = await cluster.client.create(PODS, body, "m")
    here = await cluster.client.create(PODS, body, "default")

    assert (there["spec"]["schedulerName"], await cluster.leaf_of(there)) == ("muster", "g")
    assert (here["spec"]["schedulerName"], await cluster.leaf_of(here)) == ("default-scheduler", "")
