"""Pods as the watches show them, and answers to binds and evictions."""

from __future__ import annotations

from tests.build.delayed_api import a_delayed_api
from tests.build.objects import a_gang, a_node, pods


def test_pods_bound_to_a_node_that_was_deleted_meanwhile_count_when_it_is_back():
    api = a_delayed_api([a_node("n0", cpu=2)])
    api.add(a_gang("g", 2), *pods(2, "g"))
    api.deliver()
    api.cycles()
    api.remove("Node", "n0")
    api.deliver()
    api.execute()
    api.answer()
    api.deliver()
    group = api.scheduler.state.forest.members["pod-g-0"].group
    assert group is not None
    assert group.bound == 0

    api.add(a_node("n0", cpu=2))
    api.deliver()

    assert group.bound == 2
