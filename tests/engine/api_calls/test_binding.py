"""Bindings on bad days: the outcome is looked up, nothing is bound twice, nothing is guessed."""

from __future__ import annotations

import pytest

from muster.api.errors import conflict, internal
from muster.api.resources import PODS
from muster.scheduler.interface.events import BindFailed, BindSucceeded
from tests.engine.builders import FirstNodeScheduler
from tests.engine.conftest import World, eventually, until_result
from tests.engine.faulty import failing


async def test_a_bind_whose_answer_was_lost_is_looked_up_and_not_repeated(world: World):
    await world.node()
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)
    world.client.after = failing(TimeoutError(), "bind")

    await world.pod("lost-answer")

    await until_result(scheduler)
    assert [type(event) for event in scheduler.results()] == [BindSucceeded]
    assert len(world.client.verbs("bind")) == 1
    assert await world.node_of("lost-answer") == "n1"


@pytest.mark.parametrize(
    "error", [internal("boom"), ConnectionError("reset"), TimeoutError(), conflict("", "pods", "p", "changed")]
)
async def test_a_bind_that_did_not_happen_is_tried_again(world: World, error: Exception):
    await world.node()
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)
    world.client.before = failing(error, "bind", times=2)

    await world.pod("tried")

    await until_result(scheduler)
    assert [type(event) for event in scheduler.results()] == [BindSucceeded]
    assert len(world.client.verbs("bind")) == 3


async def test_while_the_fate_of_a_bind_cannot_be_learned_nothing_is_reported(world: World):
    await world.node()
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)
    world.client.after = failing(ConnectionError("cut"), "bind")
    world.client.before = failing(ConnectionError("down"), "get", times=20)

    await world.pod("unknown")

    await until_result(scheduler)
    assert [type(event) for event in scheduler.results()] == [BindSucceeded]
    assert len(world.client.verbs("get")) == 21


async def test_a_pod_bound_elsewhere_meanwhile_is_a_failed_bind(world: World):
    await world.node("n1")
    await world.node("n2")
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)

    world.client.before = failing(ConnectionError("slow"), "bind")
    pod = await world.pod("stolen")
    await world.direct.bind("default", "stolen", pod["metadata"]["uid"], "n2")

    await until_result(scheduler)
    (result,) = scheduler.results()
    assert isinstance(result, BindFailed)
    assert "n2" in result.reason
    assert await world.node_of("stolen") == "n2"


async def test_a_pod_deleted_before_its_bind_is_a_failed_bind(world: World):
    await world.node()
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)
    world.client.before = failing(ConnectionError("slow"), "bind")
    pod = await world.pod("vanishing")
    await world.direct.delete(PODS, "vanishing", "default", grace_period_seconds=0)

    await until_result(scheduler)
    (result,) = scheduler.results()
    assert isinstance(result, BindFailed)
    assert result.uid == pod["metadata"]["uid"]


async def test_a_bind_is_given_up_after_several_refusals_to_serve(world: World):
    await world.node()
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)
    world.client.before = failing(internal("boom"), "bind", times=1000)

    await world.pod("hopeless")

    await until_result(scheduler)
    (result,) = scheduler.results()
    assert isinstance(result, BindFailed)
    assert "boom" in result.reason


async def test_a_restart_in_mid_flight_binds_each_pod_once(world: World):
    await world.node()
    for number in range(20):
        await world.pod(f"p{number}")
    first = await world.start(FirstNodeScheduler("n1"))
    first.stop()
    await world.stop()

    second = FirstNodeScheduler("n1")
    await world.start(second)

    async def all_bound() -> bool:
        return all([await world.node_of(f"p{number}") == "n1" for number in range(20)])

    await eventually(all_bound)
    assert not [event for event in second.results() if isinstance(event, BindFailed)]
    assert len(world.client.verbs("bind")) == 20, "no pod was bound twice"


async def test_binds_under_way_are_finished_by_a_graceful_stop(world: World):
    await world.node()
    world.client.slow = 0.05
    await world.pod("inflight")
    scheduler = FirstNodeScheduler()
    await world.start(scheduler)

    async def started() -> bool:
        return bool(world.client.verbs("bind"))

    await eventually(started)
    await world.stop()

    assert await world.node_of("inflight") == "n1"
