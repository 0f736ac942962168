"""Statuses of a tree: what holds, where preemption might help, where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.preemption.resolvability import Status, resolve, statuses, worth_preempting_for
from tests.build.cluster import evaluator_of
from tests.build.objects import RACK, a_gang, a_node, a_pod, pods
from tests.build.planning import Scene
from tests.build.scheduler import a_world


def full_scene() -> Scene:
    """Two racks of two nodes with 4 cpu each, all of it in use, and one node without a rack."""
    scene = Scene().nodes(*(a_node(f"n{i}", 4, rack=f"r{i // 2}") for i in range(4)), a_node("loose", 8))
    return scene.running(*(a_pod(f"busy-{i}", cpu=4, node=f"n{i}") for i in range(4)))


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ((2, 2, 0, 0), Status.SUCCESS),
        ((2, 1, 1, 0), Status.WAIT),
        ((2, 1, 0, 1), Status.UNSCHEDULABLE),
        ((2, 1, 0, 0), Status.UNRESOLVABLE),
    ],
)
def test_the_four_statuses_follow_from_the_numbers(numbers: tuple[int, int, int, int], status: Status):
    assert resolve(*numbers) is status


@pytest.mark.parametrize(
    ("demand", "hope"),
    [
        (lambda s: s.uniform("fits", 24), True),
        (lambda s: s.uniform("one-too-many", 25), False),
        (lambda s: s.uniform("a-part-is-enough", 30, min_count=24), True),
        (lambda s: s.uniform("too-big", 2, cpu=9), False),
        (lambda s: s.uniform("rack", 8, topology=RACK), True),
        (lambda s: s.uniform("more-than-a-rack", 9, topology=RACK), False),
        (lambda s: s.gang("mixed", a_pod("small"), a_pod("big", cpu=9)), False),
        (lambda s: s.gang("mixed-enough", a_pod("small"), a_pod("big", cpu=9), min_count=1), True),
        (lambda s: s.uniform("holds-and-the-rest-is-too-big", 1, cpu=9, bound=2, min_count=2), False),
        (lambda s: s.uniform("holds-and-the-rest-could-sit", 1, cpu=8, bound=2, min_count=2), True),
        (lambda s: s.composite("all", s.uniform("a", 24), s.uniform("b", 25)), False),
        (lambda s: s.composite("any", s.uniform("a", 24), s.uniform("b", 25), min_groups=1), True),
    ],
)
def test_hope_is_given_up_only_where_not_even_empty_nodes_would_do(demand: Callable[[Scene], GroupRequest], hope: bool):
    scene = full_scene()
    assert worth_preempting_for(demand(scene), evaluator_of(scene.cluster)) is hope


def test_every_level_has_a_status_of_its_own():
    scene = full_scene()
    holds = scene.uniform("holds", 0, bound=2)
    hoped, hopeless = scene.uniform("hoped", 24), scene.uniform("hopeless", 25)
    either = scene.composite("either", hoped, hopeless, min_groups=1)
    both = scene.composite("both", hoped, hopeless)

    found = statuses(scene.composite("root", holds, either, both, min_groups=2), evaluator_of(scene.cluster))

    assert {key.name: status for key, status in found.items()} == {
        "holds": Status.SUCCESS,
        "hoped": Status.UNSCHEDULABLE,
        "hopeless": Status.UNRESOLVABLE,
        "either": Status.UNSCHEDULABLE,
        "both": Status.UNRESOLVABLE,
        "root": Status.UNSCHEDULABLE,
    }


def test_nobody_is_looked_at_as_a_victim_for_what_can_never_fit():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=100), *pods(2, "g", cpu=3, priority=100)).run()

    assert [found.result for found in world.scheduler.take_preemptions()] == ["no_victims"]
    assert world.evicted() == []
