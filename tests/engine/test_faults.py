"""Bad days between the engine and the server: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from muster.api.errors import ApiError, conflict, gone, internal
from muster.api.resources import PODS
from muster.engine.engine import Engine
from muster.engine.informer import Informer
from muster.scheduler.interface.events import BindFailed, BindSucceeded, ObjectDeleted, ObjectUpdated
from tests.engine.builders import FirstNodeBrain, Profiles
from tests.engine.conftest import World, eventually
from tests.engine.faulty import failing


def told(brain: FirstNodeBrain, kind: str, name: str) -> list[object]:
    """What the brain heard of one object."""
    return [
        event
        for event in brain.heard
        if (isinstance(event, ObjectUpdated) and event.kind == kind and event.object.metadata.name == name)
        or (isinstance(event, ObjectDeleted) and event.kind == kind and event.name == name)
    ]


async def until_result(brain: FirstNodeBrain) -> None:
    async def done() -> bool:
        return bool(brain.results())

    await eventually(done)


# --- watches -----------------------------------------------------------------------------------------


async def test_a_dropped_watch_goes_on_where_it_was(world: World):
    await world.node()
    brain = FirstNodeBrain(node="")
    await world.start(brain)
    lists = len(world.client.verbs("list"))

    world.client.drop_watches()
    await world.pod("while-away")

    async def heard() -> bool:
        return bool(told(brain, "Pod", "while-away"))

    await eventually(heard)
    assert len(told(brain, "Pod", "while-away")) == 1
    assert len(told(brain, "Node", "n1")) == 1, "nothing known is told again"
    assert lists > 0


async def test_objects_deleted_while_the_watch_was_too_old_are_reported_removed(world: World):
    await world.node()
    await world.pod("doomed")
    await world.pod("staying")
    brain = FirstNodeBrain(node="")
    await world.start(brain)

    world.client.before = failing(gone("too old resource version"), "watch", times=1, name="pods")
    await world.direct.delete(PODS, "doomed", "default", grace_period_seconds=0)
    world.client.drop_watches()

    async def removed() -> bool:
        return any(isinstance(event, ObjectDeleted) for event in told(brain, "Pod", "doomed"))

    await eventually(removed)
    assert len(told(brain, "Pod", "staying")) == 1


async def test_an_object_replaced_under_its_name_is_removed_and_then_new(world: World):
    first = await world.pod("again")
    brain = FirstNodeBrain(node="")
    engine = await world.start(brain)
    pods: Informer = engine.informers["Pod"]

    replaced = pods.known["default", "again"]
    pods._learn(("default", "again"), _with_uid(replaced, "another"))

    heard = told(brain, "Pod", "again")
    await engine.settled()
    heard = told(brain, "Pod", "again")
    assert [type(event).__name__ for event in heard] == ["Changed", "Removed", "Changed"]
    assert heard[1].uid == first["metadata"]["uid"]  # type: ignore[attr-defined]


def _with_uid(obj, uid):
    meta = msgspec.structs.replace(obj.metadata, uid=uid)
    return msgspec.structs.replace(obj, metadata=meta)


async def test_an_event_delivered_twice_is_heard_once(world: World):
    await world.node()
    world.client.duplicate = True
    brain = FirstNodeBrain(node="")
    await world.start(brain)
    await world.pod("twin")
    await world.direct.delete(PODS, "twin", "default", grace_period_seconds=0)

    async def removed() -> bool:
        return any(isinstance(event, ObjectDeleted) for event in told(brain, "Pod", "twin"))

    await eventually(removed)
    assert [type(event).__name__ for event in told(brain, "Pod", "twin")] == ["Changed", "Removed"]


async def test_a_server_that_is_down_at_the_start_is_waited_for(world: World):
    await world.node()
    await world.pod("patient")
    world.client.before = failing(ConnectionError("connection refused"), "request", "list", times=40)

    await world.start()

    async def bound() -> bool:
        return await world.node_of("patient") == "n1"

    await eventually(bound)


async def test_a_missing_permission_is_named_and_keeps_the_engine_unready(world: World):
    refusal = ApiError(403, "Forbidden", "pods is forbidden")
    world.client.before = failing(refusal, "list", times=10**6, name="pods")
    engine = Engine(world.client, Profiles(), brain=FirstNodeBrain(), pace=world.quick())
    task = asyncio.create_task(engine.run())
    world.running.append((engine, task))

    async def named() -> bool:
        return any("list and watch on pods" in line for line in engine.trouble())

    await eventually(named)
    assert not engine.ready.is_set()


# --- binds -------------------------------------------------------------------------------------------


async def test_a_bind_whose_answer_was_lost_is_looked_up_and_not_repeated(world: World):
    await world.node()
    brain = FirstNodeBrain()
    await world.start(brain)
    world.client.after = failing(TimeoutError(), "bind")

    await world.pod("lost-answer")

    await until_result(brain)
    assert [type(event) for event in brain.results()] == [BindSucceeded]
    assert len(world.client.verbs("bind")) == 1
    assert await world.node_of("lost-answer") == "n1"


@pytest.mark.parametrize(
    "error", [internal("boom"), ConnectionError("reset"), TimeoutError(), conflict("", "pods", "p", "changed")]
)
async def test_a_bind_that_did_not_happen_is_tried_again(world: World, error: Exception):
    await world.node()
    brain = FirstNodeBrain()
    await world.start(brain)
    world.client.before = failing(error, "bind", times=2)

    await world.pod("tried")

    await until_result(brain)
    assert [type(event) for event in brain.results()] == [BindSucceeded]
    assert len(world.client.verbs("bind")) == 3


async def test_while_the_fate_of_a_bind_cannot_be_learned_nothing_is_reported(world: World):
    await world.node()
    brain = FirstNodeBrain()
    await world.start(brain)
    world.client.after = failing(ConnectionError("cut"), "bind")
    world.client.before = failing(ConnectionError("down"), "get", times=20)

    await world.pod("unknown")

    await until_result(brain)
    assert [type(event) for event in brain.results()] == [BindSucceeded]
    assert len(world.client.verbs("get")) == 21


async def test_a_pod_bound_elsewhere_meanwhile_is_a_failed_bind(world: World):
    await world.node("n1")
    await world.node("n2")
    brain = FirstNodeBrain()
    await world.start(brain)

    world.client.before = failing(ConnectionError("slow"), "bind")
    pod = await world.pod("stolen")
    await world.direct.bind("default", "stolen", pod["metadata"]["uid"], "n2")

    await until_result(brain)
    (result,) = brain.results()
    assert isinstance(result, BindFailed)
    assert "n2" in result.reason
    assert await world.node_of("stolen") == "n2"


async def test_a_pod_deleted_before_its_bind_is_a_failed_bind(world: World):
    await world.node()
    brain = FirstNodeBrain()
    await world.start(brain)
    world.client.before = failing(ConnectionError("slow"), "bind")
    pod = await world.pod("vanishing")
    await world.direct.delete(PODS, "vanishing", "default", grace_period_seconds=0)

    await until_result(brain)
    (result,) = brain.results()
    assert isinstance(result, BindFailed)
    assert result.uid == pod["metadata"]["uid"]


async def test_a_bind_is_given_up_after_several_refusals_to_serve(world: World):
    await world.node()
    brain = FirstNodeBrain()
    await world.start(brain)
    world.client.before = failing(internal("boom"), "bind", times=1000)

    await world.pod("hopeless")

    await until_result(brain)
    (result,) = brain.results()
    assert isinstance(result, BindFailed)
    assert "boom" in result.reason


async def test_a_restart_in_mid_flight_binds_each_pod_once(world: World):
    await world.node()
    for number in range(20):
        await world.pod(f"p{number}")
    first = await world.start(FirstNodeBrain("n1"))
    first.stop()
    await world.stop()

    second = FirstNodeBrain("n1")
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
    brain = FirstNodeBrain()
    await world.start(brain)

    async def started() -> bool:
        return bool(world.client.verbs("bind"))

    await eventually(started)
    await world.stop()

    assert await world.node_of("inflight") == "n1"
