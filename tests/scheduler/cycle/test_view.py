"""What commands, metrics and pages read of a scheduler; measurements are handed out once."""

from __future__ import annotations

from muster.scheduler.cycle.view import CacheSizes, QueueEntry, SchedulerView
from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.preemption.result import NOMINATED, PreemptionAttempt
from muster.scheduler.queue.entity import EntityState
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def a_view(world) -> SchedulerView:
    return world.scheduler.view()


def evaluated(world) -> list[DomainsEvaluated]:
    return world.scheduler.take_domains()


def racks():
    sizes = {"r0": 1, "r1": 2, "r2": 4}
    return [a_node(f"n-{rack}", cpu=cpu, rack=rack) for rack, cpu in sizes.items()]


def test_an_attempt_tells_how_many_domains_it_evaluated():
    world = a_world([*racks(), a_node("loose", cpu=64)])
    world.add(a_gang("g", 2, topology=RACK), *pods(2, "g")).run()

    assert world.pending() == []
    assert evaluated(world) == [DomainsEvaluated("default-scheduler", domains=3, feasible=2)]
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
    assert evaluated(world) == [DomainsEvaluated("default-scheduler", domains=3, feasible=0)]


def test_every_preemption_attempt_is_handed_out_once():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=100), *pods(2, "g", priority=100)).run()

    assert world.scheduler.take_preemptions() == [PreemptionAttempt("podgroup", NOMINATED, pods=2, disruptions=2)]
    assert world.scheduler.take_preemptions() == []


def test_queue_entries_are_pods_and_groups_with_their_pending_pods():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("big", cpu=4), a_pod("gated", gates=["wait"]), a_gang("g", 3), *pods(2, "g")).run()

    entries = {(entry.type, entry.pods, entry.gated): entry for entry in a_view(world).queue_entries()}

    assert entries["pod", 1, False] == QueueEntry(EntityState.UNSCHEDULABLE, "pod", 1, False, ("NodeResourcesFit",))
    assert entries["pod", 1, True].state is EntityState.INCOMPLETE
    assert entries["podgroup", 2, False] == QueueEntry(EntityState.INCOMPLETE, "podgroup", 2, False, ())


def test_cache_sizes_count_nodes_and_pods_on_them():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.add(a_pod("running", node="n0")).run()

    assert a_view(world).cache_sizes() == CacheSizes(nodes=2, pods=1, assumed_pods=0)


def a_small_view() -> SchedulerView:
    world = a_world([a_node("n0", cpu=4, rack="r0"), a_node("n1", cpu=2)])
    return world.add(a_pod("runs", node="n0", cpu=1), a_gang("g", 9), *pods(9, "g")).scheduler.view()


def test_groups_pods_and_the_queue():
    view = a_small_view()
    assert [key.name for key in view.groups] == ["g"]
    assert sorted({member.ref.name for member in view.members.values()})[-1] == "runs"
    assert [root.key.name for root in view.queue()] == ["g"]


def test_nodes_as_arrays():
    view = a_small_view()
    assert view.has_nodes
    assert view.nodes.tolist() == [True, True]
    assert [view.label_value(RACK, number) if number else "" for number in view.labels(RACK)] == ["r0", ""]
    assert (view.domain_of("n0", RACK), view.domain_of("n1", RACK), view.domain_of("nowhere", RACK)) == ("r0", "", "")


def test_amounts_and_seats():
    view = a_small_view()
    allocatable, requested = view.allocatable("cpu"), view.requested("cpu")
    assert allocatable is not None
    assert requested is not None
    assert allocatable.tolist() == [4000, 2000]
    assert requested.tolist() == [1000, 0]
    assert view.allocatable("example.com/none") is None
    assert view.requested("example.com/none") is None
    assert view.seats({"cpu": "1500m"}).tolist() == [2, 1]


def test_an_empty_cluster_has_no_nodes():
    view = a_world().scheduler.view()
    assert not view.has_nodes
    assert view.nodes.tolist() == []
