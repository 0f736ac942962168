"""Trees bound in part: what can come again is given back after the bind timeout, and the condition names the rest."""

from __future__ import annotations

from unittest.mock import patch

from muster.scheduler.interface import events
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def half_bound(*members) -> TestWorld:
    """A gang of three of which one bind is refused, and somebody else takes its node meanwhile."""
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=1)])
    world.add(a_gang("g", 3), *members)
    world.refuse_binds = {"g-2"}
    world.run()
    assert len(world.bound("g")) == 2
    free = {"n0": 2, "n1": 1}
    for node in world.bound("g").values():
        free[node] -= 1
    (left,) = (node for node, room in free.items() if room)
    return world.add(a_pod("foreign", cpu=1, node=left, scheduler="other"))


def message(world: TestWorld) -> str:
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.status == "False"
    return condition.message


def test_members_without_a_controller_are_named_while_the_gang_waits():
    world = half_bound(*pods(3, "g", cpu=1)).wait(30)
    assert "bound already, and kept because they have no controller: g-0, g-1" in message(world)


def test_after_the_timeout_the_condition_says_which_members_still_run():
    world = half_bound(a_pod("g-0", "g", cpu=1), *(a_pod(f"g-{i}", "g", cpu=1, owner="job") for i in (1, 2))).wait(400)
    assert world.evicted() == ["g-1"]
    assert "g-0" in message(world)
    assert "g-1" not in message(world)


def test_members_that_come_again_are_not_named():
    world = half_bound(*(a_pod(f"g-{i}", "g", cpu=1, owner="job") for i in range(3))).wait(30)
    assert "kept" not in message(world)


def test_a_gang_that_ran_once_names_nobody():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2), *pods(2, "g", cpu=1)).run()
    world.remove("Pod", "g-1")
    world.add(a_pod("foreign", cpu=1, node="n0", scheduler="other"), a_pod("g-2", "g", cpu=1)).wait(30)
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.status == "True"


def test_what_the_api_would_not_delete_is_given_back_later():
    world = half_bound(*(a_pod(f"g-{i}", "g", cpu=1, owner="job") for i in range(3)))
    timeout = world.scheduler.state.config.bind_timeout
    world.wait(timeout - 1)
    assert world.evicted() == []
    refused = sorted(world.bound("g"))
    with patch.object(world, "_evict", lambda ref: world._tell(events.EvictionFailed(ref.uid, "refused"))):
        world.wait(2)
    assert (world.evicted(), sorted(world.bound("g"))) == (refused, refused)
    world.wait(timeout + 1)
    assert world.bound("g") == {}


def test_a_tree_whose_root_is_deleted_while_it_runs_is_not_given_back():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("c", 1), a_gang("g", 1, parent="c"))
    world.add(*[a_pod(f"g-{i}", "g", cpu=1, owner="job") for i in range(3)]).run()
    world.remove("CompositePodGroup", "c")
    world.wait(1000)
    assert (len(world.bound("g")), world.evicted()) == (2, [])


def test_members_of_a_group_that_is_gone_are_not_given_back_after_a_restart():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 1))
    world.add(*[a_pod(f"g-{i}", "g", cpu=1, owner="job") for i in range(2)]).run()
    world.remove("PodGroup", "g")
    world.restart()
    world.wait(1000)
    assert (len(world.bound("g")), world.evicted()) == (1, [])
