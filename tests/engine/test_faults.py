"""Bad days between the engine and the server: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio

import msgspec

from muster.api.errors import ApiError, gone
from muster.api.resources import PODS
from muster.engine.engine import Engine
from muster.scheduler.interface.events import ObjectDeleted, ObjectUpdated
from tests.client.clocks import QuickClock
from tests.engine.builders import FirstNodeScheduler, Profiles
from tests.engine.conftest import World, eventually
from tests.engine.faulty import failing


def told(scheduler: FirstNodeScheduler, kind: str, name: str) -> list[object]:
    """What the scheduler heard of one object."""
    return [
        event
        for event in scheduler.heard
        if (isinstance(event, ObjectUpdated) and event.kind == kind and event.object.metadata.name == name)
        or (isinstance(event, ObjectDeleted) and event.kind == kind and event.name == name)
    ]


async def test_a_dropped_watch_goes_on_where_it_was(world: World):
    await world.node()
    scheduler = FirstNodeScheduler(node="")
    await world.start(scheduler)
    lists = len(world.client.verbs("list"))

    world.client.drop_watches()
    await world.pod("while-away")

    async def heard() -> bool:
        return bool(told(scheduler, "Pod", "while-away"))

    await eventually(heard)
    assert len(told(scheduler, "Pod", "while-away")) == 1
    assert len(told(scheduler, "Node", "n1")) == 1, "nothing known is told again"
    assert lists > 0


async def test_objects_deleted_while_the_watch_was_too_old_are_reported_removed(world: World):
    await world.node()
    await world.pod("doomed")
    await world.pod("staying")
    scheduler = FirstNodeScheduler(node="")
    await world.start(scheduler)

    world.client.before = failing(gone("too old resource version"), "watch", times=1, name="pods")
    await world.direct.delete(PODS, "doomed", "default", grace_period_seconds=0)
    world.client.drop_watches()

    async def removed() -> bool:
        return any(isinstance(event, ObjectDeleted) for event in told(scheduler, "Pod", "doomed"))

    await eventually(removed)
    assert len(told(scheduler, "Pod", "staying")) == 1


async def test_an_object_replaced_under_its_name_is_removed_and_then_new(world: World):
    first = await world.pod("again")
    scheduler = FirstNodeScheduler(node="")
    engine = await world.start(scheduler)
    pods = engine.sources["Pod"]

    pods.update(_with_uid(pods.known["default", "again"], "another"))

    heard = told(scheduler, "Pod", "again")
    await engine.settled()
    heard = told(scheduler, "Pod", "again")
    assert [type(event).__name__ for event in heard] == ["ObjectUpdated", "ObjectDeleted", "ObjectUpdated"]
    assert heard[1].uid == first["metadata"]["uid"]  # type: ignore[attr-defined]


def _with_uid(obj, uid):
    meta = msgspec.structs.replace(obj.metadata, uid=uid)
    return msgspec.structs.replace(obj, metadata=meta)


async def test_an_event_delivered_twice_is_heard_once(world: World):
    await world.node()
    world.client.duplicate = True
    scheduler = FirstNodeScheduler(node="")
    await world.start(scheduler)
    await world.pod("twin")
    await world.direct.delete(PODS, "twin", "default", grace_period_seconds=0)

    async def removed() -> bool:
        return any(isinstance(event, ObjectDeleted) for event in told(scheduler, "Pod", "twin"))

    await eventually(removed)
    assert [type(event).__name__ for event in told(scheduler, "Pod", "twin")] == ["ObjectUpdated", "ObjectDeleted"]


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
    engine = Engine(world.client, Profiles(), scheduler=FirstNodeScheduler(), clock=QuickClock())
    task = asyncio.create_task(engine.run())
    world.running.append((engine, task))

    async def named() -> bool:
        return any("list and watch on pods" in line for line in engine.trouble())

    await eventually(named)
    assert not engine.ready.is_set()
