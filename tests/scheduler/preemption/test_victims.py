"""Victims: which running pods are evicted together, and which cannot be evicted."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.victims import Quorum, VictimIndex
from tests.build.objects import a_basic, a_composite, a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, LOW, Evictions, a_tree, with_lows
from tests.build.scheduler import TestWorld, a_world


def test_equal_priority_is_safe():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"peer-{i}", priority=HIGH, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=HIGH), *pods(2, "g", priority=HIGH)).run()
    assert world.evicted() == []


def test_a_unit_of_mode_single_loses_only_what_is_needed():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("victim", 2, mode="single", priority=LOW), *pods(2, "victim", priority=LOW)).run()
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH)).run()
    assert len(world.evicted()) == 1


def test_the_highest_ancestor_of_mode_all_is_the_unit():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 2, mode="all", priority=LOW))
    world.add(
        a_gang("a", 1, parent="top", mode="all", priority=LOW), a_gang("b", 2, parent="top", mode="all", priority=LOW)
    )
    world.add(*pods(1, "a", priority=LOW), *pods(2, "b", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["a-0", "b-0", "b-1"]


def test_a_basic_group_of_mode_all_leaves_as_a_whole_too():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_basic("victim", mode="all", priority=LOW), *pods(3, "victim", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["victim-0", "victim-1", "victim-2"]


@pytest.mark.parametrize(
    ("top", "leaf", "victims"),
    [
        ("all", "all", ["t-a-0", "t-b-0", "t-b-1"]),
        ("all", "single", ["t-a-0", "t-b-0", "t-b-1"]),  # the highest `all` decides, whatever is below it
        ("single", "all", ["t-b-0", "t-b-1"]),
        ("single", "single", ["t-b-1"]),
    ],
)
def test_the_highest_whole_ancestor_is_the_unit(top: str, leaf: str, victims: list[str]):
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=2)])
    a_tree(world, top, leaf)
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"kubernetes.io/hostname": "n1"})).run()
    assert [name[:3] for name in world.evicted()] == [name[:3] for name in victims]


def test_a_grandparent_of_mode_all_takes_everyone_below_along():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 1, mode="all", priority=LOW))
    world.add(a_composite("mid", 1, mode="all", priority=LOW, parent="top", workload="wl/mid"))
    world.add(a_gang("leaf", 2, mode="all", priority=LOW, parent="mid"), *pods(2, "leaf", priority=LOW))
    world.add(a_gang("side", 1, mode="all", priority=LOW, parent="top"), *pods(1, "side", priority=LOW)).run()
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["leaf-0", "leaf-1", "side-0"]


def test_a_parent_of_mode_all_below_a_grandparent_of_mode_single_takes_only_its_own():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_composite("top", 1, mode="single", priority=LOW))
    world.add(a_composite("mid", 1, mode="all", priority=LOW, parent="top", workload="wl/mid"))
    world.add(a_gang("leaf", 2, mode="all", priority=LOW, parent="mid"), *pods(2, "leaf", priority=LOW))
    world.add(a_gang("side", 1, priority=LOW, parent="top"), *pods(1, "side", priority=LOW)).run()
    where = world.bound("leaf")["leaf-0"]
    world.add(a_pod("vip", priority=HIGH, nodeSelector={"kubernetes.io/hostname": where})).run()
    assert world.evicted() == ["leaf-0", "leaf-1"]


def test_without_its_parent_object_a_group_keeps_its_own_mode():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_gang("orphan", 2, mode="all", parent="absent", priority=LOW))
    world.add(*[a_pod(f"orphan-{i}", "orphan", priority=LOW, node=f"n{i}") for i in range(2)])
    world.add(a_pod("vip", priority=HIGH)).run()
    assert world.evicted() == ["orphan-0", "orphan-1"]


def names(world: TestWorld, below: int = HIGH, **options: Any) -> list[str]:
    return sorted(victim.key.name for victim in Evictions(world, below, **options).victims)


def test_victims_are_the_running_pods_below_a_priority():
    world = with_lows(a_world([a_node("n0", cpu=9)]), ("leaving", "n0", 1), ("lost", "gone", 1))
    world.terminate("leaving")
    with_lows(world, ("high", "n0", 1), priority=HIGH)
    with_lows(world, ("mid", "n0", 1), priority=50)
    with_lows(world, ("low", "n0", 1))

    assert names(world) == ["low", "mid"]
    assert names(world, 50) == ["low"]
    assert names(world, LOW) == []


def test_a_single_pod_is_a_victim_with_its_start_and_its_groups_loss():
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_gang("g", 1, priority=LOW), a_pod("g-0", "g", priority=LOW, node="n0", created=61))
    with_lows(world, ("alone", "n0", 1))

    found = Evictions(world, marked={"pod-alone"})

    member, alone = found.victim("g-0"), found.victim("alone")
    assert member.key == EntityKey("Pod", "ns", "g-0")
    assert (member.uids, member.priority, member.starts) == (("pod-g-0",), LOW, ("2026-01-01T00:01:01Z",))
    assert member.losses == ((EntityKey("PodGroup", "ns", "g"), 1),)
    assert (alone.losses, member.marked, alone.marked) == ((), False, True)


def test_a_tree_of_mode_all_is_one_victim_with_the_losses_of_all_its_groups():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "all", "single")

    (tree,) = Evictions(world, marked={"pod-t-b-1"}).victims

    assert (tree.key, tree.priority, tree.marked) == (EntityKey("CompositePodGroup", "ns", "t"), LOW, True)
    assert tree.uids == ("pod-t-a-0", "pod-t-b-0", "pod-t-b-1")
    assert [(key.name, count) for key, count in tree.losses] == [("t-a", 1), ("t-b", 2)]
    assert len(tree.starts) == 3


def test_a_tree_with_a_pod_that_cannot_be_evicted_now_is_no_victim():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "all", "single")
    with_lows(world, ("alone", "n0", 1))

    assert names(world, excluded={"pod-t-a-0"}) == ["alone"]
    assert names(world, excluded={"pod-alone"}) == ["t"]


def test_pods_whose_bind_is_in_flight_are_no_victims_yet():
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_pod("new", priority=LOW))
    world.scheduler.next(world.now)  # the bind is asked for, and not answered

    assert list(Evictions(world).victims) == []


@pytest.mark.parametrize("first", [LOW, HIGH])
def test_each_pod_of_a_group_that_is_gone_has_its_own_priority(first: int):
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_pod("g-0", "g", priority=first, node="n0"))
    world.add(a_pod("g-1", "g", priority=LOW, node="n0"), a_pod("g-2", "g", priority=HIGH, node="n0")).run()

    assert names(world) == (["g-0", "g-1"] if first == LOW else ["g-1"])


def test_a_tree_whose_nodes_are_all_gone_frees_nothing():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "all", "single")
    world.remove("Node", "n0")
    assert names(world) == ["t"]

    world.remove("Node", "n1")

    assert names(world) == []


def test_the_quorums_of_all_groups_above_a_victim_are_known():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "single", "single")
    world.add(a_basic("basic", priority=LOW), a_pod("b-0", "basic", priority=LOW, node="n0"))
    world.run()

    found = {key.name: quorum for key, quorum in Evictions(world).quorums.items()}

    top = EntityKey("CompositePodGroup", "ns", "t")
    assert found["t-b"] == Quorum(bound=2, minimum=1, gang=True, parent=top)
    assert found["t"] == Quorum(bound=2, minimum=2, gang=True, parent=None)
    assert (found["basic"].gang, found["basic"].parent) == (False, None)


def test_the_index_keeps_the_last_answer_until_something_changes():
    world = with_lows(a_world([a_node("n0", cpu=9)]), ("low", "n0", 1))
    state, index = world.scheduler.state, VictimIndex()

    def ask(version: int = 1, priority: int = HIGH, marked: frozenset[str] = frozenset()) -> object:
        return index.below(priority, state.forest, state.cluster, version, marked=marked, excluded=frozenset())

    first = ask()
    assert ask() is first
    for changed in ({"version": 2}, {"priority": 50}, {"marked": frozenset({"pod-low"})}):
        before = ask()
        assert ask(**changed) is not before  # type: ignore[arg-type]
    assert [victim.key.name for victim in ask().victims] == ["low"]  # type: ignore[attr-defined]


def test_a_group_whose_root_was_never_seen_has_the_priority_of_its_pods():
    world = a_world([a_node("n0", cpu=9)])
    world.add(a_gang("orphan", 1, parent="absent", priority=500))
    world.add(a_pod("o-0", "orphan", priority=LOW, node="n0"))

    assert [(victim.key.name, victim.priority) for victim in Evictions(world).victims] == [("o-0", LOW)]


def test_a_tree_is_marked_only_if_one_of_its_pods_is():
    world = a_world([a_node("n0", cpu=9), a_node("n1", cpu=9)])
    a_tree(world, "all", "single")

    assert not Evictions(world, marked={"pod-other"}).victims[0].marked
