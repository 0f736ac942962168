"""When the controllers of a control plane count as idle."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.api.resources import JOBS, PODS
from muster.client.clock import SystemClock
from muster.controllers.job import JobController
from muster.controllers.workqueue import WorkQueue
from muster.plane.idle import Unfinished
from muster.testing import api_server


def a_job(pods: int, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **spec}}
    return {"metadata": {"name": "j"}, "spec": {"parallelism": pods, "completions": pods, "template": template}}


async def test_all_pods_are_there_and_counted_once_the_controllers_are_idle():
    async with api_server(controllers=True) as plane:
        await plane.client.create(JOBS, a_job(100), "default")
        assert await plane.wait_idle(30) == []
        assert len((await plane.client.list(PODS, "default")).items) == 100
        assert (await plane.client.get(JOBS, "j", "default"))["status"]["active"] == 100


async def test_an_object_that_no_informer_has_seen_yet_is_unfinished():
    async with api_server(controllers=True) as plane:
        assert await plane.wait_idle(30) == []
        await plane.client.create(JOBS, a_job(1), "default")
        unfinished = await plane.wait_idle(0)
        assert ("informer", "jobs") in {(each.controller, each.key) for each in unfinished}


async def test_a_key_that_is_being_reconciled_is_unfinished(monkeypatch: pytest.MonkeyPatch):
    started, go_on = asyncio.Event(), asyncio.Event()
    reconcile = JobController.reconcile

    async def slow(self: JobController, key: tuple[str, str]) -> float | None:
        started.set()
        await go_on.wait()
        return await reconcile(self, key)

    monkeypatch.setattr(JobController, "reconcile", slow)
    async with api_server(controllers=True) as plane:
        await plane.client.create(JOBS, a_job(1), "default")
        await started.wait()
        assert Unfinished("job-controller", "default/j", 0) in await plane.wait_idle(0.05)
        go_on.set()
        assert await plane.wait_idle(30) == []


async def test_waiting_ends_early_when_all_that_is_left_fails_again_and_again():
    async with api_server(controllers=True) as plane:
        await plane.client.create(JOBS, a_job(1, serviceAccountName="nobody"), "default")
        [unfinished] = await plane.wait_idle(60)
        assert (unfinished.key, unfinished.failures) == ("default/j", 4)


async def test_without_controllers_the_plane_is_idle():
    async with api_server() as plane:
        await plane.client.create(JOBS, a_job(1), "default")
        assert await plane.wait_idle(0) == []


async def test_a_queue_names_what_is_queued_reconciled_or_failed():
    queue = WorkQueue(SystemClock())
    for key in ("failed", "active", "queued"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["failed", "active"]
    queue.retry("failed")
    queue.done("failed")
    assert set(queue.unfinished) == {"failed", "active", "queued"}
    assert queue.failures == {"failed": 1}
    queue.forget("failed")
    assert set(queue.unfinished) == {"active", "queued"}
    await queue.close()
