"""The words about members to come and the seats that are held for them."""

from __future__ import annotations

from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.status.held_seats import ended_text, expected_text, held_text
from tests.build.objects import a_composite, a_gang, a_pod, expects

GROUP, TREE = EntityKey("PodGroup", "ns", "g"), EntityKey("CompositePodGroup", "ns", "t")


def groups(minimum: int) -> tuple[Group, Group]:
    forest = Forest()
    forest.put_group(a_composite("t", 1))
    forest.put_group(a_gang("g", minimum, parent="t", expects=expects(minimum)))
    forest.put_member(a_pod("g-0", "g", node="n0"), GROUP)
    return forest.groups[GROUP], forest.groups[TREE]


def test_a_group_says_how_many_are_bound_and_a_tree_only_what_is_held():
    group, tree = groups(4)
    held = "seats for 3 expected members are held on 2 nodes until 1970-01-01T00:01:40Z"
    assert held_text(group, 3, {"n0", "n1"}, 100.0) == f"1 of 4 members are bound; {held}"
    assert held_text(tree, 3, {"n0", "n1"}, 100.0) == held


def test_one_seat_and_one_node_are_named_as_one():
    group, _ = groups(2)
    assert held_text(group, 1, {"n0"}, 0.0) == (
        "1 of 2 members are bound; the seat of 1 expected member is held on n0 until 1970-01-01T00:00:00Z"
    )
    assert ended_text(group, 300.0) == (
        "1 expected member did not come within 300 s of the last one: seats are no longer held for them"
    )
    assert expected_text(group) == "1 member does not exist yet and is planned for"


def test_several_are_many_and_nobody_is_nothing():
    group, tree = groups(4)
    assert expected_text(tree) == "3 members do not exist yet and are planned for"
    assert ended_text(group, 2.5).startswith("3 expected members did not come within 2.5 s")
    assert expected_text(groups(1)[0]) == ""
