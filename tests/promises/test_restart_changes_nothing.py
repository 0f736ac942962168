"""A scheduler that dies before or after any single write leaves nothing half done once it is back.

The world is small but has everything: a tree of two gangs of twelve pods on nodes full of lower priority pods, so
marks, nominations, deletes and binds all happen. Every write is a place to die, exhaustively.
"""

from __future__ import annotations

import pytest

from muster.api import groups as api
from muster.scheduler.interface import decisions as d
from tests.build.examples import sampled
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

HIGH, LOW = 100, 10


def a_full_world(slow: bool) -> TestWorld:
    world = a_world([a_node(f"n{i}", cpu=4) for i in range(4)])
    world.slow_victims = slow
    world.add(*[a_pod(f"low-{i:02d}", priority=LOW, node=f"n{i % 4}") for i in range(16)])
    world.run()
    world.add(a_composite("root", 2, priority=HIGH))
    world.add(a_gang("a", 6, parent="root", priority=HIGH), a_gang("b", 6, parent="root", priority=HIGH))
    world.add(*pods(6, "a", priority=HIGH), *pods(6, "b", priority=HIGH))
    return world


def run_until(world: TestWorld, write: int, after: bool) -> bool:
    """Carry out decisions one by one and die at the given one; False if there are not so many."""
    done = 0
    for _ in range(1000):
        decisions = world.scheduler.next(world.now)
        if not decisions:
            if world.slow_victims and any(p.metadata.deletion_timestamp for p in _pods(world)):
                world.reap()
                continue
            return False
        for decision in decisions:
            if isinstance(decision, d.RecordEvent):
                continue
            if done == write and not after:
                return True
            world._carry_out(decision)
            world.log.append(decision)
            world.check()
            if done == write:
                return True
            done += 1
    raise AssertionError("no rest")


def _pods(world: TestWorld) -> list:
    return [obj for (kind, _, _), obj in world.objects.items() if kind == "Pod"]


def settle(world: TestWorld) -> None:
    for _ in range(50):
        world.wait(1)
        if not any(p.metadata.deletion_timestamp for p in _pods(world)):
            return
        world.reap()


def writes_of(slow: bool) -> int:
    world = a_full_world(slow)
    assert not run_until(world, 10**9, after=True)
    return len([x for x in world.log if not isinstance(x, d.RecordEvent)])


def check_settled(world: TestWorld) -> None:
    assert len(world.bound("a-")) == 6
    assert len(world.bound("b-")) == 6
    assert len(world.evicted()) == len(set(world.evicted())) == 12, "one round of evictions, no more"
    for pod in _pods(world):
        assert not pod.status.nominated_node_name, f"{pod.metadata.name} keeps a nomination"
        marks = [c for c in pod.status.conditions or () if c.type == api.DISRUPTION_TARGET and c.status == "True"]
        assert not marks, f"{pod.metadata.name} keeps a mark"
    assert world.condition("CompositePodGroup", "root").status == "True"


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_write_leaves_all_or_nothing(slow: bool, after: bool):
    total = writes_of(slow)
    assert total > 40
    for write in sampled(range(total)):
        world = a_full_world(slow)
        assert run_until(world, write, after)
        world.restart()
        settle(world)
        check_settled(world)


@pytest.mark.parametrize("gap", [1, 7])
def test_two_crashes_in_a_row_are_survived_too(gap: int):
    total = writes_of(False)
    for write in sampled(range(0, total, 3)):
        world = a_full_world(False)
        assert run_until(world, write, after=True)
        world.restart()
        run_until(world, gap, after=True)
        world.restart()
        settle(world)
        check_settled(world)
