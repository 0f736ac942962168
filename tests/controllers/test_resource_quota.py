"""ResourceQuotas: what is used is counted, what would exceed is refused, what ended counts no more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES
from tests.controllers.conftest import World


async def a_quota(world: World, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
    if world.manager is None:
        await world.start("resourcequota-controller")
    await world.create(RESOURCE_QUOTAS, name, spec={"hard": hard, **spec})
    await world.settle()


async def used(world: World, name: str = "q") -> dict[str, str]:
    await world.advance(0.3)
    return (await world.get(RESOURCE_QUOTAS, name))["status"]["used"]


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": resources}


async def refused(creating: Any) -> str:
    with pytest.raises(ApiError) as error:
        await creating
    assert error.value.code == 403
    return str(error.value)


async def test_pods_are_counted_and_the_one_too_many_is_refused(world: World):
    await a_quota(world, {"pods": "1", "requests.cpu": "1", "count/pods": "5"})
    spec = {"containers": [container(requests={"cpu": "600m"})]}
    await world.pod("p", **spec)
    assert await used(world) == {"pods": "1", "requests.cpu": "600m", "count/pods": "1"}

    message = await refused(world.pod("r", **spec))
    assert "exceeded quota: q, requested: pods=1,requests.cpu=600m, used: pods=1,requests.cpu=600m" in message
    assert "limited: pods=1,requests.cpu=1" in message

    await world.phase("p", "Succeeded")
    assert await used(world) == {"pods": "0", "requests.cpu": "0", "count/pods": "1"}
    await world.pod("r", **spec)
    await world.client.delete(PODS, "r", "default")
    assert (await used(world))["pods"] == "0"


async def test_a_burst_cannot_overdraw(world: World):
    await a_quota(world, {"pods": "3"})
    results = await asyncio.gather(*(world.pod(f"p{number}") for number in range(10)), return_exceptions=True)
    assert sum(1 for each in results if not isinstance(each, BaseException)) == 3
    assert (await used(world))["pods"] == "3"


async def test_a_pod_must_say_how_much_it_takes_of_what_is_limited(world: World):
    await a_quota(world, {"limits.memory": "1Gi", "requests.cpu": "1"})
    message = await refused(world.pod("p"))
    assert "failed quota: q: must specify limits.memory for: c; requests.cpu for: c" in message


async def test_what_was_there_before_the_quota_counts(world: World):
    await world.create(CONFIG_MAPS, "one")
    await world.create(SERVICES, "s", spec={"type": "NodePort", "ports": [{"port": 1}]})
    hard = {"configmaps": "2", "services": "5", "services.nodeports": "1", "count/deployments.apps": "1"}
    await a_quota(world, hard)
    assert await used(world) == {
        "configmaps": "1",
        "services": "1",
        "services.nodeports": "1",
        "count/deployments.apps": "0",
    }


async def test_claims_count_by_storage_and_by_class(world: World):
    key = "gold.storageclass.storage.k8s.io/requests.storage"
    await a_quota(world, {"requests.storage": "3Gi", key: "2Gi", "persistentvolumeclaims": "9"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "storageClassName": "gold"}
    await world.create(PERSISTENT_VOLUME_CLAIMS, "c", spec=spec)
    assert await used(world) == {"requests.storage": "2Gi", key: "2Gi", "persistentvolumeclaims": "1"}
    message = await refused(world.create(PERSISTENT_VOLUME_CLAIMS, "d", spec=spec))
    assert "exceeded quota: q, requested: gold.storageclass" in message


async def test_scopes_choose_the_pods(world: World):
    await a_quota(world, {"pods": "5"}, "best-effort", scopes=["BestEffort"])
    await a_quota(world, {"pods": "5"}, "ending", scopes=["Terminating"])
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    await a_quota(world, {"pods": "5"}, "high", scopeSelector=selector)
    await world.pod("p", activeDeadlineSeconds=9)
    await world.pod("q", containers=[container(requests={"cpu": "1"})])
    assert await used(world, "best-effort") == {"pods": "1"}
    assert await used(world, "ending") == {"pods": "1"}
    assert await used(world, "high") == {"pods": "0"}


async def test_what_is_no_quota_is_refused(world: World):
    for spec, message in (
        ({"hard": {"pods": "-1"}}, "must be greater than or equal to 0"),
        ({"scopes": ["Unknown"]}, "unsupported scope"),
        ({"scopes": ["BestEffort", "NotBestEffort"]}, "conflicting scopes"),
    ):
        with pytest.raises(ApiError) as error:
            await world.create(RESOURCE_QUOTAS, "q", spec=spec)
        assert message in str(error.value)


async def test_a_name_that_is_taken_is_not_charged(world: World):
    await a_quota(world, {"configmaps": "5"})
    await world.create(CONFIG_MAPS, "one")
    with pytest.raises(ApiError):
        await world.create(CONFIG_MAPS, "one")
    assert (await world.get(RESOURCE_QUOTAS, "q"))["status"]["used"] == {"configmaps": "1"}
