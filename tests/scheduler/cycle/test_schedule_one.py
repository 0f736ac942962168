"""Gangs in the cycle: quorum, all or nothing, late members, faults, waiting made visible."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest

from muster.api import groups as api
from muster.scheduler.interface import decisions as d
from tests.build.examples import examples
from tests.build.objects import RACK, a_basic, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def test_a_gang_that_fits_is_bound_as_a_whole():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert len(world.bound()) == 3
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("True", "Scheduled")


def test_a_gang_that_does_not_fit_binds_nothing_and_says_why():
    world = a_world([a_node("n0", cpu=2)])

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert "2 of 3" in condition.message
    pod = world.condition("Pod", "g-0")
    assert (pod.status, pod.reason) == ("False", "Unschedulable")


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_objects_may_arrive_in_any_order(order: tuple[int, ...]):
    things = [a_gang("g", 2), *pods(2, "g"), a_node("n0", cpu=2)]
    world = a_world()

    for index in order:
        world.add(things[index]).run()

    assert len(world.bound()) == 2


def test_members_wait_until_the_quorum_exists_and_the_group_says_how_many_are_missing():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 8), *pods(6, "g")).run()

    assert world.condition("PodGroup", "g") is None, "nothing is said in the first two seconds"
    world.wait(3)

    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.reason, condition.message) == ("WaitingForMembers", "6 of 8 members exist")


def test_waiting_is_said_at_most_once_in_ten_seconds():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 8), *pods(2, "g"))
    world.wait(3)
    for number in range(2, 6):
        world.add(a_pod(f"g-{number}", "g"))
        world.wait(1)

    said = [e for e in world.events if e.reason == "WaitingForMembers"]
    assert [e.note for e in said] == ["2 of 8 members exist"]
    world.wait(10)
    assert world.condition("PodGroup", "g").message == "6 of 8 members exist"


def test_pods_of_a_missing_group_are_told_so():
    world = a_world([a_node("n0")])
    world.add(*pods(2, "nobody"))

    world.wait(3)

    condition = world.condition("Pod", "nobody-0")
    assert (condition.status, condition.reason) == ("False", "WaitingForPodGroup")


def test_extra_members_are_placed_as_far_as_there_is_room():
    world = a_world([a_node("n0", cpu=3)])

    world.add(a_gang("g", 2), *pods(5, "g")).run()

    assert len(world.bound()) == 3
    assert len(world.pending()) == 2
    assert world.condition("PodGroup", "g").status == "True"


def test_a_gated_member_holds_its_whole_gang():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 2), *pods(2, "g"), a_pod("held", "g", gates=["example.com/hold"]))
    world.wait(3)
    assert world.bound() == {}
    assert world.condition("PodGroup", "g").reason == "SchedulingGated"

    world.add(a_pod("held", "g")).run()

    assert len(world.bound()) == 3


def test_success_is_recorded_once_and_for_all():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    for name in ("g-0", "g-1"):
        world.remove("Pod", name)
    world.add(*[a_pod(f"q-{i}", "g", cpu=2) for i in range(2)]).run()

    assert world.bound() == {}
    assert world.condition("PodGroup", "g").status == "True"
    quorum = world.condition("PodGroup", "g", api.QUORUM_MET)
    assert (quorum.status, quorum.reason) == ("False", "BelowMinimum")


def test_a_lost_member_is_replaced_without_its_companions():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.remove("Pod", "g-1")

    world.add(a_pod("again", "g")).run()

    assert set(world.bound()) == {"g-0", "g-2", "again"}
    assert world.evicted() == []


def test_members_that_succeeded_count_for_a_completing_gang():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.finish("g-0")
    world.finish("g-1")

    world.add(a_pod("late", "g")).run()

    assert "late" in world.bound()


def test_failed_and_terminating_members_never_count():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.finish("g-0", "Failed")
    world.terminate("g-1")

    world.add(a_pod("late", "g"))
    world.wait(3)

    assert "late" not in world.bound()


def test_lowering_the_minimum_releases_a_waiting_gang():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 5), *pods(4, "g")).run()
    assert world.bound() == {}

    world.add(a_gang("g", 4)).run()

    assert len(world.bound()) == 4


def test_raising_the_minimum_holds_members_back():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 5), *pods(4, "g")).run()

    world.add(a_gang("g", 6), a_pod("g-4", "g")).run()

    assert world.bound() == {}


def test_a_group_deleted_while_pending_holds_its_pods_until_a_new_one_comes():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.remove("PodGroup", "g")
    world.add(a_node("n1", cpu=4)).run()
    assert world.bound() == {}

    world.add(a_gang("g", 2)).run()

    assert len(world.bound()) == 3


def test_members_of_another_priority_are_an_error_until_mended():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 2, priority=10), a_pod("good", "g", priority=10), a_pod("odd", "g", priority=20)).run()
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("False", "SchedulerError")
    assert "same priority as the pod group's priority" in condition.message

    world.remove("Pod", "odd")
    world.add(a_pod("even", "g", priority=10)).run()

    assert set(world.bound()) == {"good", "even"}


def test_a_root_without_a_priority_takes_the_lowest_of_its_members_and_places_the_highest_first():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_gang("g", 1, priority=None), a_pod("low", "g", priority=1), a_pod("high", "g", priority=9)).run()

    assert set(world.bound()) == {"high"}


def test_members_that_arrive_while_binds_are_in_flight_wait_for_them():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 2), *pods(2, "g"))
    binds = [x for x in world.brain.next(world.now) if isinstance(x, d.Bind)]
    assert len(binds) == 2
    world.add(a_pod("late", "g"))
    assert not [x for x in world.brain.next(world.now) if isinstance(x, d.Bind)]

    for bind in binds:
        world._carry_out(bind)
    world.run()

    assert "late" in world.bound()


def test_a_refused_bind_is_planned_again_while_the_others_keep_their_seats():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.refuse_binds.add("g-1")

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert len(world.bound()) == 3


def test_two_gangs_that_only_fit_alone_never_start_in_part():
    for seed in range(10):
        world = a_world([a_node("n0", cpu=4)], seed=seed)
        both = [a_gang("a", 3), a_gang("b", 3), *pods(3, "a"), *pods(3, "b")]
        for thing in both[seed % 8 :] + both[: seed % 8]:
            world.add(thing)
            world.step()
        world.run()
        counts = sorted((len(world.bound("a")), len(world.bound("b"))))
        assert counts == [0, 3]


def test_freed_room_wakes_a_waiting_gang_without_a_timer():
    world = a_world([a_node("n0", cpu=4)])
    world.add(*[a_pod(f"old-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 4), *pods(4, "g")).run()
    attempts = next(r for r in world.brain.view().queue() if r.key.name == "g").attempts
    world.remove("Pod", "old-0")
    world.run()
    assert next(r for r in world.brain.view().queue() if r.key.name == "g").attempts == attempts, (
        "not enough: not tried"
    )

    world.remove("Pod", "old-1")
    world.run()

    assert len(world.bound("g")) == 4


def test_a_basic_group_places_what_fits():
    world = a_world([a_node("n0", cpu=2)])

    world.add(a_basic("b"), *pods(3, "b")).run()

    assert len(world.bound()) == 2


def test_a_gang_stays_in_one_rack():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])

    world.add(a_gang("g", 4, topology=RACK), *pods(4, "g")).run()

    assert len({world.domain(name) for name in world.bound()}) == 1


def test_a_rack_that_came_nearest_is_named():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])

    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()

    assert world.bound() == {}
    assert "rack r" in world.condition("PodGroup", "g").message
    assert "4 of 5 seats" in world.condition("PodGroup", "g").message


def test_the_queue_orders_by_priority_then_age_then_uid():
    world = a_world()
    world.add(a_pod("b", created=1), a_pod("a", created=2), a_pod("top", priority=5, created=9))
    assert [root.key.name for root in world.brain.view().queue()] == ["top", "b", "a"]


def test_single_pods_without_room_carry_the_usual_message():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_pod("big", cpu=2)).run()

    assert world.condition("Pod", "big").message == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_member_on_a_lost_node_counts_no_more():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    gone = world.pod("g-0").spec.node_name
    world.remove("Node", gone)
    world.run()

    quorum = world.condition("PodGroup", "g", api.QUORUM_MET)
    assert (quorum.status, quorum.reason) == ("False", "BelowMinimum")
    world.add(a_pod("spare", "g")).run()
    assert "spare" in world.bound()


def test_a_thousand_delivery_orders_of_one_backlog_give_the_same_decisions():
    things: list[Any] = [a_node(f"n{i}", cpu=3, rack=f"r{i % 2}") for i in range(4)]
    things += [a_gang("a", 3, topology=RACK), a_gang("b", 2), *pods(3, "a"), *pods(4, "b"), *pods(3, name="solo")]
    things += [a_composite("top", 2), a_gang("x", 1, parent="top"), a_gang("y", 2, parent="top"), *pods(2, "y")]

    def decisions_of(seed: int) -> bytes:
        order = list(things)
        random.Random(seed).shuffle(order)
        return msgspec.json.encode(a_world().add(*order).run().log)

    first = decisions_of(0)
    assert all(decisions_of(seed) == first for seed in range(1, examples(1000)))


def test_a_composite_reports_for_its_own_level():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("root", 2), a_gang("a", 1, parent="root"), a_gang("b", 2, parent="root"))
    world.add(*pods(1, "a"), *pods(2, "b")).run()

    assert world.bound() == {}
    assert world.condition("CompositePodGroup", "root").reason == "Unschedulable"

    world.add(a_node("n1", cpu=1)).run()

    assert len(world.bound()) == 3
    assert world.condition("CompositePodGroup", "root").status == "True"


def test_a_ring_of_parents_is_reported_on_every_group_and_mending_clears_it():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_composite("egg", 1, parent="chicken"), a_composite("chicken", 1, parent="egg"))
    world.add(a_gang("yolk", 1, parent="egg"), *pods(1, "yolk")).run()

    for kind, name in (("CompositePodGroup", "egg"), ("CompositePodGroup", "chicken"), ("PodGroup", "yolk")):
        assert world.condition(kind, name).reason == "Invalid"
    assert world.bound() == {}

    world.remove("CompositePodGroup", "chicken")
    world.add(a_composite("chicken", 1)).run()
    assert len(world.bound()) == 1


def test_a_missing_parent_is_named():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 1, parent="train-root"), *pods(1, "g"))
    world.wait(3)

    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.reason, condition.message) == ("WaitingForParent", "parent train-root does not exist")


def test_a_tree_deeper_than_four_levels_is_invalid():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_composite("l1", 1), a_composite("l2", 1, parent="l1"), a_composite("l3", 1, parent="l2"))
    world.add(a_composite("l4", 1, parent="l3"), a_gang("g", 1, parent="l4"), *pods(1, "g")).run()

    assert world.bound() == {}
    assert world.condition("PodGroup", "g").reason == "Invalid"
    assert "5 levels" in world.condition("CompositePodGroup", "l1").message


def test_with_gang_scheduling_switched_off_in_its_profile_members_are_single_pods():
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "GangScheduling"}]}}}],
    }
    world = a_world([a_node("n0", cpu=2)], config=config)

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert len(world.bound()) == 2


def test_a_child_that_grows_beside_a_running_tree_costs_no_attempts_until_it_is_complete():
    world = a_world([a_node("n0", cpu=16)])
    world.add(a_composite("root", 1), a_gang("first", 1, parent="root"), a_gang("later", 5, parent="root"))
    world.add(*pods(1, "first")).run()
    for i in range(4):
        world.add(a_pod(f"later-{i}", "later")).run()
    root = next(r for r in world.brain.view().queue() if r.key.name == "root")
    assert root.attempts <= 1
    world.wait(3)
    assert world.condition("PodGroup", "later").message == "4 of 5 members exist"

    world.add(a_pod("later-4", "later")).run()

    assert len(world.bound("later")) == 5, "bound at once: no backoff was earned"


def test_members_of_an_incomplete_child_do_not_wake_a_tree_that_failed_for_another_reason():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("root", 1), a_gang("big", 2, parent="root"), a_gang("slow", 5, parent="root"))
    world.add(*pods(2, "big", cpu=4)).run()
    root = next(iter(world.brain.view().queue()))
    attempts = root.attempts
    for i in range(4):
        world.add(a_pod(f"slow-{i}", "slow")).run()
    assert root.attempts == attempts
