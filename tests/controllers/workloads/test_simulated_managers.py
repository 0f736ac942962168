"""The stand-ins do what was recorded of the real managers: the keys on pods, and what is created when."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.membership import JOB_SETS, JOBSET, LWS
from muster.api.resources import JOBS, PODS
from tests.controllers.workloads.conftest import WorkloadWorld
from tests.controllers.workloads.owners import a_jobset, a_replicated_job, an_lws

RECORDED_OF_JOBSET = {
    "jobset-name": "train",
    "replicatedjob-name": "workers",
    "replicatedjob-replicas": "2",
    "job-index": "1",
    "job-global-index": "2",
    "global-replicas": "3",
    "group-name": "default",
    "group-replicas": "3",
    "job-group-index": "2",
    "restart-attempt": "0",
}


async def run(cluster: WorkloadWorld, prefix: str) -> None:
    """Play scheduler and kubelet for the pods whose names begin so."""
    for pod in await cluster.pods():
        name = pod["metadata"]["name"]
        if name.startswith(prefix) and not pod["spec"].get("nodeName"):
            await cluster.client.bind("default", name, pod["metadata"]["uid"], "n")
            await cluster.phase(name, "Running", ready=True)
    await cluster.advance(5)


async def names(cluster: WorkloadWorld) -> list[str]:
    """The pods without what the Job controller makes up."""
    found = [pod["metadata"]["name"] for pod in await cluster.pods()]
    return sorted(name.rpartition("-")[0] if name.startswith("train") else name for name in found)


async def test_pods_of_a_jobset_carry_the_recorded_keys_as_labels_and_annotations(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    made = await cluster.submit(a_jobset(a_replicated_job("driver"), a_replicated_job("workers", 2, 2)))

    (pod, _) = [pod for pod in await cluster.pods() if pod["metadata"]["name"].startswith("train-workers-1-")]
    for kind in ("labels", "annotations"):
        found = {
            key.removeprefix(JOBSET): text for key, text in pod["metadata"][kind].items() if key.startswith(JOBSET)
        }
        assert found.pop("jobset-uid") == made["metadata"]["uid"]
        assert len(found.pop("job-key")) == 40
        assert found == RECORDED_OF_JOBSET
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] in ("0", "1")
    assert pod["spec"]["subdomain"] == "train"


async def test_jobs_in_order_come_when_those_before_them_are_ready(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    order = {"startupPolicyOrder": "InOrder"}
    await cluster.submit(a_jobset(a_replicated_job("a"), a_replicated_job("b"), startupPolicy=order))
    assert await names(cluster) == ["train-a-0-0"]

    await run(cluster, "train-a")
    assert await names(cluster) == ["train-a-0-0", "train-b-0-0"]


@pytest.mark.parametrize(("status", "phase"), [("Ready", "Running"), ("Complete", "Succeeded")])
async def test_jobs_that_depend_on_others_come_later(cluster: WorkloadWorld, status: str, phase: str):
    await cluster.begin("jobset")
    later = a_replicated_job("b", dependsOn=[{"name": "a", "status": status}])
    await cluster.submit(a_jobset(a_replicated_job("a"), later))
    await cluster.advance(5)
    assert await names(cluster) == ["train-a-0-0"]

    await run(cluster, "train-a")
    if phase == "Succeeded":
        assert await names(cluster) == ["train-a-0-0"]
        (pod,) = await cluster.pods()
        await cluster.phase(pod["metadata"]["name"], "Succeeded")
        await cluster.advance(5)
    assert "train-b-0-0" in await names(cluster)


async def test_a_failed_job_restarts_the_set_until_it_may_not_any_more(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    job = a_replicated_job("w", 2)
    job["template"]["spec"]["backoffLimit"] = 0
    await cluster.submit(a_jobset(job, failurePolicy={"maxRestarts": 1}))
    for attempt, state in ((0, None), (1, "Failed")):
        pods = [pod for pod in await cluster.pods() if not pod["metadata"].get("deletionTimestamp")]
        assert {pod["metadata"]["labels"][f"{JOBSET}restart-attempt"] for pod in pods} == {str(attempt)}
        await cluster.phase(pods[0]["metadata"]["name"], "Failed")
        await cluster.advance(60)
        found: Any = await cluster.get(JOB_SETS, "train")
        assert found["status"].get("terminalState") == state
    assert found["status"]["restarts"] == 1


async def test_a_jobset_ends_with_all_of_its_jobs(cluster: WorkloadWorld):
    await cluster.begin("jobset")
    await cluster.submit(a_jobset(a_replicated_job("w", 2)))
    for pod in await cluster.pods():
        await cluster.phase(pod["metadata"]["name"], "Succeeded")
    await cluster.advance(30)

    found: Any = await cluster.get(JOB_SETS, "train")
    assert found["status"]["terminalState"] == "Completed"
    assert len((await cluster.client.list(JOBS, "default")).items) == 2


@pytest.mark.parametrize(
    ("size", "policy", "indexes"),
    [
        (5, {"subGroupSize": 2}, ["0", "0", "0", "1", "1"]),
        (6, {"subGroupSize": 2}, ["0", "0", "1", "1", "2", "2"]),
        (5, {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}, [None, "0", "0", "1", "1"]),
    ],
)
async def test_pods_of_an_lws_carry_the_recorded_keys(
    cluster: WorkloadWorld, size: int, policy: Any, indexes: list[str | None]
):
    await cluster.begin("lws")
    await cluster.submit(an_lws(size, 1, subgroup=policy))

    pods = sorted(await cluster.pods(), key=lambda pod: int(pod["metadata"]["labels"][f"{LWS}worker-index"]))
    assert [pod["metadata"]["labels"].get(f"{LWS}subgroup-index") for pod in pods] == indexes
    for number, pod in enumerate(pods):
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        assert (labels[f"{LWS}name"], labels[f"{LWS}group-index"]) == ("serve", "0")
        assert len(labels[f"{LWS}group-key"]) == 40
        assert (annotations[f"{LWS}size"], annotations[f"{LWS}subgroup-size"]) == (str(size), "2")
        assert annotations.get(f"{LWS}leader-name") == ("serve-0" if number else None)


async def test_workers_wait_for_a_ready_leader_where_the_set_says_so(cluster: WorkloadWorld):
    await cluster.begin("lws")
    await cluster.submit(an_lws(3, 1, startupPolicy="LeaderReady"))
    assert await names(cluster) == ["serve-0"]

    await run(cluster, "serve")
    assert await names(cluster) == ["serve-0", "serve-0-1", "serve-0-2"]


async def test_a_replica_that_lost_a_pod_is_made_anew(cluster: WorkloadWorld):
    await cluster.begin("lws")
    await cluster.submit(an_lws(2, 1))
    before = {pod["metadata"]["uid"] for pod in await cluster.pods()}
    await cluster.phase("serve-0-1", "Failed")
    await cluster.advance(5)
    for pod in await cluster.pods():
        if pod["metadata"].get("deletionTimestamp"):
            await cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_period_seconds=0)
    await cluster.advance(5)

    after = {pod["metadata"]["uid"] for pod in await cluster.pods()}
    assert len(after) == 2
    assert not before & after
