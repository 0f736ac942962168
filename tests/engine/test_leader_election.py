"""One leader at a time, and nothing written by a process that is not surely the leader."""

from __future__ import annotations

import asyncio
import time

import pytest

from muster.api.resources import LEASES
from muster.client.clock import MonotonicClock, micro_timestamp
from muster.engine.engine import AnotherSchedulerActive, Engine, LeadershipLost, Settings
from muster.engine.leader_election import Election, Elector
from tests.engine.builders import FirstNodeScheduler, Profiles
from tests.engine.conftest import World, eventually
from tests.engine.faulty import FaultyClient


def an_election(identity: str, **kwargs) -> Election:
    times = {"lease_duration": 1.0, "renew_deadline": 0.3, "retry_period": 0.05, **kwargs}
    return Election(identity, **times)


def an_engine(world: World, client: FaultyClient, scheduler: FirstNodeScheduler, identity: str, **kwargs) -> Engine:
    settings = Settings(election=an_election(identity, **kwargs))
    return Engine(client, Profiles(), settings, scheduler=scheduler, clock=MonotonicClock())


async def lease(world: World) -> dict:
    return (await world.direct.get(LEASES, "muster", "kube-system"))["spec"]


def run(world: World, engine: Engine) -> asyncio.Task[None]:
    task = asyncio.create_task(engine.run())
    world.running.append((engine, task))
    return task


async def leads(engine: Engine) -> None:
    async def leading() -> bool:
        return engine.ready.is_set()

    await eventually(leading)


async def test_only_one_of_two_engines_decides(world: World):
    first, second = FirstNodeScheduler(), FirstNodeScheduler()
    leader = an_engine(world, world.client, first, "one")
    run(world, leader)
    await leads(leader)
    run(world, an_engine(world, FaultyClient(world.client.inner), second, "two"))
    await world.node()
    await world.pod("p")

    async def bound() -> bool:
        return await world.node_of("p") == "n1"

    await eventually(bound)
    await asyncio.sleep(0.8)
    assert (await lease(world))["holderIdentity"] == "one"
    assert second.synced is False, "the other one takes events in and decides nothing"
    assert len(second.heard) > 0


async def test_a_clean_stop_hands_over_at_once(world: World):
    leader = an_engine(world, world.client, FirstNodeScheduler(), "one", lease_duration=30, renew_deadline=20)
    run(world, leader)
    await leads(leader)
    heir = an_engine(
        world, FaultyClient(world.client.inner), FirstNodeScheduler(), "two", lease_duration=30, renew_deadline=20
    )
    run(world, heir)

    leader.stop()

    await leads(heir)
    spec = await lease(world)
    assert spec["holderIdentity"] == "two"
    assert spec["leaseTransitions"] == 1


async def test_a_leader_cut_off_from_the_server_writes_nothing_after_its_deadline(world: World):
    await world.node()
    scheduler = FirstNodeScheduler()
    engine = an_engine(world, world.client, scheduler, "one")
    task = run(world, engine)
    await leads(engine)

    def no_lease(verb: str, name: str) -> None:
        if name.startswith("leases"):
            raise ConnectionError("cut off")

    world.client.before = no_lease
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(asyncio.shield(task), 5)
    await world.pod("too-late")
    await asyncio.sleep(0.2)

    assert world.client.verbs("bind") == []


async def test_a_write_under_way_at_the_deadline_is_cut_off(world: World):
    await world.node()
    scheduler = FirstNodeScheduler()
    engine = an_engine(world, world.client, scheduler, "one")
    task = run(world, engine)
    await leads(engine)
    cut: list[str] = []
    bind = world.client.inner.bind

    async def never_answered(*args: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cut.append("bind")
            raise
        await bind(*args)

    world.client.inner.bind = never_answered  # type: ignore[method-assign]
    await world.pod("slow")

    async def under_way() -> bool:
        return bool(world.client.verbs("bind"))

    await eventually(under_way)
    world.client.before = lambda verb, name: _refuse(name)
    began = asyncio.get_running_loop().time()
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(asyncio.shield(task), 5)

    assert cut == ["bind"]
    assert asyncio.get_running_loop().time() - began < 2
    assert await world.node_of("slow") == ""


def _refuse(name: str) -> None:
    if name.startswith("leases"):
        raise ConnectionError("cut off")


async def test_a_scheduling_cycle_that_lasted_past_the_deadline_commits_nothing(world: World):
    class Ponderous(FirstNodeScheduler):
        def next(self, now: float):
            made = super().next(now)
            if made:
                block(0.6)
            return made

    await world.node()
    engine = an_engine(world, world.client, Ponderous(), "one")
    task = run(world, engine)
    await leads(engine)
    await world.pod("p")

    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(asyncio.shield(task), 5)

    assert world.client.verbs("bind") == []


def block(seconds: float) -> None:
    """Hold up the event loop, as a long scheduling cycle does."""
    time.sleep(seconds)


async def test_an_expired_lease_is_taken_by_the_next_one(world: World):
    dead = {"holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 4}
    await world.direct.create(LEASES, {"metadata": {"name": "muster", "namespace": "kube-system"}, "spec": dead})

    engine = an_engine(world, world.client, FirstNodeScheduler(), "heir")
    run(world, engine)
    await leads(engine)

    spec = await lease(world)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("heir", 5)


async def test_a_lease_with_a_time_from_another_clock_is_judged_by_our_own(world: World):
    clock = MonotonicClock()
    future = micro_timestamp(clock.now() + 3600)
    spec = {"holderIdentity": "skewed", "leaseDurationSeconds": 1, "renewTime": future}
    await world.direct.create(LEASES, {"metadata": {"name": "muster", "namespace": "kube-system"}, "spec": spec})
    elector = Elector(world.direct, an_election("me"), clock)
    task = asyncio.create_task(elector.run(lambda: None))

    await asyncio.wait_for(elector.leading.wait(), 5)

    assert elector.may_write()
    task.cancel()


async def test_default_scheduler_is_not_served_beside_a_kube_scheduler_that_renews(world: World):
    meta = {"name": "kube-scheduler", "namespace": "kube-system"}
    spec = {"holderIdentity": "control-plane-1", "leaseDurationSeconds": 15}
    await world.direct.create(LEASES, {"metadata": meta, "spec": spec})

    async def renew() -> None:
        while True:
            await asyncio.sleep(0.01)
            now = {"spec": {"renewTime": micro_timestamp(MonotonicClock().now())}}
            await world.direct.patch(LEASES, "kube-scheduler", now, "kube-system")

    renewing = asyncio.create_task(renew())
    try:
        with pytest.raises(AnotherSchedulerActive, match="control-plane-1"):
            await world.start(FirstNodeScheduler(), "default-scheduler")
    finally:
        renewing.cancel()


async def test_default_scheduler_is_served_when_that_lease_is_stale(world: World):
    meta = {"name": "kube-scheduler", "namespace": "kube-system"}
    await world.direct.create(LEASES, {"metadata": meta, "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 1}})

    engine = await world.start(FirstNodeScheduler(), "default-scheduler")

    assert engine.ready.is_set()


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"lease_duration": 5, "renew_deadline": 10}, "leaseDuration must be greater"),
        ({"lease_duration": 15, "renew_deadline": 2, "retry_period": 2}, "renewDeadline must be greater"),
        ({"lease_duration": 0.5, "renew_deadline": 0.4, "retry_period": 0.1}, "at least 1s"),
    ],
)
def test_election_times_that_cannot_work_are_refused(times: dict[str, float], words: str):
    assert words in (Election("me", **times).fault() or "")
