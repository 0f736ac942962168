"""The request of an entity as it is now: what is bound already, and where."""

from __future__ import annotations

from tests.build.objects import RACK, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def test_the_rest_of_a_gang_goes_to_the_domain_of_those_who_are_bound():
    world = a_world([a_node(f"n{i}", cpu=4, rack=f"r{i}") for i in range(3)])
    world.add(a_gang("g", 3, topology=RACK), a_pod("g-0", "g", node="n2"), a_pod("g-1", "g"), a_pod("g-2", "g"))
    world.restart()
    world.run()
    assert set(world.bound("g").values()) == {"n2"}


def test_replacements_for_a_lost_node_stay_in_the_domain():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])
    world.add(a_gang("g", 4, topology=RACK), *pods(4, "g")).run()
    rack = world.domain("g-0")
    lost = world.bound("g")["g-0"]
    gone = [name for name, node in world.bound("g").items() if node == lost]
    world.remove("Node", lost)
    for name in gone:
        world.remove("Pod", name)
    world.add(*[a_pod(f"new-{i}", "g") for i in range(len(gone))]).run()
    assert world.bound("new") == {}, "the rest of the rack is full"

    world.add(a_node("spare", cpu=4, rack=rack)).run()
    assert set(world.bound("new").values()) == {"spare"}
