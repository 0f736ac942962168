"""The numbers of preemption: considerations by outcome, victims, units and violations, by who asked."""

from __future__ import annotations

import pytest

from muster.engine.metrics import Metrics
from muster.scheduler.preemption.round import NO_VICTIMS, NOMINATED, REFUSED, Round
from tests.scheduler.worlds import a_gang, a_node, a_pod, a_world, pods


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"scheduler_{name}", labels)


def test_a_round_for_a_pod_counts_as_a_pods():
    metrics = Metrics()
    metrics.considered([Round("pod", NOMINATED, victims=3, units=2, budget_violations=1)], 0.25)

    assert value(metrics, "preemption_attempts_total") == 1
    assert value(metrics, "preemption_victims_sum") == 3
    assert value(metrics, "preemption_workload_disruptions_sum", preemptor="pod") == 2
    assert value(metrics, "preemption_pdb_violations_total", preemptor="pod") == 1
    assert value(metrics, "preemption_evaluation_duration_seconds_sum", preemptor="pod", result="Success") == 0.25


@pytest.mark.parametrize(
    ("outcome", "result", "status"),
    [(NO_VICTIMS, "unschedulable", "Unschedulable"), (REFUSED, "error", "Error")],
)
def test_a_round_in_vain_counts_no_victims(outcome: str, result: str, status: str):
    metrics = Metrics()
    metrics.considered([Round("podgroup", outcome)], 0.5)

    assert value(metrics, "workload_preemption_attempts_total", result=result) == 1
    assert value(metrics, "workload_preemption_victims_count") == 0
    assert value(metrics, "preemption_evaluation_duration_seconds_count", preemptor="podgroup", result=status) == 1


def test_the_brain_hands_every_round_out_once():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=100), *pods(2, "g", priority=100)).run()

    assert world.brain.take_rounds() == [Round("podgroup", NOMINATED, victims=2, units=2)]
    assert world.brain.take_rounds() == []
