"""Bindings on bad days: the outcome is looked up, nothing is bound twice, nothing is guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from muster.api.errors import conflict, internal, too_many_requests
from muster.api.resources import PODS
from muster.client.config import ClientConfig
from muster.client.http import HTTPClient
from muster.engine import options
from muster.engine.api_calls.binding import TRIES, BindConditions, BindingCall
from muster.engine.api_calls.binding_rights import BindingRights
from muster.engine.engine import Engine
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import LOST_RACE, BindFailed, BindSucceeded, Event
from muster.server.http import HttpServer
from muster.server.request import Request, Response, WatchStream
from muster.testing import a_pod
from tests.client.clocks import QuickClock
from tests.engine.builders import FirstNodeScheduler, ref
from tests.engine.conftest import World, eventually, until_result
from tests.engine.faulty import failing
from tests.engine.test_several_schedulers import bound, create_gang


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


# The second look at the node, at every try


async def outcome_of_a_bind(world: World, taken: Callable[[], bool]) -> Event:
    """What is reported of one bind to n1; `taken` says whether that is known to be full by now."""
    await world.node()
    pod = await world.pod("p")
    reported: list[Event] = []
    conditions = BindConditions(BindingRights(QuickClock()), None, lambda bind: "n1 is full" if taken() else "")
    call = BindingCall(Bind(ref(pod), "n1"), world.client, QuickClock(), reported.append, conditions)
    await call.run()
    (event,) = reported
    return event


def after_the_first_bind(world: World) -> Callable[[], bool]:
    return lambda: bool(world.client.verbs("bind"))


@pytest.mark.parametrize("error", [too_many_requests("busy"), conflict("", "pods", "p", "changed")])
async def test_a_refused_bind_is_not_sent_again_to_a_node_that_was_taken_meanwhile(world: World, error: Exception):
    world.client.before = failing(error, "bind")
    event = await outcome_of_a_bind(world, after_the_first_bind(world))
    assert isinstance(event, BindFailed)
    assert (event.reason, event.cause) == ("n1 is full", LOST_RACE)
    assert len(world.client.verbs("bind")) == 1
    assert len(world.client.verbs("get")) == 2, "after the refusal and after the look; no more"
    assert await world.node_of("p") == ""


async def test_a_node_that_is_taken_while_the_first_try_awaits_its_turn_is_noticed(world: World):
    asked = iter((False, True))
    event = await outcome_of_a_bind(world, lambda: next(asked))
    assert isinstance(event, BindFailed)
    assert event.cause == LOST_RACE
    assert world.client.verbs("bind", "get") == [], "nothing was sent that could have become of it"


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionError("reset"), internal("boom")])
async def test_a_bind_that_took_place_unanswered_has_its_node_whoever_came_later(world: World, error: Exception):
    world.client.after = failing(error, "bind")
    event = await outcome_of_a_bind(world, after_the_first_bind(world))
    assert isinstance(event, BindSucceeded)
    assert len(world.client.verbs("bind")) == 1


async def test_a_bind_whose_first_try_arrives_late_is_waited_for_and_not_sent_again(world: World):
    late: list[asyncio.Task[None]] = []

    async def arrive() -> None:
        uid = (await world.get("p"))["metadata"]["uid"]
        await world.direct.bind("default", "p", uid, "n1")

    def lose(verb: str, name: str) -> None:
        if verb == "bind":
            raise TimeoutError
        if len(world.client.verbs("get")) == 3:
            late.append(asyncio.create_task(arrive()))

    world.client.before = lose
    event = await outcome_of_a_bind(world, after_the_first_bind(world))
    assert isinstance(event, BindSucceeded)
    assert len(world.client.verbs("bind")) == len(late) == 1


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionError("reset"), internal("boom")])
async def test_a_bind_that_did_not_arrive_and_lost_its_node_is_given_up_after_a_while(world: World, error: Exception):
    world.client.before = failing(error, "bind")
    event = await outcome_of_a_bind(world, after_the_first_bind(world))
    assert isinstance(event, BindFailed)
    assert (event.reason, event.cause) == ("n1 is full", LOST_RACE)
    assert len(world.client.verbs("bind")) == 1
    assert len(world.client.verbs("get")) == TRIES + 1


async def test_a_bind_that_did_not_arrive_is_sent_again_when_its_node_is_free_again(world: World):
    world.client.before = failing(ConnectionError("reset"), "bind")
    event = await outcome_of_a_bind(world, lambda: len(world.client.verbs("get")) in (1, 2))
    assert isinstance(event, BindSucceeded)
    assert len(world.client.verbs("bind")) == 2
    assert await world.node_of("p") == "n1"


async def test_a_member_whose_bind_is_put_off_is_placed_again_when_another_scheduler_takes_its_node(world: World):
    for name in ("n0", "n1", "n2"):
        await world.node(name, cpu="2")
    foreign = await world.direct.create(PODS, a_pod("foreign", cpu="2", schedulerName="other"))
    taken: list[str] = []

    async def handle(request: Request) -> Response | WatchStream:
        if not request.path.endswith("/binding") or taken:
            return await world.server.handle(request)
        taken.append(msgspec.json.decode(request.body)["target"]["name"])
        await world.direct.bind("default", "foreign", foreign["metadata"]["uid"], taken[0])
        await eventually(foreign_is_seen)
        return Response(429, msgspec.json.encode(too_many_requests("busy").status()), headers={"Retry-After": "0"})

    async def foreign_is_seen() -> bool:
        known = [pod for pod in engine.sources["Pod"].known.values() if pod.metadata.name == "foreign"]
        return known[0].spec.node_name == taken[0] and not len(engine._inbox)

    async def the_gang_is_bound() -> bool:
        return len(await bound(world)) == 3

    server = HttpServer(lambda request, presented: None, handle)
    await server.start()
    source = options.source(None, ("muster",))
    async with HTTPClient(ClientConfig(f"http://127.0.0.1:{server.port}")) as client:
        engine = Engine(client, options.config(source), clock=QuickClock(), config_source=source)
        await world.launch(engine)
        await create_gang(world, "muster", "g", 2, "2")
        await eventually(the_gang_is_bound)
        await world.stop()
    await server.stop(0.1)
    assert set((await bound(world)).values()) == {"n0", "n1", "n2"}, "every pod fills a node"
