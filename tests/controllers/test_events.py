"""What controllers did can be read in the events of the object."""

from __future__ import annotations

from typing import Any

from muster.api.resources import CORE_EVENTS, JOBS
from muster.api.types import ObjectMeta
from muster.controllers.events import ControllerEvents
from tests.controllers.conftest import World


async def events(world: World) -> dict[str, Any]:
    return {each["reason"]: each for each in (await world.client.list(CORE_EVENTS, "default")).items}


async def test_a_job_tells_of_its_pods_and_its_end(world: World):
    await world.start("job-controller")
    job = await world.job()
    await world.settle()
    pod = (await world.pods())[0]["metadata"]["name"]
    await world.phase(pod, "Succeeded")

    found = await events(world)
    assert found["SuccessfulCreate"]["message"] == f"Created pod: {pod}"
    assert found["SuccessfulCreate"]["involvedObject"]["uid"] == job["metadata"]["uid"]
    assert found["Completed"]["message"] == "Job completed"


async def test_a_job_tells_of_the_group_it_made(world: World):
    await world.start("job-controller")
    await world.job(scheduling={"schedulingPolicy": {"gang": {}}})
    await world.settle()

    found = await events(world)
    assert found["WorkloadCreated"]["message"].startswith("Created Workload j-")
    assert found["PodGroupCreated"]["message"].endswith("for Job j")


async def test_pods_that_are_refused_are_reported_with_the_reason(world: World):
    await world.start("job-controller")
    template = {
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "restartPolicy": "Never",
            "priorityClassName": "no-such-class",
            "schedulingGroup": {"podGroupName": "g"},
        }
    }
    await world.job(template=template)
    await world.settle()

    found = await events(world)
    assert found["FailedCreate"]["type"] == "Warning"
    assert "no PriorityClass with name no-such-class was found" in found["FailedCreate"]["message"]


async def test_a_group_that_is_refused_is_reported_and_no_pod_is_made(world: World):
    await world.start("job-controller")
    template = {
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "restartPolicy": "Never",
            "priorityClassName": "no-such-class",
        }
    }
    await world.job(template=template)
    await world.settle()

    found = await events(world)
    assert found["FailedWorkloadCreate"]["type"] == "Warning"
    assert "no PriorityClass with name no-such-class was found" in found["FailedWorkloadCreate"]["message"]
    assert await world.pods() == []


async def test_the_same_news_is_counted_not_repeated(world: World):
    recorder = ControllerEvents(world.client, world.clock, "tester")
    about = ObjectMeta(name="j", namespace="default", uid="u")

    for _ in range(3):
        await recorder.normal(JOBS, about, "Again", "and again")

    found = (await world.client.list(CORE_EVENTS, "default")).items
    assert [(each["reason"], each["count"]) for each in found] == [("Again", 3)]


async def test_news_that_cannot_be_written_are_dropped(world: World):
    recorder = ControllerEvents(world.client, world.clock, "tester")

    await recorder.normal(JOBS, ObjectMeta(name="j", namespace="nowhere", uid="u"), "Lost", "for ever")

    assert (await world.client.list(CORE_EVENTS)).items == []
