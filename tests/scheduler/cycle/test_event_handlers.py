"""How events of nodes, groups and Workloads change the state, in whatever order they come."""

from __future__ import annotations

import itertools

import pytest

from muster.api import groups as api
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_objects_may_arrive_in_any_order(order: tuple[int, ...]):
    things = [a_gang("g", 2), *pods(2, "g"), a_node("n0", cpu=2)]
    world = a_world()

    for index in order:
        world.add(things[index]).run()

    assert len(world.bound()) == 2


def test_lowering_the_minimum_releases_a_waiting_gang():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 5), *pods(4, "g")).run()
    assert world.bound() == {}

    world.add(a_gang("g", 4)).run()

    assert len(world.bound()) == 4


def test_raising_the_minimum_holds_members_back():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 5), *pods(4, "g")).run()

    world.add(a_gang("g", 6), a_pod("g-4", "g")).run()

    assert world.bound() == {}


def test_a_group_deleted_while_pending_holds_its_pods_until_a_new_one_comes():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.remove("PodGroup", "g")
    world.add(a_node("n1", cpu=4)).run()
    assert world.bound() == {}

    world.add(a_gang("g", 2)).run()

    assert len(world.bound()) == 3


def test_a_member_on_a_lost_node_counts_no_more():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    gone = world.pod("g-0").spec.node_name
    world.remove("Node", gone)
    world.run()

    quorum = world.condition("PodGroup", "g", api.QUORUM_MET)
    assert (quorum.status, quorum.reason) == ("False", "BelowMinimum")
    world.add(a_pod("spare", "g")).run()
    assert "spare" in world.bound()


def test_deleting_one_group_of_a_cycle_leaves_one_entity_which_is_the_top_of_the_tree():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("a", 1, parent="b"), a_composite("b", 1, parent="a"))
    world.add(a_gang("g", 1, parent="a"), a_pod("g-0", "g")).run()
    assert [key.name for key in world.scheduler.state.queue.entities] == ["b"]

    world.remove("CompositePodGroup", "a")

    assert [key.name for key in world.scheduler.state.queue.entities] == ["a"]
    world.add(a_composite("a", 1)).run()
    assert world.bound() == {"g-0": "n0"}
