"""What the engine reads of a scheduler: preemption attempts and evaluated domains, each handed out once."""

from __future__ import annotations

from muster.scheduler.preemption.round import NOMINATED, Round
from muster.scheduler.world import Judged
from tests.scheduler.worlds import RACK, a_composite, a_gang, a_node, a_pod, a_world, pods


def racks():
    sizes = {"r0": 1, "r1": 2, "r2": 4}
    return [a_node(f"n-{rack}", cpu=cpu, rack=rack) for rack, cpu in sizes.items()]


def test_an_attempt_tells_how_many_domains_it_judged():
    world = a_world([*racks(), a_node("loose", cpu=64)])
    world.add(a_gang("g", 2, topology=RACK), *pods(2, "g")).run()

    assert world.pending() == []
    assert world.brain.take_judged() == [Judged("default-scheduler", domains=3, feasible=2)]
    assert world.brain.take_judged() == []


def test_a_gang_without_a_domain_judges_none():
    world = a_world(racks())
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    assert world.brain.take_judged() == []


def test_levels_above_pod_groups_are_not_counted():
    world = a_world(racks())
    world.add(a_composite("top", 1, topology=RACK), a_gang("g", 2, parent="top"), *pods(2, "g")).run()
    assert world.pending() == []
    assert world.brain.take_judged() == []


def test_a_group_that_is_pinned_has_one_domain_to_judge():
    world = a_world(racks())
    world.add(
        a_gang("g", 2, topology=RACK),
        *pods(2, "g"),
    ).run()
    world.brain.take_judged()
    world.add(a_pod("late", "g")).run()

    assert [(found.domains, found.feasible) for found in world.brain.take_judged()] in ([(1, 1)], [(1, 0)])


def test_a_failure_judges_each_domain_once():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()
    assert world.brain.take_judged() == [Judged("default-scheduler", domains=3, feasible=0)]


def test_the_brain_hands_every_round_out_once():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=100), *pods(2, "g", priority=100)).run()

    assert world.brain.take_rounds() == [Round("podgroup", NOMINATED, victims=2, units=2)]
    assert world.brain.take_rounds() == []
