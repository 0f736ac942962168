"""CronJobs: a Job a moment, concurrency, deadlines, history."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import CORE_EVENTS, CRON_JOBS, JOBS
from muster.client.clock import timestamp
from tests.controllers.conftest import START, World

POD = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


async def cron_job(world: World, schedule: str = "*/10 * * * *", **spec: Any) -> Any:
    body = {"schedule": schedule, "jobTemplate": {"spec": {"template": POD}}, **spec}
    return await world.create(CRON_JOBS, "c", spec=body)


async def jobs(world: World) -> list[str]:
    return sorted(each["metadata"]["name"] for each in (await world.client.list(JOBS, "default")).items)


async def finish(world: World, job: str, kind: str = "Complete") -> None:
    when = timestamp(world.clock.now())
    reason = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
    first = next(key for key, value in reason.items() if value == kind)
    conditions = [
        {"type": each, "status": "True", "lastTransitionTime": when, "reason": "CompletionsReached"}
        for each in (first, kind)
    ]
    status: dict[str, Any] = {"startTime": when, "conditions": conditions}
    if kind == "Complete":
        status |= {"completionTime": when}
    await world.client.patch(JOBS, job, {"status": status}, "default", subresource="status")
    await world.settle()


async def reasons(world: World) -> list[str]:
    return [each["reason"] for each in (await world.client.list(CORE_EVENTS, "default")).items]


def minute_of(seconds: float) -> int:
    return int(START + seconds) // 60


async def test_every_moment_gets_one_job(world: World):
    await world.start("cronjob-controller")
    await cron_job(world)
    await world.advance(599)
    assert await jobs(world) == []  # START is a full ten minutes
    await world.advance(10)
    name = f"c-{minute_of(600)}"
    assert await jobs(world) == [name]
    job = await world.get(JOBS, name)
    scheduled = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == timestamp(START + 600)
    status = (await world.get(CRON_JOBS, "c"))["status"]
    assert [each["name"] for each in status["active"]] == [name]
    assert status["lastScheduleTime"] == timestamp(START + 600)

    await finish(world, name)
    status = (await world.get(CRON_JOBS, "c"))["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"]
    assert "SawCompletedJob" in await reasons(world)

    await world.advance(600)
    assert await jobs(world) == [name, f"c-{minute_of(1200)}"]


async def test_forbid_waits_for_the_running_job_and_replace_ends_it(world: World):
    await world.start("cronjob-controller")
    await cron_job(world, concurrencyPolicy="Forbid")
    await world.advance(1300)
    assert await jobs(world) == [f"c-{minute_of(600)}"]
    assert "JobAlreadyActive" in await reasons(world)

    await world.client.patch(CRON_JOBS, "c", {"spec": {"concurrencyPolicy": "Replace"}}, "default")
    await world.advance(600)
    assert await jobs(world) == [f"c-{minute_of(1800)}"]


async def test_a_suspended_one_rests_and_makes_up_for_the_latest_moment(world: World):
    await world.start("cronjob-controller")
    await cron_job(world, suspend=True)
    await world.advance(2500)
    assert await jobs(world) == []
    await world.client.patch(CRON_JOBS, "c", {"spec": {"suspend": False}}, "default")
    await world.settle()
    assert await jobs(world) == [f"c-{minute_of(2400)}"]


async def test_a_moment_beyond_its_deadline_is_lost(world: World):
    await world.start("cronjob-controller")
    await cron_job(world, suspend=True, startingDeadlineSeconds=30)
    await world.advance(2500)
    await world.client.patch(CRON_JOBS, "c", {"spec": {"suspend": False}}, "default")
    await world.settle()
    assert await jobs(world) == []


async def test_old_jobs_beyond_the_limits_go(world: World):
    await world.start("cronjob-controller")
    await cron_job(world, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for turn in range(1, 4):
        await world.advance(610 if turn == 1 else 600)
        await finish(world, f"c-{minute_of(600 * turn)}", "Failed" if turn == 3 else "Complete")
    assert await jobs(world) == [f"c-{minute_of(1200)}"]


async def test_what_is_no_schedule_is_refused(world: World):
    for spec, message in (
        ({"schedule": "61 * * * *"}, "end of range (61) above maximum (59): 61"),
        ({"schedule": "TZ=UTC * * * * *"}, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        ({"timeZone": "Mars/Olympus"}, "unknown time zone Mars/Olympus"),
        ({"timeZone": "../etc/passwd"}, "unknown time zone ../etc/passwd"),
        ({"timeZone": "local"}, "must be an explicit time zone"),
        ({"startingDeadlineSeconds": -1}, "must be greater than or equal to 0"),
    ):
        with pytest.raises(ApiError) as refused:
            await cron_job(world, **spec)
        assert refused.value.code == 422
        assert message in str(refused.value)
