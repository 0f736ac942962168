"""The scheduling loop: nothing is decided too early, and nothing is slept through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from muster.client.clock import MonotonicClock
from muster.engine.call_queue import CallQueue, ConcurrencyLimits
from muster.engine.inbox import Inbox
from muster.engine.metrics import Metrics
from muster.engine.scheduling_loop import SchedulingLoop, without_lost
from muster.engine.settings import Settings
from muster.scheduler.interface.decisions import AllocateClaim, Bind, Decision, SelectVolumeNode
from muster.scheduler.interface.events import BindSucceeded, CacheSynced, Event
from muster.scheduler.interface.keys import ObjectRef
from tests.engine.conftest import eventually

POD = ObjectRef("Pod", "ns", "p", "u1")


class Clockwork:
    """A scheduler that binds one pod once when a time has come."""

    def __init__(self, due: float | None = None) -> None:
        self.due = due
        self.heard: list[Event] = []
        self.cycles = 0

    def handle(self, event: Event, now: float) -> None:
        self.heard.append(event)

    def next(self, now: float) -> list[Decision]:
        self.cycles += 1
        if self.due is None or now < self.due:
            return []
        self.due = None
        return [Bind(POD, "n1")]

    def wake_at(self, now: float) -> float | None:
        return self.due


class Gate:
    """A volume gate that holds nothing."""

    busy = False

    def __init__(self) -> None:
        self.reviews = 0
        self.due: float | None = None

    def next_due(self) -> float | None:
        return self.due

    def review(self, now: float) -> None:
        self.reviews += 1
        self.due = None


@dataclass
class Source:
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    known: dict[Any, Any] = field(default_factory=dict)


@dataclass
class Elected:
    leading: asyncio.Event = field(default_factory=asyncio.Event)
    election: Any = None


class Dispatched:
    def __init__(self) -> None:
        self.gates = Gate()
        self.decisions: list[Decision] = []

    def dispatch(self, decisions: list[Decision]) -> None:
        self.decisions += decisions


class Scene:
    """A loop whose parts are all made up."""

    def __init__(self, scheduler: Clockwork, *, elector: Any = None, **settings: Any) -> None:
        self.scheduler = scheduler
        self.sources = {"Pod": Source(), "Node": Source()}
        self.dispatcher, self.elector, self.decision_log = Dispatched(), elector, None
        self.binding_lease, self.foreign_pods, self.queue = (
            None,
            None,
            CallQueue(ConcurrencyLimits(), lambda error: None),
        )
        self.inbox, self.ready = Inbox(), asyncio.Event()
        self._loop = SchedulingLoop(
            scheduler,
            self,  # type: ignore[arg-type]
            self.inbox,
            MonotonicClock(),
            Metrics(),
            Settings(**settings),
        )

    def sync(self) -> None:
        for source in self.sources.values():
            source.synced.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self._loop.run(self.ready))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def a_moment() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_until_everything_is_listed_events_are_taken_in_and_nothing_is_decided():
    scene = Scene(Clockwork(due=0.0))
    async with scene.running():
        scene.inbox.report(BindSucceeded("u9", "n1"))
        scene.sources["Pod"].synced.set()
        await a_moment()
        assert scene.scheduler.heard == [BindSucceeded("u9", "n1")]
        assert scene.scheduler.cycles == 0

        scene.sync()
        await asyncio.wait_for(scene.ready.wait(), 5)
        await a_moment()
    assert scene.scheduler.heard[-1] == CacheSynced()
    assert scene.dispatcher.decisions == [Bind(POD, "n1")]


async def test_while_another_process_leads_nothing_is_decided():
    scene = Scene(Clockwork(due=0.0), elector=Elected(election=type("Named", (), {"name": "muster"})))
    scene.sync()
    async with scene.running():
        await a_moment()
        assert scene.scheduler.cycles == 0
        assert not scene.ready.is_set()

        scene.elector.leading.set()
        await asyncio.wait_for(scene.ready.wait(), 5)
        await a_moment()
    assert scene.dispatcher.decisions == [Bind(POD, "n1")]


async def test_the_loop_wakes_when_the_scheduler_is_due():
    scene = Scene(Clockwork(due=MonotonicClock().now() + 0.05))
    scene.sync()
    async with scene.running():
        await asyncio.wait_for(scene.ready.wait(), 5)
        assert scene.dispatcher.decisions == []

        async def bound() -> bool:
            return bool(scene.dispatcher.decisions)

        await eventually(bound)


async def test_the_loop_wakes_when_a_held_bind_is_due():
    scene = Scene(Clockwork())
    scene.dispatcher.gates.due = MonotonicClock().now() + 0.05
    scene.sync()
    async with scene.running():

        async def reviewed() -> bool:
            return bool(scene.dispatcher.gates.reviews)

        await eventually(reviewed)


async def test_without_anything_due_an_event_wakes_the_loop():
    scene = Scene(Clockwork(), most_events=2)
    scene.sync()
    async with scene.running():
        await asyncio.wait_for(scene.ready.wait(), 5)
        await a_moment()
        for number in range(5):
            scene.inbox.report(BindSucceeded(f"u{number}", "n1"))
        await a_moment()
    assert [event.uid for event in scene.scheduler.heard if isinstance(event, BindSucceeded)] == [
        f"u{number}" for number in range(5)
    ]


async def test_a_call_that_crashed_ends_the_loop():
    scene = Scene(Clockwork())
    scene.sync()
    async with scene.running() as task:
        await asyncio.wait_for(scene.ready.wait(), 5)
        scene.inbox.crashed(KeyError("x"))
        with pytest.raises(RuntimeError, match="nobody foresaw"):
            await asyncio.wait_for(asyncio.shield(task), 5)


# Binds that were lost before they were sent


def a_bind(name: str) -> Bind:
    return Bind(ObjectRef("Pod", "default", name, name), "n")


def a_claim(name: str, consumer: str, kind: str = "Pod", allocation: bool = True) -> AllocateClaim:
    claim = ObjectRef("ResourceClaim", "default", name, name)
    return AllocateClaim(claim, ObjectRef(kind, "default", consumer, consumer), {} if allocation else None)


def test_claims_of_binds_that_were_lost_are_not_written():
    decisions: list[Decision] = [a_claim("c-a", "a"), a_claim("c-b", "b"), a_bind("a"), a_bind("b")]
    assert without_lost({"a"}, decisions) == [a_claim("c-b", "b"), a_bind("b")]
    assert without_lost({"a", "b"}, decisions) == []


def test_a_claim_of_the_group_is_written_while_a_member_is_bound():
    decisions: list[Decision] = [a_claim("shared", "g", "PodGroup"), a_bind("a"), a_bind("b")]
    assert without_lost({"a"}, decisions) == [decisions[0], a_bind("b")]
    assert without_lost({"a", "b"}, decisions) == []


def test_a_claim_that_another_pod_needs_keeps_the_allocation_that_came_with_the_lost_one():
    first, second = a_claim("shared", "a"), a_claim("shared", "b", allocation=False)
    assert without_lost({"a"}, [first, second, a_bind("a"), a_bind("b")]) == [first, second, a_bind("b")]


def test_volumes_of_a_lost_bind_go_with_it():
    volume = SelectVolumeNode(ObjectRef("PersistentVolumeClaim", "default", "v", "v"), "n")
    assert without_lost({"a"}, [volume, a_bind("a"), a_bind("b")]) == [a_bind("b")]
