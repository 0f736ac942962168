"""The metrics of preemption and of topology domains: by outcome and by who asked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from muster.engine.metrics import Metrics
from muster.scheduler.interface.decisions import Decision, Evict, SetCondition
from muster.scheduler.interface.events import EvictionFailed, ObjectDeleted, ObjectUpdated
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.preemption.result import NO_VICTIMS, NOMINATED, REFUSED, PreemptionAttempt
from tests.build.objects import a_pod


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"scheduler_{name}", labels)


def test_a_round_for_a_pod_counts_as_a_pods():
    metrics = Metrics()
    metrics.preemptions_considered(
        [PreemptionAttempt("pod", NOMINATED, pods=3, disruptions=2, budget_violations=1)], 0.25
    )

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
    metrics.preemptions_considered([PreemptionAttempt("podgroup", outcome)], 0.5)

    assert value(metrics, "workload_preemption_attempts_total", result=result) == 1
    assert value(metrics, "workload_preemption_victims_count") == 0
    assert value(metrics, "preemption_evaluation_duration_seconds_count", preemptor="podgroup", result=status) == 1


GANG = ObjectRef("PodGroup", "ns", "gang", "gang-uid")


def victims(*names: str) -> list[Decision]:
    return [Evict(ObjectRef("Pod", "ns", name, f"{name}-uid"), GANG) for name in names]


def executed(metrics: Metrics, result: str) -> tuple[float | None, float | None]:
    name, labels = "preemption_execution_duration_seconds", {"preemptor": "podgroup", "result": result}
    return value(metrics, f"{name}_count", **labels), value(metrics, f"{name}_sum", **labels)


def test_an_execution_lasts_until_the_last_victim_is_on_its_way_out():
    metrics = Metrics()
    metrics.decided(victims("a", "b"), now=10.0, seconds=0.1)
    metrics.handled(ObjectDeleted("Pod", "ns", "a", "a-uid"), 12.0)
    assert executed(metrics, "Success") == (None, None)

    pod = a_pod("b", node="n0")
    meta = replace(pod.metadata, uid="b-uid", deletion_timestamp="2026-01-01T00:00:00Z")
    metrics.handled(ObjectUpdated("Pod", replace(pod, metadata=meta)), 14.0)
    metrics.handled(ObjectDeleted("Pod", "ns", "b", "b-uid"), 40.0)

    assert executed(metrics, "Success") == (1, 4.0)


def test_an_execution_with_a_refused_delete_is_an_error():
    metrics = Metrics()
    metrics.decided(victims("a", "b"), now=10.0, seconds=0.1)
    metrics.handled(EvictionFailed("a-uid", "forbidden"), 11.0)
    metrics.handled(ObjectDeleted("Pod", "ns", "b", "b-uid"), 13.0)

    assert executed(metrics, "Error") == (1, 3.0)


def test_an_execution_that_is_called_off_is_an_error():
    metrics = Metrics()
    metrics.decided(victims("a"), now=10.0, seconds=0.1)
    mark = ObjectRef("Pod", "ns", "a", "a-uid")
    metrics.decided([SetCondition(mark, "DisruptionTarget", "False", "PreemptionCalledOff", "")], now=12.0, seconds=0.1)

    assert executed(metrics, "Error") == (1, 2.0)


def test_a_victim_that_leaves_for_somebody_else_ends_the_first_execution():
    metrics = Metrics()
    metrics.decided(victims("a"), now=10.0, seconds=0.1)
    other = ObjectRef("Pod", "ns", "other", "other-uid")
    metrics.decided([Evict(ObjectRef("Pod", "ns", "a", "a-uid"), other)], now=15.0, seconds=0.1)
    metrics.handled(ObjectDeleted("Pod", "ns", "a", "a-uid"), 18.0)

    assert executed(metrics, "Success") == (1, 5.0)
    labels = {"preemptor": "pod", "result": "Success"}
    assert value(metrics, "preemption_execution_duration_seconds_sum", **labels) == 3.0


def test_seats_that_a_group_gives_back_are_no_preemption():
    metrics = Metrics()
    metrics.decided([Evict(ObjectRef("Pod", "ns", "a", "a-uid"), GANG, given_back=True)], now=10.0, seconds=0.1)
    metrics.handled(ObjectDeleted("Pod", "ns", "a", "a-uid"), 18.0)

    assert executed(metrics, "Success") == (None, None)


def test_judgements_are_counted_by_outcome():
    metrics = Metrics()
    metrics.domains_evaluated([DomainsEvaluated("mine", 50, 20), DomainsEvaluated("mine", 50, 50)], 0.5)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"scheduler_{name}", {"profile": "mine", **labels})

    assert value("generated_placements_total") == 100
    assert value("placement_evaluations_total", result="feasible") == 70
    assert value("placement_evaluations_total", result="infeasible") == 30
    assert value("placement_evaluation_duration_seconds_sum", result="infeasible") == 0.005
