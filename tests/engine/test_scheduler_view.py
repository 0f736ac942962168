"""What the engine reads of a scheduler: preemption attempts and evaluated domains, each handed out once."""

from __future__ import annotations

from muster.engine.scheduler_view import CacheSizes, QueueEntry, SchedulerView, view_of
from muster.scheduler.preemption.round import NOMINATED, Round
from muster.scheduler.world import Judged
from tests.engine.builders import FirstNodeScheduler
from tests.scheduler.worlds import RACK, a_composite, a_gang, a_node, a_pod, a_world, pods


def a_view(world) -> SchedulerView:
    view = view_of(world.brain)
    assert view is not None
    return view


def evaluated(world) -> list[Judged]:
    return a_view(world).take_domains_evaluated()


def racks():
    sizes = {"r0": 1, "r1": 2, "r2": 4}
    return [a_node(f"n-{rack}", cpu=cpu, rack=rack) for rack, cpu in sizes.items()]


def test_an_attempt_tells_how_many_domains_it_evaluated():
    world = a_world([*racks(), a_node("loose", cpu=64)])
    world.add(a_gang("g", 2, topology=RACK), *pods(2, "g")).run()

    assert world.pending() == []
    assert evaluated(world) == [Judged("default-scheduler", domains=3, feasible=2)]
    assert evaluated(world) == []


def test_a_gang_without_a_domain_evaluates_none():
    world = a_world(racks())
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    assert evaluated(world) == []


def test_levels_above_pod_groups_are_not_counted():
    world = a_world(racks())
    world.add(a_composite("top", 1, topology=RACK), a_gang("g", 2, parent="top"), *pods(2, "g")).run()
    assert world.pending() == []
    assert evaluated(world) == []


def test_a_group_that_is_pinned_has_one_domain_to_evaluate():
    world = a_world(racks())
    world.add(
        a_gang("g", 2, topology=RACK),
        *pods(2, "g"),
    ).run()
    evaluated(world)
    world.add(a_pod("late", "g")).run()

    assert [(found.domains, found.feasible) for found in evaluated(world)] in ([(1, 1)], [(1, 0)])


def test_a_failure_evaluates_each_domain_once():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()
    assert evaluated(world) == [Judged("default-scheduler", domains=3, feasible=0)]


def test_every_preemption_attempt_is_handed_out_once():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=100), *pods(2, "g", priority=100)).run()

    assert a_view(world).take_preemption_attempts() == [Round("podgroup", NOMINATED, victims=2, units=2)]
    assert a_view(world).take_preemption_attempts() == []


def test_queue_entries_are_pods_and_groups_with_their_pending_pods():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("big", cpu=4), a_pod("gated", gates=["wait"]), a_gang("g", 3), *pods(2, "g")).run()

    entries = {(entry.type, entry.pods, entry.gated): entry for entry in a_view(world).queue_entries()}

    assert entries["pod", 1, False] == QueueEntry("parked", "pod", 1, False, ("NodeResourcesFit",))
    assert entries["pod", 1, True].state == "waiting"
    assert entries["podgroup", 2, False] == QueueEntry("waiting", "podgroup", 2, False, ())


def test_cache_sizes_count_nodes_and_pods_on_them():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.add(a_pod("running", node="n0")).run()

    assert a_view(world).cache_sizes() == CacheSizes(nodes=2, pods=1, assumed_pods=0)


def test_another_scheduler_has_no_view():
    assert view_of(FirstNodeScheduler()) is None
