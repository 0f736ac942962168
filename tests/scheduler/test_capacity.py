"""What could never be, whoever left: told without asking who could leave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.scheduler.capacity import could_ever_hold
from muster.scheduler.planning.demand import Demand
from tests.scheduler.planning.scene import RACK, Scene, a_node, a_pod
from tests.scheduler.worlds import a_gang, a_world, pods
from tests.scheduler.worlds import a_node as a_world_node
from tests.scheduler.worlds import a_pod as a_world_pod


def full_scene() -> Scene:
    """Two racks of two nodes with 4 cpu each, all of it in use, and one node without a rack."""
    scene = Scene().nodes(*(a_node(f"n{i}", 4, rack=f"r{i // 2}") for i in range(4)), a_node("loose", 8))
    return scene.running(*(a_pod(f"busy-{i}", 4, node=f"n{i}") for i in range(4)))


@pytest.mark.parametrize(
    ("demand", "hope"),
    [
        (lambda s: s.uniform("fits", 24), True),
        (lambda s: s.uniform("one-too-many", 25), False),
        (lambda s: s.uniform("a-part-is-enough", 30, min_count=24), True),
        (lambda s: s.uniform("too-big", 2, cpu=9), False),
        (lambda s: s.uniform("rack", 8, topology=RACK), True),
        (lambda s: s.uniform("more-than-a-rack", 9, topology=RACK), False),
        (lambda s: s.gang("mixed", a_pod("small"), a_pod("big", 9)), False),
        (lambda s: s.gang("mixed-enough", a_pod("small"), a_pod("big", 9), min_count=1), True),
        (lambda s: s.uniform("has-enough-already", 1, cpu=9, bound=2, min_count=2), False),
        (lambda s: s.composite("all", s.uniform("a", 24), s.uniform("b", 25)), False),
        (lambda s: s.composite("any", s.uniform("a", 24), s.uniform("b", 25), min_groups=1), True),
    ],
)
def test_hope_is_given_up_only_where_not_even_empty_nodes_would_do(demand: Callable[[Scene], Demand], hope: bool):
    scene = full_scene()
    assert could_ever_hold(scene.cluster, demand(scene)) is hope


def test_nobody_is_looked_at_as_a_victim_for_what_can_never_fit():
    world = a_world([a_world_node("n0", cpu=2)])
    world.add(*[a_world_pod(f"low-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=100), *pods(2, "g", cpu=3, priority=100)).run()

    assert world.brain.world.census._question is None
    assert [found.result for found in world.brain.take_rounds()] == ["no_victims"]
    assert world.evicted() == []
