"""A group that names no priority class is scheduled, preempts and is preempted at the lowest priority of its pods.

The oracle is the same world in which the group carries that priority itself.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.examples import examples
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

groups = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([0, 5, 10, 20]), st.sampled_from(["single", "all"]), st.booleans()),
    min_size=1,
    max_size=5,
)


def after(nodes: int, wanted: list[tuple[int, int, str, bool]], *, classes: bool) -> TestWorld:
    """The world after these groups (pods, priority, disruption mode, below a parent) came one after the other."""
    world = a_world([a_node(f"n{i}", cpu=2) for i in range(nodes)])
    for number, (size, priority, mode, nested) in enumerate(wanted):
        name = f"g{number}"
        own: dict[str, Any] = {"priority": priority if classes else 0, "mode": mode, "created": number}
        own |= {"policy": "PreemptLowerPriority"}
        if nested:
            world.add(a_composite(f"top{number}", 1, **own))
            own |= {"parent": f"top{number}"}
        world.add(a_gang(name, size, **own), *pods(size, name, priority=priority, created=number)).run()
    return world


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 3), groups)
def test_it_is_as_if_the_group_had_the_priority_of_its_pods(nodes: int, wanted: list[tuple[int, int, str, bool]]):
    left_out, named = after(nodes, wanted, classes=False), after(nodes, wanted, classes=True)
    assert left_out.bound() == named.bound()
    assert left_out.evicted() == named.evicted()


def test_a_gang_of_important_pods_without_a_class_evicts_and_runs():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("low", 2), *pods(2, "low")).run()
    world.add(a_gang("g", 2), *pods(2, "g", priority=10)).run()
    assert world.evicted() == ["low-0", "low-1"]
    assert len(world.bound("g")) == 2


def test_the_weakest_member_decides():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("middle", 2), *pods(2, "middle", priority=5)).run()
    world.add(a_gang("g", 2), a_pod("g-0", "g", priority=10), a_pod("g-1", "g", priority=5)).run()
    assert world.evicted() == []
    world.add(a_gang("high", 2), *pods(2, "high", priority=6)).run()
    assert world.evicted() == ["middle-0", "middle-1"]


def test_the_queue_is_in_the_order_of_the_pods_priorities():
    world = a_world([]).add(a_gang("old", 1, created=0), a_gang("new", 1, created=5))
    world.add(a_pod("o", "old", priority=1), a_pod("n", "new", priority=2)).run()
    assert [entity.key.name for entity in world.scheduler.view().queue()] == ["new", "old"]
    world.add(a_pod("weak", "new", priority=0)).run()
    assert [entity.key.name for entity in world.scheduler.view().queue()] == ["old", "new"]


def test_a_weaker_member_that_joins_calls_the_preemption_off():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("middle", 2), *pods(2, "middle", priority=5)).run()
    world.add(a_gang("g", 2), *pods(2, "g", priority=10))
    while world.scheduler.state.preemptions.get(next(iter(world.scheduler.state.queue.entities))) is None:
        assert world.step()
    world.add(a_pod("weak", "g", priority=1)).run()
    assert world.evicted() == []
    assert len(world.bound("middle")) == 2
