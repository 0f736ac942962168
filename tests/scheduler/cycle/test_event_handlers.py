"""How events of nodes, groups and Workloads change the state, in whatever order they come."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from muster.api import groups as api
from muster.api import types
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import EntityKey
from tests.build.objects import a_budget, a_composite, a_gang, a_node, a_pod, of, pods
from tests.build.scheduler import TestWorld, a_world


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


def a_tree_of_two(minimum: int, room: int) -> TestWorld:
    world = a_world([a_node("n0", cpu=room)]).add(a_composite("top", minimum), a_gang("a", 1, parent="top"))
    return world.add(a_gang("b", 2, parent="top"), *pods(1, "a"), *pods(2, "b")).run()


def test_lowering_the_number_of_children_releases_a_waiting_tree():
    world = a_tree_of_two(2, room=1)
    assert world.bound() == {}
    world.add(a_composite("top", 1)).run()
    assert list(world.bound()) == ["a-0"]


def test_raising_the_number_of_children_holds_a_waiting_tree_back():
    world = a_tree_of_two(1, room=0)
    world.add(a_composite("top", 2), a_node("n0", cpu=1)).run()
    assert world.bound() == {}
    world.add(a_node("n0", cpu=3)).run()
    assert len(world.bound()) == 3


def test_raising_the_number_of_children_of_a_running_tree_is_said_and_takes_nothing_back():
    world = a_tree_of_two(1, room=1)
    world.add(msgspec.structs.replace(world.get("CompositePodGroup", "top"), spec=a_composite("top", 2).spec)).run()
    assert list(world.bound()) == ["a-0"]
    assert world.condition("CompositePodGroup", "top").status == "True"
    quorum = world.condition("CompositePodGroup", "top", api.QUORUM_MET)
    assert (quorum.status, quorum.message) == ("False", "1 of 2 child groups are bound")


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


def test_disruption_budgets_are_kept_while_they_exist():
    world = a_world().add(a_budget("b", 1, app="x"))
    assert list(world.scheduler.state.budgets) == [("ns", "b")]
    world.remove("PodDisruptionBudget", "b")
    assert world.scheduler.state.budgets == {}


def test_a_workload_that_is_deleted_no_longer_makes_a_tree_invalid():
    world = a_world([a_node("n0", cpu=4)])
    body = {"metadata": {"name": "wl", "namespace": "ns", "uid": "wl"}, "spec": {"podGroupTemplates": []}}
    world.add(of(api.Workload, body), a_gang("g", 1, workload="wl/other"), a_pod("g-0", "g")).run()
    assert world.bound() == {}
    world.remove("Workload", "wl")
    assert world.run().bound() == {"g-0": "n0"}


def test_the_deletion_of_a_group_that_was_never_seen_changes_nothing():
    world = a_world([a_node("n0")]).add(a_pod("g-0", "g"))
    version = world.scheduler.state.version
    for name in ("g", "unknown"):
        world.scheduler.handle(events.ObjectDeleted("PodGroup", "ns", name, "uid"), 0.0)
    assert world.scheduler.state.version == version
    assert list(world.scheduler.state.queue.entities) == [EntityKey("PodGroup", "ns", "g")]


def test_a_status_that_comes_back_changes_nothing():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 2), *pods(2, "g")).run()
    version = world.scheduler.state.version
    world.add(world.get("PodGroup", "g"))
    assert world.scheduler.state.version == version


def test_a_group_that_moves_to_another_tree_is_queued_there_alone():
    world = a_world().add(a_composite("old", 1), a_composite("new", 1), a_gang("g", 1, parent="old"), a_pod("g-0", "g"))
    assert [key.name for key in world.scheduler.state.queue.entities] == ["old"]
    world.add(a_gang("g", 1, parent="new"))
    assert [key.name for key in world.scheduler.state.queue.entities] == ["new"]


def test_what_is_left_of_a_tree_that_a_group_leaves_stays_queued():
    world = a_world().add(a_composite("old", 1), a_gang("g", 1, parent="old"), a_gang("h", 1, parent="old"))
    world.add(a_pod("g-0", "g"), a_pod("h-0", "h"), a_gang("g", 1))
    assert sorted(key.name for key in world.scheduler.state.queue.entities) == ["g", "old"]


def test_a_tree_that_loses_a_child_which_counted_says_so():
    world = a_world(nodes=[a_node("n0", cpu=8)])
    world.add(a_composite("c", min_groups=2), a_gang("a", 1, parent="c"), a_gang("b", 1, parent="c"))
    world.add(*pods(1, group="a"), *pods(1, group="b")).run()

    def quorum() -> str:
        conditions = world.get("CompositePodGroup", "c").status.conditions or ()
        return next(each.status for each in conditions if each.type == api.QUORUM_MET)

    assert quorum() == "True"
    world.remove("PodGroup", "b")
    world.run()
    assert quorum() == "False"


def test_who_did_not_lead_learns_from_the_status_that_a_gang_has_started():
    """Its members ended before it saw them bound together, so only the condition tells that late ones may start."""
    world = a_world([a_node("n0")])
    gang = a_gang("g", 2)
    world.add(gang, *(a_pod(f"g-{i}", "g", node="n0", phase="Succeeded") for i in range(2)))
    condition = types.Condition(type=api.POD_GROUP_INITIALLY_SCHEDULED, status="True", reason="Scheduled")
    world.add(msgspec.structs.replace(gang, status=msgspec.structs.replace(gang.status, conditions=(condition,))))
    world.add(a_pod("g-2", "g")).run()
    assert world.bound("g-2") == {"g-2": "n0"}
