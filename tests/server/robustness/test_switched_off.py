"""Features that are switched off leave no trace in what is stored, on a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import ApiError
from muster.api.resources import JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES
from muster.client.protocol import Client
from muster.plane.options import Options
from muster.plane.plane import Plane
from muster.testing import a_pod, a_pod_group

POD_SPEC = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}


@asynccontextmanager
async def a_server(**switches: bool) -> AsyncIterator[Client]:
    chosen, _ = gates.resolve(switches)
    options = Options(https=False, controllers=False, scheduler=False, gates=chosen, freeze=False)
    async with Plane(options) as plane:
        yield plane.client


def a_job(**spec: Any) -> dict[str, Any]:
    pod = {**POD_SPEC, "schedulingGroup": {"podGroupName": "g"}}
    return {"metadata": {"name": "j", "namespace": "default"}, "spec": {"template": {"spec": pod}, **spec}}


@pytest.mark.parametrize("on", [True, False])
async def test_membership_is_kept_only_while_workloads_are_on(on: bool) -> None:
    async with a_server(GenericWorkload=on) as client:
        pod = await client.create(PODS, a_pod("p", group="g"))
        job = await client.create(JOBS, a_job())

    assert ("schedulingGroup" in pod["spec"]) is on
    assert ("schedulingGroup" in job["spec"]["template"]["spec"]) is on


async def test_group_kinds_are_not_served_while_workloads_are_off() -> None:
    async with a_server(GenericWorkload=False) as client:
        with pytest.raises(ApiError, match="could not find the requested resource"):
            await client.create(POD_GROUPS, a_pod_group("g", min_count=2))


@pytest.mark.parametrize("on", [True, False])
async def test_a_group_has_a_preemption_policy_only_while_that_is_on(on: bool) -> None:
    async with a_server(PodGroupPreemptionPolicy=on) as client:
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "polite"}, "value": 5, "preemptionPolicy": "Never"})
        group = await client.create(POD_GROUPS, a_pod_group("g", min_count=2, priorityClassName="polite"))
        pod = await client.create(PODS, a_pod("p", priorityClassName="polite"))

    assert group["spec"]["priority"] == 5
    assert group["spec"].get("preemptionPolicy") == ("Never" if on else None)
    assert pod["spec"]["preemptionPolicy"] == "Never"


async def test_a_policy_that_contradicts_the_class_is_no_matter_while_that_is_off() -> None:
    async with a_server(PodGroupPreemptionPolicy=False) as client:
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "polite"}, "value": 5, "preemptionPolicy": "Never"})
        wanted = a_pod_group("g", min_count=2, priorityClassName="polite", preemptionPolicy="PreemptLowerPriority")
        group = await client.create(POD_GROUPS, wanted)

    assert "preemptionPolicy" not in group["spec"]
