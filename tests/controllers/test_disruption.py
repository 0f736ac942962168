"""Budgets count healthy pods, and evictions ask them."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from muster.server.admission.eviction import VIOLATION, BudgetGuard
from tests.controllers.conftest import World

NAME = "disruption-controller"
COVERED = {"labels": {"app": "a"}}


async def a_budget(world: World, name: str = "b", **spec: Any) -> Any:
    body = {"selector": {"matchLabels": {"app": "a"}}, **spec}
    made = await world.create(POD_DISRUPTION_BUDGETS, name, spec=body)
    await world.settle()
    return made


async def healthy_pods(world: World, count: int) -> None:
    for index in range(count):
        await world.pod(f"p{index}", node="n", metadata=COVERED)
        await world.phase(f"p{index}", "Running", ready=True)


async def status(world: World, name: str = "b") -> Any:
    return (await world.get(POD_DISRUPTION_BUDGETS, name))["status"]


async def evict(world: World, name: str, **options: Any) -> None:
    world.server.hooks.guard_eviction = BudgetGuard(world.client, world.clock.now)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    await world.client.request("POST", PODS.path("default", name, "eviction"), {**body, **options})
    await world.settle()


async def test_a_budget_counts_its_healthy_pods(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=2)
    await healthy_pods(world, 3)
    await world.pod("sick", node="n", metadata=COVERED)
    await world.pod("other", node="n")
    await world.settle()

    found = await status(world)
    assert (found["expectedPods"], found["currentHealthy"], found["desiredHealthy"]) == (4, 3, 2)
    assert found["disruptionsAllowed"] == 1
    assert found["observedGeneration"] == 1
    assert found["conditions"][0]["reason"] == "SufficientPods"


async def test_a_percentage_is_of_what_the_controller_wants(world: World):
    await world.start(NAME, "replicaset-controller")
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.create(
        REPLICA_SETS, "rs", spec={"replicas": 4, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    )
    await a_budget(world, maxUnavailable="25%")
    for pod in await world.pods():
        await world.phase(pod["metadata"]["name"], "Running", ready=True)

    found = await status(world)
    assert (found["expectedPods"], found["desiredHealthy"], found["disruptionsAllowed"]) == (4, 3, 1)


async def test_an_eviction_within_the_budget_is_done_and_charged(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=1)
    await healthy_pods(world, 2)

    await evict(world, "p0")

    assert (await world.get(PODS, "p0"))["metadata"]["deletionTimestamp"]
    assert (await status(world))["disruptionsAllowed"] == 0


async def test_an_eviction_beyond_the_budget_is_refused_with_the_reason(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=2)
    await healthy_pods(world, 2)

    with pytest.raises(ApiError) as refused:
        await evict(world, "p0")

    assert refused.value.code == 429
    assert refused.value.message == VIOLATION
    assert refused.value.details["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
        }
    ]
    assert "deletionTimestamp" not in (await world.get(PODS, "p0"))["metadata"]


async def test_a_burst_of_evictions_cannot_overdraw_a_budget(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=1)
    await healthy_pods(world, 3)
    await world.stop()  # nobody updates the budget any more

    await evict(world, "p0")
    await evict(world, "p1")
    with pytest.raises(ApiError):
        await evict(world, "p2")


async def test_a_budget_that_was_not_looked_at_yet_refuses(world: World):
    await a_budget(world, minAvailable=0)
    await healthy_pods(world, 1)

    with pytest.raises(ApiError) as refused:
        await evict(world, "p0")

    assert "still being processed" in refused.value.details["causes"][0]["message"]


async def test_a_pod_that_does_not_run_yet_needs_no_budget(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=5)
    await world.pod("p", metadata=COVERED)

    await evict(world, "p")

    assert await world.get(PODS, "p") is None


async def test_an_unhealthy_pod_may_go_where_the_budget_is_met(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=1)
    await healthy_pods(world, 1)
    await world.pod("sick", node="n", metadata=COVERED)
    await world.phase("sick", "Running", ready=False)

    await evict(world, "sick")

    assert (await world.get(PODS, "sick"))["metadata"]["deletionTimestamp"]


async def test_a_dry_run_charges_nothing(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=1)
    await healthy_pods(world, 2)

    await evict(world, "p0", deleteOptions={"dryRun": ["All"]})

    assert (await status(world))["disruptionsAllowed"] == 1
    assert "deletionTimestamp" not in (await world.get(PODS, "p0"))["metadata"]


async def test_an_eviction_that_never_happened_is_forgotten(world: World):
    await world.start(NAME)
    await a_budget(world, minAvailable=1)
    await healthy_pods(world, 2)
    found = await world.get(POD_DISRUPTION_BUDGETS, "b")
    found["status"]["disruptedPods"] = {"p0": "2027-01-15T08:00:00Z"}
    await world.client.update(POD_DISRUPTION_BUDGETS, found, subresource="status")
    await world.settle()
    assert (await status(world))["disruptionsAllowed"] == 0

    await world.advance(121)

    assert (await status(world))["disruptionsAllowed"] == 1
    assert "disruptedPods" not in await status(world)
