"""A restarted scheduler finishes or takes back what an earlier run left half done."""

from __future__ import annotations

from muster.scheduler.queue.entity import EntityState
from tests.build.objects import a_gang, a_node, pods
from tests.build.scheduler import a_world


def test_members_on_a_node_that_does_not_exist_count_when_it_comes_back():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    world.remove("Node", "n0")
    world.restart()
    group = world.scheduler.state.forest.members["pod-g-0"].group
    assert group is not None
    assert group.bound == 0

    world.add(a_node("n0", cpu=2))

    assert group.bound == 2


def test_a_gang_that_lost_members_with_their_node_waits_for_others_after_a_restart():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.add(a_gang("g", 3), *pods(4, "g")[:3])
    world.run()
    lost = world.pod("g-0").spec.node_name
    world.remove("Node", lost)
    world.add(pods(4, "g")[3])
    world.restart()

    (entity,) = world.scheduler.state.queue.entities.values()

    assert entity.state is EntityState.INCOMPLETE
