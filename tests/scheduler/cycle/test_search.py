"""Searches that go on in later cycles: others are served, and what was found is applied to the cluster of then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.interface import decisions as d
from muster.scheduler.placement.budget import Pausing
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.planning.node_matrix import NodeSet
from muster.scheduler.planning.tree_search import Found, NotFound, TreeSearch
from muster.scheduler.queue.scheduling_queue import FALLBACK_SECONDS, UNDECIDED_SECONDS
from muster.scheduler.state.searches import MOST_SEARCHES
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

# 6+4, 5+5 and 4+3+3 fill three nodes to the brim; placing pods by score does not find it.
SIZES = (6, 5, 5, 4, 4, 3, 3)
SLICES = 6


@pytest.fixture(autouse=True)
def slow_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search needs some slices more than it would, however good it is."""
    solve = TreeSearch.solve

    def slow(self: TreeSearch, request: GroupRequest, nodes: NodeSet) -> Pausing[Found | NotFound]:
        for _ in range(SLICES):
            yield
        return (yield from solve(self, request, nodes))

    monkeypatch.setattr(TreeSearch, "solve", slow)


def a_puzzle(name: str = "g", sizes: tuple[int, ...] = SIZES, **more: Any) -> list[Any]:
    members = [a_pod(f"{name}-{at}", cpu=size, group=name, **more) for at, size in enumerate(sizes)]
    return [a_gang(name, min_count=len(sizes)), *members]


def ten(*names: str) -> list[Any]:
    return [a_node(name, cpu=10) for name in names]


def a_search_under_way(*objects: Any, nodes: tuple[str, ...] = ("n0", "n1", "n2")) -> TestWorld:
    world = a_world(nodes=ten(*nodes)).add(*(objects or a_puzzle()))
    world.step()
    assert len(world.scheduler.state.searches) == 1, "one slice is not enough"
    return world


def test_a_search_that_needs_several_slices_ends_with_a_placement():
    world = a_search_under_way()
    assert not world.log, "nothing is said before the search has ended"

    world.run()

    assert len(world.bound()) == len(SIZES)
    assert not world.scheduler.state.searches


def test_others_are_served_while_a_search_goes_on():
    world = a_search_under_way(nodes=("n0", "n1", "n2"))
    world.add(a_node("small", cpu=1), a_pod("quick", cpu=1, nodeSelector={"kubernetes.io/hostname": "small"}))

    world.step()
    world.step()

    assert "quick" in world.bound()
    assert len(world.scheduler.state.searches) == 1, "the search is still under way"
    world.run()
    assert len(world.bound()) == len(SIZES) + 1


def test_seats_that_are_gone_are_replaced_where_there_are_others():
    world = a_search_under_way()
    world.add(a_node("n3", cpu=10), a_node("n4", cpu=10))
    world.remove("Node", "n1")

    world.run()

    assert len(world.bound()) == len(SIZES)
    assert "n1" not in world.bound().values()


def test_a_search_whose_seats_are_gone_ends_without_a_placement():
    world = a_search_under_way()
    world.add(a_pod("other", cpu=2, node="n1"))

    world.run()

    assert set(world.bound()) == {"other"}
    assert world.condition("PodGroup", "g").status == "False"


def test_a_group_that_changes_is_searched_for_anew():
    world = a_search_under_way()
    first = world.scheduler.state.searches.get(world.scheduler.state.queue.in_order()[0].key)
    world.add(a_pod("g-more", cpu=1, group="g"))

    world.step()

    assert world.scheduler.state.searches.get(world.scheduler.state.queue.in_order()[0].key) is not first


def test_a_group_that_goes_takes_its_search_with_it():
    world = a_search_under_way()
    world.remove("PodGroup", "g")
    for at in range(len(SIZES)):
        world.remove("Pod", f"g-{at}")

    world.run()

    assert not world.scheduler.state.searches
    assert not world.bound()


def test_infeasible_is_not_said_of_a_cluster_that_gained_room_meanwhile():
    impossible = a_puzzle(sizes=(6, 6, 6, 5, 4, 3))  # 5 fits beside no 6
    world = a_search_under_way(*impossible)
    world.add(a_node("n3", cpu=10))

    world.run()

    assert len(world.bound()) == 6


def test_without_a_change_the_end_of_the_search_is_a_proof():
    world = a_search_under_way(*a_puzzle(sizes=(6, 6, 6, 5, 4, 3)))

    world.run()

    found = world.condition("PodGroup", "g")
    assert (found.status, found.reason) == ("False", "Unschedulable")


def test_only_so_many_searches_are_kept_and_the_others_come_later():
    world = a_world(nodes=ten("n0", "n1", "n2"))
    for number in range(MOST_SEARCHES + 3):
        world.add(*a_puzzle(f"g{number:02}", sizes=(6, 6, 6, 5, 4, 3)))
    most = 0
    while world.step() or not world.scheduler.is_idle(world.now):
        most = max(most, len(world.scheduler.state.searches))

    assert most == MOST_SEARCHES
    for number in range(MOST_SEARCHES + 3):
        assert world.condition("PodGroup", f"g{number:02}").reason == "Unschedulable"


def test_the_same_events_give_the_same_decisions():
    def log() -> list[d.Decision]:
        world = a_search_under_way()
        world.add(a_gang("late", min_count=2), *pods(2, group="late", cpu=5))
        return world.run().log

    assert log() == log()


# --- searches that end without an answer -----------------------------------------------------------


def test_a_search_that_ended_without_an_answer_is_not_begun_again_while_nothing_changes():
    world = a_world(nodes=ten("n0", "n1", "n2"))
    world.scheduler.state.config = replace(world.scheduler.state.config, budget_steps=1)
    world.add(*a_puzzle()).run()
    (entity,) = world.scheduler.state.queue.entities.values()
    assert (entity.reason, entity.attempts) == ("PlacementNotGuaranteed", 1)
    spent = world.scheduler.state.planned_steps

    world.wait(3 * FALLBACK_SECONDS)
    assert (entity.attempts, world.scheduler.state.planned_steps) == (1, spent)

    world.add(a_node("n1", cpu=10, labels={"disk": "ssd"})).wait(UNDECIDED_SECONDS)
    assert entity.attempts == 2
