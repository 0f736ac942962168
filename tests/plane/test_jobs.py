"""A Job as a gang, through the API: all of its pods or none, its life, and what is left when it is gone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plane.test_plane import until

from muster.api.groups import POD_GROUP_INITIALLY_SCHEDULED
from muster.api.job_gangs import GANG_ANNOTATION
from muster.api.resources import JOBS, NODES, POD_GROUPS, PODS, WORKLOADS
from muster.plane.plane import Plane
from muster.testing import a_node, api_server


def a_job(pods: int = 3, gang: str = "", seconds: str = "3600", **spec: Any) -> dict[str, Any]:
    """An Indexed Job of pods of one core each."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"muster.dev/run-seconds": seconds}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    form = {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "template": template}
    annotations = {GANG_ANNOTATION: gang} if gang else {}
    return {"metadata": {"name": "j", "annotations": annotations}, "spec": {**form, **spec}}


async def bound(plane: Plane) -> int:
    pods = (await plane.client.list(PODS, "default")).items
    return sum(1 for pod in pods if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"])


async def until_bound(plane: Plane, count: int) -> None:
    async def enough() -> bool:
        return await bound(plane) == count

    await until(enough, 30)


async def until_group(plane: Plane, reason: str) -> dict[str, Any]:
    """Wait until the one group says this; gives it."""
    found: list[dict[str, Any]] = []

    async def says() -> bool:
        found[:] = (await plane.client.list(POD_GROUPS, "default")).items
        conditions = [each for group in found for each in (group.get("status") or {}).get("conditions") or ()]
        return [each["reason"] for each in conditions if each["type"] == POD_GROUP_INITIALLY_SCHEDULED] == [reason]

    await until(says, 30)
    return found[0]


async def test_an_indexed_job_is_bound_as_a_whole_when_there_is_room_for_all_of_it() -> None:
    async with api_server(controllers=True, scheduler=True) as plane:
        await plane.client.create(NODES, a_node("small", cpu="2"))
        await plane.client.create(JOBS, a_job(3), "default")
        await until_group(plane, "Unschedulable")
        assert await bound(plane) == 0

        await plane.client.create(NODES, a_node("large", cpu="2"))
        await until_bound(plane, 3)
        await until_group(plane, "Scheduled")


@pytest.mark.parametrize(("gang", "expected"), [("none", 2), ("2", 2)])
async def test_with_the_annotation_what_fits_is_bound(gang: str, expected: int) -> None:
    async with api_server(controllers=True, scheduler=True) as plane:
        await plane.client.create(NODES, a_node("small", cpu="2"))
        await plane.client.create(JOBS, a_job(3, gang), "default")

        await until_bound(plane, expected)


async def test_suspended_and_resumed_it_is_placed_as_a_whole_again() -> None:
    async with api_server(controllers=True, scheduler=True, nodes=1) as plane:
        client = plane.client
        await client.create(JOBS, a_job(3), "default")
        await until_bound(plane, 3)

        await client.patch(JOBS, "j", {"spec": {"suspend": True}}, "default")
        await until_bound(plane, 0)
        await client.patch(NODES, "node-0", {"spec": {"unschedulable": True}})
        await client.create(NODES, a_node("small", cpu="2"))
        await client.patch(JOBS, "j", {"spec": {"suspend": False}}, "default")

        async def made() -> bool:
            return len((await client.list(PODS, "default")).items) == 3

        await until(made, 30)
        assert await bound(plane) == 0, "two would fit"
        await client.patch(NODES, "node-0", {"spec": {"unschedulable": False}})
        await until_bound(plane, 3)


async def test_it_completes_and_leaves_nothing_when_its_time_is_over() -> None:
    async with api_server(controllers=True, scheduler=True, nodes=1) as plane:
        client = plane.client
        await client.create(JOBS, a_job(3, seconds="0.2", ttlSecondsAfterFinished=1), "default")
        await until_group(plane, "Scheduled")

        async def gone() -> bool:
            kinds = (JOBS, PODS, POD_GROUPS, WORKLOADS)
            return not any([(await client.list(each, "default")).items for each in kinds])

        await until(gone, 30)


async def test_a_running_job_that_is_deleted_takes_its_pods_and_its_group_along() -> None:
    async with api_server(controllers=True, scheduler=True, nodes=1) as plane:
        client = plane.client
        await client.create(JOBS, a_job(3), "default")
        await until_bound(plane, 3)

        await client.delete(JOBS, "j", "default", propagation_policy="Background")

        async def gone() -> bool:
            return not any([(await client.list(each, "default")).items for each in (PODS, POD_GROUPS, WORKLOADS)])

        await until(gone, 60)


async def test_an_elastic_gang_grows() -> None:
    async with api_server(controllers=True, scheduler=True, nodes=1) as plane:
        await plane.client.create(JOBS, a_job(2), "default")
        await until_bound(plane, 2)

        await plane.client.patch(JOBS, "j", {"spec": {"parallelism": 4, "completions": 4}}, "default")
        await until_bound(plane, 4)
        group = await until_group(plane, "Scheduled")
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
