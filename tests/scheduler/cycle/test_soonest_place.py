"""The place where an entity will fit soonest, compared with trying every set of pods that could leave."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cycle.evaluate import current_request, evaluate
from muster.scheduler.cycle.soonest_place import known_start, soonest_place
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Placed
from tests.build.examples import examples
from tests.build.objects import HOSTNAME, RACK, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

BEGIN = 1_767_225_600.0
KEY = EntityKey("PodGroup", "ns", "g")


def a_random_world(seed: int, *, durations: bool) -> TestWorld:
    """Up to three nodes with up to seven running pods, and a gang that does not fit."""
    chance = Random(seed)
    world = a_world()
    world.now = BEGIN
    sizes = [chance.randint(2, 4) for _ in range(chance.randint(1, 3))]
    world.add(*[a_node(f"n{i}", cpu=size, rack=f"r{i % 2}") for i, size in enumerate(sizes)])
    running = 0
    for i, size in enumerate(sizes):
        left = size
        while left > 0 and running < 7 and chance.random() < 0.9:
            cpu = chance.randint(1, min(2, left))
            deadline = {"activeDeadlineSeconds": chance.randint(1, 50) * 10} if durations else {}
            world.add(a_pod(f"r{running}", node=f"n{i}", cpu=cpu, created=chance.randint(0, 9), **deadline))
            left, running = left - cpu, running + 1
    size = chance.randint(1, 2)
    topology = RACK if chance.random() < 0.4 else None
    world.add(a_gang("g", size, topology=topology), *pods(size, group="g", cpu=chance.randint(1, max(sizes))))
    return world.run()


def place_of(world: TestWorld) -> Any:
    state = world.scheduler.state
    entity = state.queue.entities.get(KEY)
    if entity is None:
        return None, None
    request = current_request(state, entity)
    return soonest_place(state, KEY, request, (), world.now)[0], entity


def fits_without(world: TestWorld, entity: Any, gone: tuple[str, ...]) -> bool:
    return isinstance(evaluate(world.scheduler.state, entity, evicted=gone).verdict, Placed)


@given(st.integers(0, 10**6))
@settings(max_examples=examples(200), deadline=None)
def test_the_known_start_is_the_first_moment_at_which_it_fits(seed: int):
    world = a_random_world(seed, durations=True)
    place, entity = place_of(world)
    if entity is None:
        return
    members = world.scheduler.state.forest.members
    ends = {
        uid: BEGIN + int(members[uid].pod.status.start_time[-3:-1]) + members[uid].pod.spec.active_deadline_seconds
        for uid in world.scheduler.state.cluster.pods
    }
    moments = sorted(set(ends.values()))
    first = next(
        (t for t in moments if fits_without(world, entity, tuple(uid for uid, end in ends.items() if end <= t))), None
    )
    assert (place.start if place is not None else None) == first
    if place is not None:
        assert fits_without(world, entity, tuple(holder.uid for holder in place.leaving))
    request = current_request(world.scheduler.state, entity)
    assert known_start(world.scheduler.state, KEY, request, (), world.now) == first


@given(st.integers(0, 10**6))
@settings(max_examples=examples(200), deadline=None)
def test_once_the_named_pods_have_left_it_fits(seed: int):
    world = a_random_world(seed, durations=False)
    place, entity = place_of(world)
    if entity is None:
        return
    every = tuple(world.scheduler.state.cluster.pods)
    assert (place is not None) == fits_without(world, entity, every)
    if place is None:
        return
    leaving = {holder.uid for holder in place.leaving}
    assert fits_without(world, entity, tuple(sorted(leaving)))
    nodes = {assignment.node for assignment in place.placed.assignments}
    assert {world.scheduler.state.forest.members[uid].node for uid in leaving} <= nodes


def test_mostly_the_fewest_pods_have_to_leave():
    """The order of nodes is a heuristic; of random small cases nearly all are best, and none is far off."""
    cases = worse = 0
    for seed in range(150):
        world = a_random_world(seed, durations=False)
        place, entity = place_of(world)
        if place is None:
            continue
        cases += 1
        pods_there = tuple(world.scheduler.state.cluster.pods)
        fewest = next(
            n
            for n in range(len(pods_there) + 1)
            if any(fits_without(world, entity, gone) for gone in combinations(pods_there, n))
        )
        assert len(place.leaving) <= fewest + 2
        worse += len(place.leaving) > fewest
    assert cases > 50
    assert worse <= cases * 0.1


@pytest.mark.parametrize("order", [1, -1])
def test_the_place_does_not_depend_on_which_pod_was_seen_first(order: int):
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=4)])
    world.now = BEGIN
    world.add(a_pod("r0", cpu=4, node="n0"), *[a_pod(f"r1-{i}", cpu=2, node="n1") for i in range(2)])
    gang = [a_pod("g-0", "g", cpu=3), a_pod("g-1", "g", cpu=3, nodeSelector={HOSTNAME: "n1"})]
    world.add(*gang[::order], a_gang("g", 1)).run()

    place, _ = place_of(world)

    assert [assignment.node for assignment in place.placed.assignments] == ["n0"], "one pod has to leave"


def test_seats_kept_for_others_are_not_free():
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=4)])
    world.now = BEGIN
    world.add(a_pod("a", node="n0"), *[a_pod(f"b{i}", node="n1") for i in range(3)])
    world.add(a_gang("g", 1), *pods(1, group="g", cpu=4)).run()
    state = world.scheduler.state
    entity = state.queue.entities[KEY]
    request = current_request(state, entity)
    shape = request.members[0].shape

    place, _ = soonest_place(state, KEY, request, [(shape, state.cluster.index["n0"])], world.now)

    assert [assignment.node for assignment in place.placed.assignments] == ["n1"]
