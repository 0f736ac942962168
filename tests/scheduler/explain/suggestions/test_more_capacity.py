"""Suggestions of more room: nodes to add, to restore or to wait for."""

from __future__ import annotations

from muster.api import types
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world
from tests.build.suggestions import a_stuck_rack_gang, add_nodes, carry_out, change, suggested, the


def test_one_node_fewer_than_suggested_does_not_help():
    world = a_stuck_rack_gang()
    hint = the("add-nodes", suggested(world, "PodGroup", "g"))
    assert hint.details["nodes"] == 1
    assert hint.text.startswith("add 1 node like n")
    add_nodes(world, hint.details, fewer=1)
    assert not world.run().bound("g")


def test_waiting_for_the_suggested_group_helps():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("old", 3), *pods(3, "old")).run()
    world.add(a_gang("g", 4), *pods(4, "g")).run()
    hint = the("wait-for", suggested(world, "PodGroup", "g"))
    assert hint.text == "wait for podgroup ns/old to end (3 pods), or remove it"
    carry_out(world, hint)
    assert len(world.bound("g")) == 4


def test_nobody_is_told_to_wait_for_room_that_someone_ahead_will_take():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("old", 4), *pods(4, "old")).run()
    world.add(a_gang("ahead", 4, created=1), *pods(4, "ahead", created=1)).run()
    world.add(a_gang("g", 4, created=2), *pods(4, "g", created=2)).run()
    assert "wait-for" in [hint.action for hint in suggested(world, "PodGroup", "ahead")]
    assert "wait-for" not in [hint.action for hint in suggested(world, "PodGroup", "g")]
    assert the("add-nodes", suggested(world, "PodGroup", "g")).details["nodes"] == 2


def test_cordoned_nodes_are_put_back_and_no_more_than_needed():
    cordoned = types.NodeSpec(unschedulable=True)
    world = a_world([change(a_node(f"n{i}", cpu=1), spec=cordoned) for i in range(5)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    hint = the("uncordon", suggested(world, "PodGroup", "g"))
    assert hint.text == "uncordon 3 nodes: n0, n1, n2"
    carry_out(world, hint)
    assert len(world.bound("g")) == 3


def test_nodes_that_are_not_ready_are_not_to_be_tolerated_but_mended():
    taint = types.Taint("node.kubernetes.io/not-ready", "NoSchedule")
    world = a_world([change(a_node("n0", cpu=1), spec=types.NodeSpec(taints=(taint,)))])
    world.add(a_pod("p")).run()
    hints = suggested(world, "Pod", "p")
    assert [hint.action for hint in hints] == ["mend-nodes", "add-nodes"][: len(hints)]
    carry_out(world, hints[0])
    assert world.bound("p")
