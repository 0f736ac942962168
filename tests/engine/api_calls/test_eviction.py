"""Evictions: announced first, only of the pod that was meant, reported when they fail."""

from __future__ import annotations

from typing import Any

from muster.api.errors import ApiError
from muster.api.groups import DISRUPTION_TARGET
from muster.api.resources import PODS
from muster.scheduler.interface.decisions import Evict, Nominate, SetCondition
from muster.scheduler.interface.events import EvictionFailed
from muster.scheduler.interface.keys import ObjectRef
from tests.engine.builders import condition, ref
from tests.engine.conftest import World, quiet, say
from tests.engine.faulty import failing


async def victims_and_preemptor(world: World, count: int = 3) -> tuple[list[ObjectRef], ObjectRef]:
    await world.node()
    victims = []
    for number in range(count):
        pod = await world.pod(f"victim{number}")
        await world.direct.bind("default", f"victim{number}", pod["metadata"]["uid"], "n1")
        victims.append(ref(pod))
    return victims, ref(await world.pod("preemptor"))


def marks(victims: list[ObjectRef]) -> list[Any]:
    text = "muster: preempting to accommodate a higher priority pod"
    return [SetCondition(each, DISRUPTION_TARGET, "True", "PreemptionByScheduler", text) for each in victims]


async def test_marks_and_nominations_are_written_before_the_first_delete(world: World):
    victims, preemptor = await victims_and_preemptor(world)
    scheduler, engine = await quiet(world)
    world.client.slow = 0.01

    first = [*marks(victims), Nominate(preemptor, "n1")]
    await say(engine, scheduler, first, [Evict(each, preemptor) for each in victims])

    writes = [verb for verb, _ in world.client.verbs("patch", "delete")]
    assert writes == ["patch"] * 4 + ["delete"] * 3
    for each in victims:
        assert (await world.get(each.name))["metadata"]["deletionTimestamp"]


async def test_a_mark_that_is_slow_to_write_holds_back_every_delete(world: World):
    victims, preemptor = await victims_and_preemptor(world)
    scheduler, engine = await quiet(world)
    world.client.before = failing(ConnectionError("down"), "patch", times=5, name="victim2")

    await say(engine, scheduler, marks(victims), [Evict(each, preemptor) for each in victims])

    writes = world.client.verbs("patch", "delete")
    last_mark = max(i for i, call in enumerate(writes) if call[0] == "patch")
    first_delete = min(i for i, call in enumerate(writes) if call[0] == "delete")
    assert last_mark < first_delete


async def test_without_its_mark_no_victim_is_deleted(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    scheduler, engine = await quiet(world)
    world.client.before = failing(ApiError(403, "Forbidden", "no"), "patch", times=100)

    await say(engine, scheduler, marks(victims), [Evict(victims[0], preemptor)])

    assert world.client.verbs("delete") == []
    assert [type(event) for event in scheduler.results()] == [EvictionFailed]


async def test_taking_a_mark_back_calls_off_a_delete_that_has_not_started(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    scheduler, engine = await quiet(world)
    world.client.slow = 0.02
    back = SetCondition(victims[0], DISRUPTION_TARGET, "False", "PreemptionCalledOff", "no longer needed")

    await say(engine, scheduler, [*marks(victims), Evict(victims[0], preemptor), back])

    assert world.client.verbs("delete") == []
    assert condition(await world.get("victim0"), DISRUPTION_TARGET)["status"] == "False"


async def test_a_victim_that_is_gone_already_is_no_failure(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    scheduler, engine = await quiet(world)
    await world.direct.delete(PODS, "victim0", "default", grace_period_seconds=0)

    await say(engine, scheduler, [Evict(victims[0], preemptor)])

    assert scheduler.results() == []


async def test_another_pod_of_the_victims_name_is_left_alone(world: World):
    _, preemptor = await victims_and_preemptor(world, 1)
    scheduler, engine = await quiet(world)
    former = ObjectRef("Pod", "default", "victim0", "00000000-0000-0000-0000-000000000000")

    await say(engine, scheduler, [Evict(former, preemptor)])

    assert "deletionTimestamp" not in (await world.get("victim0"))["metadata"]
    assert scheduler.results() == []


async def test_a_victim_whose_mark_someone_took_back_stays(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    scheduler, engine = await quiet(world)
    await say(engine, scheduler, marks(victims))
    # The watch is silent meanwhile, so the engine does not know that the mark is gone.
    engine.sources["Pod"]._take = lambda event: None
    back = {"status": {"conditions": [{"type": DISRUPTION_TARGET, "status": "False"}]}}
    await world.direct.patch(PODS, "victim0", back, "default", type="strategic", subresource="status")

    await say(engine, scheduler, [Evict(victims[0], preemptor)])

    assert "deletionTimestamp" not in (await world.get("victim0"))["metadata"]
    assert [type(event) for event in scheduler.results()] == [EvictionFailed]


async def test_a_delete_that_cannot_be_sent_is_reported(world: World):
    victims, preemptor = await victims_and_preemptor(world, 1)
    scheduler, engine = await quiet(world)
    world.client.before = failing(ConnectionError("down"), "delete", times=1000)

    await say(engine, scheduler, [Evict(victims[0], preemptor)])

    assert [type(event) for event in scheduler.results()] == [EvictionFailed]
