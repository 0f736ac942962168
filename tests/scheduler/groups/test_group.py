"""One group and one member: what counts, what the tree above and below it says, priority and policy."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import (
    FAILED,
    LEAVING,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Group,
    Member,
    entity_key,
    group_name,
    may_preempt,
    priority_of,
    state_of,
)
from muster.scheduler.interface.keys import EntityKey
from tests.build.objects import RACK, a_basic, a_composite, a_gang, a_pod, pods


def a_forest(*objects: Any) -> Forest:
    forest = Forest()
    for obj in objects:
        if type(obj).__name__ == "Pod":
            name = group_name(obj)
            forest.put_member(obj, EntityKey("PodGroup", "ns", name) if name else None)
        else:
            forest.put_group(obj)
    return forest


def the(forest: Forest, name: str) -> Group:
    return next(group for key, group in forest.groups.items() if key.name == name)


# --- members ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, PENDING),
        ({"node": "n0"}, RUNNING),
        ({"node": "n0", "deleting": True}, LEAVING),
        ({"deleting": True}, LEAVING),
        ({"node": "n0", "phase": "Succeeded"}, SUCCEEDED),
        ({"node": "n0", "phase": "Failed", "deleting": True}, FAILED),
    ],
    ids=str,
)
def test_the_state_of_a_pod(fields: dict[str, Any], state: str):
    assert state_of(a_pod("x", **fields)) == state


def test_members_are_placed_by_priority_then_age_then_uid():
    members = [
        Member(a_pod(name, priority=p, created=c))
        for name, p, c in (("b", 0, 1), ("a", 0, 1), ("c", 5, 9), ("d", 0, 0))
    ]
    assert [m.ref.name for m in sorted(members, key=lambda m: m.order)] == ["c", "d", "a", "b"]


def test_gates_hold_a_pod_until_it_is_bound():
    assert Member(a_pod("x", gates=["hold"])).gated
    assert not Member(a_pod("x", gates=["hold"], node="n0")).gated


def test_a_member_is_on_its_node_or_on_the_one_it_is_assumed_on():
    member = Member(a_pod("x"))
    assert member.node == ""
    member.assumed = "n1"
    assert member.node == "n1"
    member.update(a_pod("x", node="n0"))
    assert member.node == "n0"


def test_a_pod_is_queued_under_itself_or_under_the_top_of_its_tree():
    forest = a_forest(a_composite("top", 1), a_gang("g", 1, parent="top"), a_pod("p", "g"), a_pod("solo"))
    keys = {m.ref.name: entity_key(m) for m in forest.members.values()}
    assert keys == {"p": EntityKey("CompositePodGroup", "ns", "top"), "solo": EntityKey("Pod", "ns", "solo")}


# --- one group -------------------------------------------------------------------------------------


def test_members_that_succeeded_count_once_the_group_was_scheduled():
    group = the(
        a_forest(a_gang("g", 2), a_pod("a", "g", node="n0"), a_pod("b", "g", node="n0", phase="Succeeded")), "g"
    )
    assert (group.bound, group.quorum_bound) == (1, False)
    group.scheduled_once = True
    assert (group.bound, group.quorum_bound) == (2, True)


def test_pending_members_are_known_but_not_bound():
    group = the(a_forest(a_gang("g", 3), a_pod("a", "g", node="n0"), *pods(2, "g")), "g")
    assert (group.known, group.bound, group.admissible, group.placeable) == (3, 1, True, True)


def test_a_group_with_all_of_its_pods_bound_has_nothing_to_place():
    group = the(a_forest(a_gang("g", 1), a_pod("a", "g", node="n0")), "g")
    assert (group.admissible, group.placeable) == (True, False)


def test_a_basic_group_needs_one_member():
    assert the(a_forest(a_basic("g")), "g").minimum == 1


def test_the_constraint_and_the_disruption_mode_are_those_of_the_object():
    forest = a_forest(a_gang("g", 1, topology=RACK, mode="all"), a_gang("h", 1), a_pod("p", "named"))
    assert [(the(forest, name).topology, the(forest, name).disrupts_all) for name in ("g", "h", "named")] == [
        (RACK, True),
        (None, False),
        (None, False),
    ]


# --- trees -----------------------------------------------------------------------------------------


def test_a_composite_counts_the_children_whose_minimum_is_bound():
    forest = a_forest(a_composite("top", 2), a_gang("a", 1, parent="top"), a_gang("b", 2, parent="top"))
    forest.put_member(a_pod("a-0", "a", node="n0"), EntityKey("PodGroup", "ns", "a"))
    forest.put_member(a_pod("b-0", "b", node="n0"), EntityKey("PodGroup", "ns", "b"))
    assert (the(forest, "top").confirmed, the(forest, "top").quorum_bound) == (1, False)
    forest.put_member(a_pod("b-1", "b", node="n0"), EntityKey("PodGroup", "ns", "b"))
    assert (the(forest, "top").confirmed, the(forest, "top").quorum_bound) == (2, True)


def test_a_tree_lists_parents_before_children_and_children_by_age():
    forest = a_forest(a_composite("top", 1), a_gang("young", 1, parent="top", created=9))
    forest.put_group(a_composite("old", 1, parent="top", created=1))
    forest.put_group(a_gang("leaf", 1, parent="old"))
    assert [group.key.name for group in the(forest, "top").subtree()] == ["top", "old", "leaf", "young"]
    assert [group.key.name for group in the(forest, "top").leaves()] == ["leaf", "young"]
    assert the(forest, "leaf").root() is the(forest, "top")


def test_a_group_is_admitted_when_all_above_it_have_their_quorum_too():
    forest = a_forest(a_composite("top", 2), a_gang("a", 1, parent="top"), a_pod("a-0", "a"))
    assert (the(forest, "a").admissible, the(forest, "a").admitted) == (True, False)
    forest.put_group(a_gang("b", 1, parent="top"))
    forest.put_member(a_pod("b-0", "b"), EntityKey("PodGroup", "ns", "b"))
    assert the(forest, "a").admitted


# --- priority and policy ---------------------------------------------------------------------------


def test_a_tree_has_the_priority_of_its_top_or_the_lowest_of_its_pods():
    members = [a_pod("x", "g", priority=7), a_pod("y", "g", priority=3)]
    assert priority_of(the(a_forest(a_gang("g", 1, priority=5), *members), "g")) == 5
    assert priority_of(the(a_forest(a_gang("g", 1, priority=None), *members), "g")) == 3
    assert priority_of(the(a_forest(a_gang("g", 1, priority=None)), "g")) == 0


def test_a_stored_zero_without_a_class_name_is_no_priority():
    members = [a_pod("x", "g", priority=7), a_pod("y", "g", priority=3)]
    assert priority_of(the(a_forest(a_gang("g", 1, priority=0), *members), "g")) == 3
    assert priority_of(the(a_forest(a_gang("g", 1, priority=0, priority_class="zero"), *members), "g")) == 0


def test_a_tree_without_a_class_has_the_lowest_priority_below_it():
    forest = a_forest(a_composite("top", 2), a_gang("a", 1, parent="top"), a_gang("b", 1, parent="top"))
    for pod, group in ((a_pod("x", "a", priority=7), "a"), (a_pod("y", "b", priority=3), "b")):
        forest.put_member(pod, EntityKey("PodGroup", "ns", group))
    assert priority_of(forest.groups[EntityKey("CompositePodGroup", "ns", "top")]) == 3


@pytest.mark.parametrize(
    ("group", "pod", "may"),
    [("Never", None, False), ("PreemptLowerPriority", "Never", True), (None, "Never", False), (None, None, True)],
)
def test_the_policy_of_the_top_decides_or_else_that_of_the_pods(group: str | None, pod: str | None, may: bool):
    forest = a_forest(a_gang("g", 1, policy=group, priority=5), a_pod("x", "g", policy=pod))
    assert may_preempt(the(forest, "g")) is may


@pytest.mark.parametrize(("pod", "may"), [("Never", False), ("PreemptLowerPriority", True)])
def test_the_policy_that_is_stored_without_a_class_forbids_nothing_that_the_pods_forbid(pod: str, may: bool):
    forest = a_forest(a_gang("g", 1, policy="PreemptLowerPriority"), a_pod("x", "g", policy=pod))
    assert may_preempt(the(forest, "g")) is may
