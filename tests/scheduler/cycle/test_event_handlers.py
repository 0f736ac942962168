"""How events change the state, nodes and groups first."""

from __future__ import annotations

from tests.build.objects import a_composite, a_gang, a_node, a_pod
from tests.build.scheduler import a_world


def test_deleting_one_group_of_a_cycle_leaves_one_entity_which_is_the_top_of_the_tree():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("a", 1, parent="b"), a_composite("b", 1, parent="a"))
    world.add(a_gang("g", 1, parent="a"), a_pod("g-0", "g")).run()
    assert [key.name for key in world.scheduler.state.queue.entities] == ["b"]

    world.remove("CompositePodGroup", "a")

    assert [key.name for key in world.scheduler.state.queue.entities] == ["a"]
    world.add(a_composite("a", 1)).run()
    assert world.bound() == {"g-0": "n0"}
