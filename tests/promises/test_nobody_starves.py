"""A large gang starts although small pods of its priority never stop coming, and keeping room for it costs nobody else.

Random streams of small pods on small clusters, second by second: the gang is bound once its patience is over and the
pods have ended that were in its way. A restarted scheduler keeps the same room. Where no gang waits that long,
decisions are the same with and without reservations, byte for byte.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api import types
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import events
from muster.scheduler.state.reservations import Reservation
from tests.build.examples import examples
from tests.build.objects import RACK, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

BEGIN = 1_767_225_600.0
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
RUN, PATIENCE = 10, 30


class Stream:
    """A world in which small pods come and go, second by second."""

    def __init__(self, seed: int, *, nodes: int, load: float, durations: bool = False, **reservations: Any) -> None:
        entry = {"name": "Muster", "args": {"reservations": {"patienceSeconds": PATIENCE} | reservations}}
        self.world: TestWorld = a_world(config=HEAD | {"profiles": [{"pluginConfig": [entry]}]})
        self.world.now = BEGIN
        self.world.add(*[a_node(f"n{i}", cpu=4, rack=f"r{i % 2}") for i in range(nodes)])
        self.random = Random(seed)
        self.durations = durations
        self.per_second = load * nodes * 4 / RUN
        self.second = self.number = 0
        self.ends: dict[str, int] = {}

    def pass_second(self) -> None:
        world, chance = self.world, self.random
        world.now += 1
        self.second += 1
        for name in [name for name, end in self.ends.items() if end <= self.second]:
            world.remove("Pod", name)
            del self.ends[name]
        count = int(self.per_second) + (chance.random() < self.per_second % 1)
        for _ in range(count):
            self.number += 1
            pod = a_pod(f"p{self.number}", created=self.second)
            if self.durations and chance.random() < 0.8:
                meta = msgspec.structs.replace(pod.metadata, annotations=types.PodAnnotations(f"{RUN}s"))
                pod = msgspec.structs.replace(pod, metadata=meta)
            world.add(pod)
        world.run()
        for name in world.bound("p"):
            if name not in self.ends:
                self.ends[name] = self.second + RUN
                started = msgspec.structs.replace(world.pod(name).status, start_time=world.timestamp())
                world.add(msgspec.structs.replace(world.pod(name), status=started))
        world.run()


@given(st.integers(0, 10**6), st.sampled_from((0.8, 0.95)), st.integers(1, 3), st.booleans(), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_a_gang_is_bound_after_its_patience_and_twice_the_longest_run(
    seed: int, load: float, size: int, constrained: bool, durations: bool
):
    stream = Stream(seed, nodes=6, load=load, durations=durations)
    for _ in range(20):
        stream.pass_second()
    gang = a_gang("gang", size, created=stream.second, topology=RACK if constrained else None)
    stream.world.add(gang, *pods(size, group="gang", cpu=4, created=stream.second))

    for _ in range(PATIENCE + 2 * RUN + 1):
        stream.pass_second()

    assert len(stream.world.bound("gang")) == size
    assert stream.world.evicted() == []


@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans(), st.integers(1, 2))
@settings(max_examples=examples(40), deadline=None)
def test_a_restarted_scheduler_keeps_the_same_room(seed: int, size: int, durations: bool, most: int):
    stream = Stream(seed, nodes=4, load=0.95, durations=durations, max=most)
    for _ in range(15):
        stream.pass_second()
    for name in ("a", "b"):
        stream.world.add(a_gang(name, size, created=stream.second), *pods(size, group=name, cpu=4, created=9))
    for _ in range(PATIENCE + stream.random.randint(1, 6)):
        stream.pass_second()
    stream.world.wait(3)  # nothing changes meanwhile, and everything is computed

    world = stream.world
    fresh = Scheduler(world.scheduler.state.config)
    for (kind, _, _), obj in sorted(world.objects.items(), key=lambda item: item[0]):
        fresh.handle(events.ObjectUpdated(kind, obj), world.now)
    fresh.handle(events.CacheSynced(), world.now)
    fresh.next(world.now)

    assert [_told(each) for each in fresh.state.reservations] == [
        _told(each) for each in world.scheduler.state.reservations
    ]


def _told(reservation: Reservation) -> tuple[Any, ...]:
    seats = sorted((sorted(shape.amounts.items()), node) for shape, node in reservation.seats)
    return (reservation.entity, reservation.domains, seats, reservation.leaving, reservation.since, reservation.start)


@given(st.integers(0, 10**6), st.sampled_from((0.8, 0.95, 1.2)))
@settings(max_examples=examples(20), deadline=None)
def test_without_a_gang_that_waits_long_decisions_are_the_same_with_and_without(seed: int, load: float):
    logs: list[bytes] = []
    for enabled in (True, False):
        stream = Stream(seed, nodes=4, load=load, durations=True, enabled=enabled)
        for second in range(60):
            if second % 9 == 0:
                size = stream.random.randint(1, 3)
                stream.world.add(a_gang(f"q{second}", size), *pods(size, group=f"q{second}", cpu=1))
            if second % 25 == 24:  # before its patience is over
                for name in [name for kind, _, name in stream.world.objects if kind == "PodGroup"]:
                    if len(stream.world.bound(f"{name}-")) == 0:
                        stream.world.remove("PodGroup", name)
            stream.pass_second()
        logs.append(msgspec.json.encode(stream.world.log))

    assert logs[0] == logs[1]
