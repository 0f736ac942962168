"""Events of decisions: in the name of the pod's profile, counted when they repeat, never in the way."""

from __future__ import annotations

from typing import Any

from muster.api.errors import internal
from muster.api.resources import EVENTS
from muster.scheduler.interface.decisions import Bind, RecordEvent
from muster.scheduler.interface.keys import ObjectRef
from tests.engine.builders import FirstNodeScheduler, ref
from tests.engine.conftest import World, quiet, say
from tests.engine.faulty import failing


async def events(world: World) -> list[dict[str, Any]]:
    return (await world.direct.list(EVENTS, "default")).items


async def test_an_event_is_written_in_the_name_of_the_pods_scheduler(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    about = ref(pod)

    await say(
        engine,
        scheduler,
        [RecordEvent(about, "Normal", "Scheduled", "Binding", "Successfully assigned default/p to n1")],
    )

    (event,) = await events(world)
    assert event["reportingController"] == "muster"
    assert event["reportingInstance"]
    assert (event["reason"], event["action"], event["type"]) == ("Scheduled", "Binding", "Normal")
    assert event["note"] == "Successfully assigned default/p to n1"
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "uid": about.uid,
    }


async def test_an_event_that_repeats_is_counted_in_its_series(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    again = RecordEvent(ref(pod), "Warning", "FailedScheduling", "Scheduling", "0/1 nodes are available")

    for _ in range(3):
        await say(engine, scheduler, [again])

    (event,) = await events(world)
    assert event["series"]["count"] == 3


async def test_a_long_note_is_cut(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)

    await say(engine, scheduler, [RecordEvent(ref(pod), "Normal", "R", "A", "x" * 5000)])

    assert len((await events(world))[0]["note"]) == 1024


async def test_a_preempted_pod_names_its_preemptor(world: World):
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    preemptor = ObjectRef("PodGroup", "default", "g", "abc")

    await say(engine, scheduler, [RecordEvent(ref(pod), "Normal", "Preempted", "Preempting", "by g", preemptor)])

    related = (await events(world))[0]["related"]
    assert (related["kind"], related["apiVersion"]) == ("PodGroup", "scheduling.k8s.io/v1beta1")


async def test_an_event_that_cannot_be_written_holds_up_nothing(world: World):
    await world.node()
    pod = await world.pod("p")
    scheduler, engine = await quiet(world)
    world.client.before = failing(internal("no room"), "create", times=1000)

    await say(engine, scheduler, [RecordEvent(ref(pod), "Normal", "R", "A", "note"), Bind(ref(pod), "n1")])

    assert await world.node_of("p") == "n1"
    assert await events(world) == []


async def test_binds_go_before_events_and_statuses(world: World):
    await world.node()
    pods = [ref(await world.pod(f"p{number}")) for number in range(8)]
    scheduler = FirstNodeScheduler(node="")
    engine = await world.start(scheduler)
    world.client.slow = 0.005
    notes = [RecordEvent(each, "Normal", "R", "A", "note") for each in pods]

    await say(engine, scheduler, [*notes, *(Bind(each, "n1") for each in pods)])

    writes = [verb for verb, _ in world.client.verbs("bind", "create")]
    assert writes.index("bind") <= 4, "a few events may have started before the binds were known"
    assert [verb for verb in writes[:12] if verb == "bind"] == ["bind"] * 8
