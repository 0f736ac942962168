"""The pods that may leave for an entity that waits: which they are, and that their times are worked out in slices."""

from __future__ import annotations

import math

import pytest

from muster.scheduler.cycle import holders
from muster.scheduler.cycle.holders import holders_for, learn_times
from muster.scheduler.interface.keys import EntityKey
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

BEGIN = 1_767_225_600.0


def a_waiting_world(running: int = 4) -> TestWorld:
    """Two full nodes whose pods end after ten minutes, and a gang that has waited for its whole patience."""
    world = a_world([a_node(f"n{i}", cpu=running) for i in range(2)])
    world.now = BEGIN
    world.add(*[a_pod(f"{i}-{j}", node=f"n{i}", activeDeadlineSeconds=600) for i in range(2) for j in range(running)])
    world.add(a_gang("g", 2), *pods(2, group="g", cpu=running)).run()
    world.now += 300
    return world


def key(name: str = "g") -> EntityKey:
    return EntityKey("PodGroup", "ns", name)


def test_every_running_pod_of_others_may_leave():
    found = holders_for(a_waiting_world().scheduler.state, key(), BEGIN)
    assert sorted(found.uids) == sorted(f"pod-{i}-{j}" for i in range(2) for j in range(4))
    assert found.end.tolist() == [BEGIN + 600] * 8
    assert sorted(found.slot.tolist()) == [0] * 4 + [1] * 4


def test_own_pods_and_pods_that_belong_to_their_node_stay():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 1), a_pod("own", node="n0", group="g"), a_pod("other", node="n0"))
    world.add(a_pod("daemon", node="n0", owner="DaemonSet/d"))
    assert holders_for(world.run().scheduler.state, key(), BEGIN).uids == ["pod-other"]


def test_an_end_that_is_not_known_or_over_is_never():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_pod("for-ever", node="n0"), a_pod("soon", node="n0", activeDeadlineSeconds=60))
    state = world.run().scheduler.state
    ends = dict(zip((found := holders_for(state, key(), BEGIN)).uids, found.end.tolist(), strict=True))
    assert ends == {"pod-for-ever": math.inf, "pod-soon": BEGIN + 60}
    assert found.with_known_end().uids == ["pod-soon"]
    assert [holder.end for holder in found.of(range(2))] == [None, BEGIN + 60]
    late = holders_for(state, key(), BEGIN + 60 + 30 + 11)
    assert late.end.tolist() == [math.inf, math.inf], "nobody knows when a pod goes that overstays"


def test_times_are_worked_out_some_at_a_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(holders, "MOST_LEARNED", 3)
    state = a_waiting_world().scheduler.state
    assert [learn_times(state, BEGIN) for _ in range(3)] == [False, False, True], "8 pods, three a cycle"


def test_room_is_kept_as_if_all_times_had_been_known_at_once(monkeypatch: pytest.MonkeyPatch):
    world = a_waiting_world()
    world.scheduler.next(world.now)
    at_once = list(world.scheduler.state.reservations)
    assert at_once
    monkeypatch.setattr(holders, "MOST_LEARNED", 3)
    slow = a_waiting_world()
    cycles = 0
    while not slow.scheduler.state.reservations:
        assert not slow.scheduler.is_idle(slow.now)
        slow.scheduler.next(slow.now)
        cycles += 1
    assert cycles == 3
    assert [each.place for each in slow.scheduler.state.reservations] == [each.place for each in at_once]


def test_nobody_is_placed_before_it_is_known_what_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(holders, "MOST_LEARNED", 3)
    world = a_waiting_world()
    world.scheduler.state.reservations.ask()
    world.add(a_node("n2", cpu=1), a_pod("new", cpu=1))
    assert world.scheduler.next(world.now) == []
    assert "new" in {entity.key.name for entity in world.scheduler.state.queue.entities.values()}


def test_nothing_is_worked_out_for_a_group_that_fits_nowhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(holders, "MOST_LEARNED", 3)
    world = a_world([a_node("n0", cpu=4)])
    world.now = BEGIN
    world.add(*[a_pod(f"p{i}", node="n0", activeDeadlineSeconds=600) for i in range(4)])
    world.add(a_gang("g", 1), *pods(1, group="g", cpu=9)).run()
    world.now += 300
    world.scheduler.next(world.now)
    assert not world.scheduler.state.reservations.learning
