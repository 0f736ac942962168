"""Jobs run pods to completion."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.resources import JOBS, POD_GROUPS, PODS, WORKLOADS
from muster.api.types import INDEX_FAILURES
from muster.controllers.job_counts import format_indexes, parse_indexes
from tests.controllers.conftest import World

NAME = "job-controller"
INDEX = "batch.kubernetes.io/job-completion-index"


def conditions(job: Any) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in job["status"].get("conditions", [])}


async def live(world: World) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in await world.pods()
        if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]
    ]


async def test_a_job_runs_as_many_pods_at_once_as_it_says(world: World):
    await world.start(NAME)
    await world.job(parallelism=3, completions=5)
    await world.settle()

    job = await world.get(JOBS, "j")
    assert len(await world.pods()) == 3
    assert job["status"]["active"] == 3
    assert job["status"]["startTime"]


async def test_pods_of_a_job_belong_to_it_and_keep_their_group(world: World):
    await world.start(NAME)
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "restartPolicy": "Never",
            "schedulingGroup": {"podGroupName": "gang"},
        },
    }
    job = await world.job(template=template)
    await world.settle()

    pod = (await world.pods())[0]
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "gang"}
    assert pod["metadata"]["labels"]["app"] == "x"
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"
    owner = pod["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", job["metadata"]["uid"], True)


async def test_a_job_is_complete_when_enough_pods_have_succeeded(world: World):
    await world.start(NAME)
    await world.job(parallelism=2, completions=3)
    await world.settle()

    for _ in range(3):
        await world.phase((await live(world))[0], "Succeeded")

    job = await world.get(JOBS, "j")
    assert job["status"]["succeeded"] == 3
    assert conditions(job)["Complete"] == ("True", "CompletionsReached")
    assert job["status"]["completionTime"]
    assert "active" not in job["status"]
    assert len(await world.pods()) == 3


async def test_an_indexed_job_runs_every_index_once(world: World):
    await world.start(NAME)
    await world.job(parallelism=3, completions=3, completionMode="Indexed")
    await world.settle()

    pods = await world.pods()
    assert sorted(pod["metadata"]["labels"][INDEX] for pod in pods) == ["0", "1", "2"]
    assert [pod["metadata"]["name"][:4] for pod in pods] == ["j-0-", "j-1-", "j-2-"]
    assert pods[1]["metadata"]["annotations"][INDEX] == "1"

    await world.phase(pods[0]["metadata"]["name"], "Succeeded")
    await world.phase(pods[2]["metadata"]["name"], "Succeeded")
    assert (await world.get(JOBS, "j"))["status"]["completedIndexes"] == "0,2"


async def test_an_index_whose_pod_was_deleted_gets_another(world: World):
    await world.start(NAME)
    await world.job(parallelism=2, completions=2, completionMode="Indexed")
    await world.settle()
    first = (await world.pods())[0]["metadata"]["name"]

    await world.client.delete(PODS, first, "default", grace_period_seconds=0)
    await world.settle()

    pods = await world.pods()
    assert sorted(pod["metadata"]["labels"][INDEX] for pod in pods) == ["0", "1"]
    assert first not in [pod["metadata"]["name"] for pod in pods]
    assert "failed" not in (await world.get(JOBS, "j"))["status"]


async def test_a_failed_pod_is_replaced_after_a_pause(world: World):
    await world.start(NAME)
    await world.job()
    await world.settle()

    await world.phase((await live(world))[0], "Failed")
    assert await live(world) == []

    await world.advance(10)
    assert len(await live(world)) == 1
    assert (await world.get(JOBS, "j"))["status"]["failed"] == 1


async def test_a_job_fails_when_its_backoff_limit_is_exceeded(world: World):
    await world.start(NAME)
    await world.job(backoffLimit=1)
    await world.settle()

    await world.phase((await live(world))[0], "Failed")
    await world.advance(10)
    await world.phase((await live(world))[0], "Failed")

    job = await world.get(JOBS, "j")
    assert conditions(job)["Failed"] == ("True", "BackoffLimitExceeded")
    await world.advance(1000)
    assert await live(world) == []


async def test_a_job_fails_when_its_time_is_up(world: World):
    await world.start(NAME)
    await world.job(activeDeadlineSeconds=30)
    await world.advance(29)
    assert len(await live(world)) == 1

    await world.advance(2)

    assert conditions(await world.get(JOBS, "j"))["Failed"] == ("True", "DeadlineExceeded")
    assert await live(world) == []


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(world: World):
    await world.start(NAME)
    await world.job(parallelism=2, completions=2, suspend=True)
    await world.settle()
    assert await world.pods() == []
    assert conditions(await world.get(JOBS, "j"))["Suspended"] == ("True", "JobSuspended")

    await world.client.patch(JOBS, "j", {"spec": {"suspend": False}}, "default")
    await world.settle()
    assert len(await world.pods()) == 2
    assert conditions(await world.get(JOBS, "j"))["Suspended"] == ("False", "JobResumed")

    await world.client.patch(JOBS, "j", {"spec": {"suspend": True}}, "default")
    await world.settle()
    job = await world.get(JOBS, "j")
    assert await live(world) == []
    assert "startTime" not in job["status"]


async def test_fewer_at_once_means_that_pods_go(world: World):
    await world.start(NAME)
    await world.job(parallelism=4, completions=9)
    await world.settle()

    await world.client.patch(JOBS, "j", {"spec": {"parallelism": 1}}, "default")
    await world.settle()

    assert len(await live(world)) == 1


async def test_a_finished_job_goes_when_its_lifetime_is_over(world: World):
    await world.start(NAME, "garbage-collector")
    await world.job(ttlSecondsAfterFinished=60)
    await world.settle()
    await world.phase((await live(world))[0], "Succeeded")

    await world.advance(59)
    assert await world.get(JOBS, "j") is not None
    await world.advance(2)
    assert await world.get(JOBS, "j") is None
    assert await world.pods() == []


async def test_a_restarted_controller_goes_on_counting(world: World):
    await world.start(NAME)
    await world.job(parallelism=1, completions=3)
    await world.settle()
    await world.phase((await live(world))[0], "Succeeded")
    await world.stop()
    done = next(pod for pod in await world.pods() if pod["status"]["phase"] == "Succeeded")
    await world.client.delete(PODS, done["metadata"]["name"], "default")

    await world.start(NAME)
    await world.phase((await live(world))[0], "Succeeded")
    await world.phase((await live(world))[0], "Succeeded")

    assert conditions(await world.get(JOBS, "j"))["Complete"][0] == "True"


async def test_no_pod_is_made_twice_however_often_the_job_is_looked_at(world: World):
    await world.start(NAME)
    await world.job(parallelism=50, completions=50, completionMode="Indexed")
    for turn in range(5):
        await world.client.patch(JOBS, "j", {"metadata": {"labels": {"turn": str(turn)}}}, "default")
    await world.settle()

    assert len({pod["metadata"]["labels"][INDEX] for pod in await world.pods()}) == 50
    assert len(await world.pods()) == 50


async def test_a_job_that_asks_for_a_gang_gets_its_workload_and_group_first(world: World):
    await world.start(NAME)
    await world.job(parallelism=3, completions=3, scheduling={"schedulingPolicy": {"gang": {}}})
    await world.settle()

    workload = (await world.client.list(WORKLOADS, "default")).items[0]
    group = (await world.client.list(POD_GROUPS, "default")).items[0]
    assert workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "j"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert group["spec"]["workloadRef"] == {"workloadName": workload["metadata"]["name"], "templateName": "j-pgt-0"}
    for pod in await world.pods():
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        assert [owner["kind"] for owner in pod["metadata"]["ownerReferences"]] == ["Job", "PodGroup"]


async def test_a_gang_follows_the_minimum_of_its_job(world: World):
    await world.start(NAME)
    await world.job(parallelism=3, completions=3, scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}})
    await world.settle()

    change = {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}
    await world.client.patch(JOBS, "j", change, "default")
    await world.settle()

    group = (await world.client.list(POD_GROUPS, "default")).items[0]
    workload = (await world.client.list(WORKLOADS, "default")).items[0]
    assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2
    assert workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] == 2


@pytest.mark.parametrize(("indexes", "text"), [([], ""), ([1], "1"), ([1, 2], "1,2"), ([0, 1, 2, 5], "0-2,5")])
def test_indexes_are_written_as_kubernetes_writes_them(indexes: list[int], text: str):
    assert format_indexes(indexes) == text


@given(st.sets(st.integers(0, 200)))
def test_written_indexes_read_back_the_same(indexes: set[int]):
    assert parse_indexes(format_indexes(indexes)) == indexes


@pytest.mark.parametrize(("policy", "replaced"), [("Failed", 0), ("TerminatingOrFailed", 1)])
async def test_a_pod_that_is_stopping_is_replaced_as_the_policy_says(world: World, policy: str, replaced: int):
    await world.start(NAME)
    await world.job(completionMode="Indexed", completions=1, podReplacementPolicy=policy)
    await world.settle()
    pod = (await world.pods())[0]["metadata"]
    await world.client.bind("default", pod["name"], pod["uid"], "n")
    await world.phase(pod["name"], "Running")

    await world.client.delete(PODS, pod["name"], "default")
    await world.settle()
    assert len(await live(world)) == replaced

    await world.client.delete(PODS, pod["name"], "default", grace_period_seconds=0)
    await world.settle()
    assert len(await live(world)) == 1


def failing(action: str, **when: Any) -> dict[str, Any]:
    return {"rules": [{"action": action, **when}]}


async def fail_with(world: World, code: int) -> None:
    """The pod that runs ends with this exit code."""
    name = (await live(world))[0]
    ended = {"name": "c", "state": {"terminated": {"exitCode": code}}}
    patch = {"status": {"phase": "Failed", "containerStatuses": [ended]}}
    await world.client.patch(PODS, name, patch, "default", subresource="status")
    await world.settle()


async def test_an_exit_code_can_end_the_job_at_once(world: World):
    await world.start(NAME)
    fatal = failing("FailJob", onExitCodes={"operator": "In", "values": [42]})
    await world.job(podFailurePolicy=fatal)
    await world.settle()

    await fail_with(world, 1)
    assert "Failed" not in conditions(await world.get(JOBS, "j"))
    await world.advance(10)
    await fail_with(world, 42)

    job = await world.get(JOBS, "j")
    assert conditions(job)["Failed"] == ("True", "PodFailurePolicy")
    assert "failed with exit code 42 matching FailJob rule at index 0" in job["status"]["conditions"][-1]["message"]


async def test_failures_that_are_to_be_ignored_do_not_count(world: World):
    await world.start(NAME)
    ignored = failing("Ignore", onPodConditions=[{"type": "DisruptionTarget", "status": "True"}])
    await world.job(podFailurePolicy=ignored, backoffLimit=0)
    await world.settle()

    for _ in range(3):
        name = (await live(world))[0]
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        patch = {"status": {"phase": "Failed", "conditions": disrupted}}
        await world.client.patch(PODS, name, patch, "default", subresource="status")
        await world.settle()

    assert len(await live(world)) == 1
    assert "failed" not in (await world.get(JOBS, "j"))["status"]


@pytest.mark.parametrize(
    ("rule", "done"),
    [
        ({"succeededIndexes": "0,2"}, [0, 2]),
        ({"succeededCount": 2}, [1, 3]),
        ({"succeededIndexes": "1-3", "succeededCount": 1}, [2]),
    ],
)
async def test_a_success_policy_ends_a_job_before_all_indexes_are_done(world: World, rule: Any, done: list[int]):
    await world.start("job-controller")
    await world.job(parallelism=4, completions=4, completionMode="Indexed", successPolicy={"rules": [rule]})
    await world.settle()
    pods = {index_of_pod(pod): pod["metadata"]["name"] for pod in await world.pods()}
    for index in done[:-1]:
        await world.phase(pods[index], "Succeeded")
    assert "Complete" not in conditions(await world.get(JOBS, "j"))
    await world.phase(pods[done[-1]], "Succeeded")
    await world.settle()
    job = await world.get(JOBS, "j")
    assert conditions(job)["Complete"] == ("True", "SuccessPolicy")
    assert conditions(job)["SuccessCriteriaMet"] == ("True", "SuccessPolicy")
    assert job["status"]["succeeded"] == len(done)
    left = {index_of_pod(pod) for pod in await world.pods()}
    assert left == set(done), "the others were stopped"


def index_of_pod(pod: Any) -> int:
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


async def fail_index(world: World, index: int) -> None:
    """The running pod of an index fails, and its pause passes."""
    (name,) = [
        pod["metadata"]["name"]
        for pod in await world.pods()
        if index_of_pod(pod) == index and pod["status"].get("phase") not in ("Failed", "Succeeded")
    ]
    await world.phase(name, "Failed")
    await world.advance(30)


async def test_each_index_has_its_own_limit_of_failures(world: World):
    await world.start(NAME)
    await world.job(parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1)
    await world.settle()
    await fail_index(world, 0)
    counts = [pod["metadata"]["annotations"][INDEX_FAILURES] for pod in await world.pods() if index_of_pod(pod) == 0]
    assert sorted(counts) == ["0", "1"]
    await fail_index(world, 0)
    job = await world.get(JOBS, "j")
    assert (job["status"]["failedIndexes"], job["status"]["failed"]) == ("0", 2)
    assert "Failed" not in conditions(job), "the other index goes on"
    alive = [index_of_pod(pod) for pod in await world.pods() if pod["status"].get("phase") != "Failed"]
    assert alive == [1]
    (last,) = [pod["metadata"]["name"] for pod in await world.pods() if index_of_pod(pod) == 1]
    await world.phase(last, "Succeeded")
    await world.settle()
    job = await world.get(JOBS, "j")
    assert conditions(job)["Failed"] == ("True", "FailedIndexes")
    assert job["status"]["completedIndexes"] == "1"


async def test_a_job_ends_when_too_many_indexes_have_failed(world: World):
    await world.start(NAME)
    limits: dict[str, Any] = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
    await world.job(parallelism=3, completions=3, completionMode="Indexed", **limits)
    await world.settle()
    await fail_index(world, 0)
    assert "Failed" not in conditions(await world.get(JOBS, "j"))
    await fail_index(world, 2)
    job = await world.get(JOBS, "j")
    assert conditions(job)["Failed"] == ("True", "MaxFailedIndexesExceeded")
    assert job["status"]["failedIndexes"] == "0,2"


async def test_a_job_adopts_its_orphans_and_lets_go_of_pods_whose_labels_were_changed(world: World):
    await world.start(NAME)
    await world.job(parallelism=1, completions=1)
    await world.settle()
    (pod,) = await world.pods()
    name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
    await world.client.patch(PODS, name, {"metadata": {"ownerReferences": None}}, "default")
    await world.settle()
    (pod,) = await world.pods()
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"

    await world.client.patch(PODS, name, {"metadata": {"labels": dict.fromkeys(labels)}}, "default")
    await world.settle()
    owners = {each["metadata"]["name"]: each["metadata"].get("ownerReferences") for each in await world.pods()}
    assert owners.pop(name) is None
    assert len(owners) == 1, "another pod took its place"
