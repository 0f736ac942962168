"""A missing right to bind is noticed once, asked for again now and then, and noticed when it is there."""

from __future__ import annotations

import asyncio

import pytest

from muster.api.errors import ApiError
from muster.engine import options
from muster.engine.api_calls.binding_rights import RETRY_SECONDS, BindingRights, is_missing_right
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.events import BindFailed
from tests.client.clocks import QuickClock, StoppedClock
from tests.engine.builders import FirstNodeScheduler
from tests.engine.conftest import World, eventually, until_result

RBAC = ApiError(
    403,
    "Forbidden",
    'pods "p" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "default"',
)


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (RBAC, True),
        (ApiError(401, "Unauthorized", "Unauthorized"), True),
        (ApiError(403, "Forbidden", 'admission webhook "x" denied the request'), False),
        (ApiError(404, "NotFound", "no such pod"), False),
    ],
)
def test_only_the_right_of_the_user_is_waited_for(error: ApiError, missing: bool):
    assert is_missing_right(error) is missing


async def test_after_a_refusal_the_namespace_is_not_asked_before_its_time():
    clock = StoppedClock()
    rights = BindingRights(clock)
    assert await rights.refusal("a") == ""
    rights.answered("a", "no right")
    assert await rights.refusal("a") == "no right"
    assert await rights.refusal("b") == ""


async def test_when_its_time_has_come_one_asks_and_the_others_wait_for_the_answer():
    clock = StoppedClock()
    rights = BindingRights(clock)
    rights.answered("a", "no right")
    clock.time = RETRY_SECONDS
    assert await rights.refusal("a") == ""
    others = [asyncio.create_task(rights.refusal("a")) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(other.done() for other in others)
    rights.answered("a", "")
    assert await asyncio.gather(*others) == ["", "", ""]


async def test_while_the_right_is_missing_no_more_than_one_request_goes_out(world: World):
    def refuse(verb: str, name: str) -> None:
        if verb == "bind":
            raise RBAC

    await world.node(cpu="100")
    world.client.before = refuse
    scheduler = FirstNodeScheduler(again=True)
    await world.start(scheduler)
    await world.pod("p")
    await until_result(scheduler)
    for number in range(5):
        await world.pod(f"more-{number}")

    async def tried() -> bool:
        return len(scheduler.results()) > 30

    await eventually(tried)
    assert len(world.client.verbs("bind")) == 1
    failed = scheduler.results()[-1]
    assert isinstance(failed, BindFailed)
    assert failed.cause == "forbidden"
    assert "create on pods/binding" in failed.reason


async def test_a_refused_gang_costs_a_few_requests_and_says_so_on_the_group(world: World):
    from muster.api.resources import Resource
    from muster.testing import a_pod_group
    from tests.build.manifests import in_version

    groups = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)

    def refuse(verb: str, name: str) -> None:
        if verb == "bind":
            raise ApiError(403, "Forbidden", "a webhook says no")

    await world.node(cpu="100")
    world.client.before = refuse
    source = options.source(None)
    engine = Engine(world.client, options.config(source), Settings(), clock=QuickClock(), config_source=source)
    await world.launch(engine)
    await world.direct.create(groups, in_version(a_pod_group("g", min_count=2), "v1beta1"), "default")
    for number in range(2):
        await world.pod(f"g-{number}", group="g")

    async def said() -> bool:
        group = await world.direct.get(groups, "g", "default")
        return any("a webhook says no" in each["message"] for each in group.get("status", {}).get("conditions", ()))

    await eventually(said)
    await asyncio.sleep(0.3)
    assert len(world.client.verbs("bind")) == 2
    assert isinstance(engine.scheduler, Scheduler)
    refused = engine.metrics.registry.get_sample_value("scheduler_bind_failures_total", {"cause": "refused"})
    assert refused == 2
