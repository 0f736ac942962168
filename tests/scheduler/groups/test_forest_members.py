"""The forest: counters kept true under every change, groups known for as long as anything names them."""

from __future__ import annotations

import pytest

from muster.scheduler.groups.forest import Forest
from muster.scheduler.interface.keys import EntityKey
from tests.build.objects import a_gang, a_pod

G = EntityKey("PodGroup", "ns", "g")


@pytest.mark.parametrize("state", ["terminating", "failed", "on a lost node"])
def test_a_deleted_group_is_known_for_as_long_as_a_pod_names_it(state: str):
    forest = Forest()
    forest.put_group(a_gang("g", 1))
    bound = a_pod("g-0", "g", node="n0", deleting=state == "terminating", phase="Failed" if state == "failed" else "")
    member = forest.put_member(bound, G)
    forest.set_lost(member, state == "on a lost node")

    forest.remove_group(G)

    assert forest.groups[G] is member.group
    forest.remove_member(member.uid)
    assert forest.groups == {}


def test_a_member_that_is_back_from_a_lost_node_counts_for_the_group_that_was_created_again():
    forest = Forest()
    forest.put_group(a_gang("g", 1))
    member = forest.put_member(a_pod("g-0", "g", node="n0"), G)
    forest.set_lost(member, True)
    forest.remove_group(G)
    group = forest.put_group(a_gang("g", 1))

    forest.set_lost(member, False)

    assert (group.bound, group.admissible) == (1, True)


def test_a_pod_that_names_another_group_leaves_the_first():
    forest = Forest()
    forest.put_member(a_pod("x", "g"), G)

    forest.put_member(a_pod("x", "h"), EntityKey("PodGroup", "ns", "h"))

    assert [key.name for key in forest.groups] == ["h"]
