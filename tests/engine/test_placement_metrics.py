"""The numbers of topology: domains judged for pod groups, and in how many of them the counts allow the minimum."""

from __future__ import annotations

from muster.engine.metrics import Metrics
from muster.scheduler.world import Judged
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


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


def test_judgements_are_counted_by_outcome():
    metrics = Metrics()
    metrics.judged([Judged("mine", 50, 20), Judged("mine", 50, 50)], 0.5)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"scheduler_{name}", {"profile": "mine", **labels})

    assert value("generated_placements_total") == 100
    assert value("placement_evaluations_total", result="feasible") == 70
    assert value("placement_evaluations_total", result="infeasible") == 30
    assert value("placement_evaluation_duration_seconds_sum", result="infeasible") == 0.005
