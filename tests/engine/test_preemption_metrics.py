"""The numbers of preemption: considerations by outcome, victims, units and violations, by who asked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from muster.engine.metrics import BrainView, Metrics
from muster.scheduler.decisions import Decision, Evict, Ref, SetCondition
from muster.scheduler.events import Changed, EvictFailed, Removed
from muster.scheduler.preemption.round import NO_VICTIMS, NOMINATED, REFUSED, Round
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


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


GANG = Ref("PodGroup", "ns", "gang", "gang-uid")


def victims(*names: str) -> list[Decision]:
    return [Evict(Ref("Pod", "ns", name, f"{name}-uid"), GANG) for name in names]


def executed(metrics: Metrics, result: str) -> tuple[float | None, float | None]:
    name, labels = "preemption_execution_duration_seconds", {"preemptor": "podgroup", "result": result}
    return value(metrics, f"{name}_count", **labels), value(metrics, f"{name}_sum", **labels)


def test_an_execution_lasts_until_the_last_victim_is_on_its_way_out():
    metrics = Metrics()
    metrics.decided(victims("a", "b"), now=10.0, seconds=0.1)
    metrics.handled(Removed("Pod", "ns", "a", "a-uid"), 12.0)
    assert executed(metrics, "Success") == (None, None)

    pod = a_pod("b", node="n0")
    meta = replace(pod.metadata, uid="b-uid", deletion_timestamp="2026-01-01T00:00:00Z")
    metrics.handled(Changed("Pod", replace(pod, metadata=meta)), 14.0)
    metrics.handled(Removed("Pod", "ns", "b", "b-uid"), 40.0)

    assert executed(metrics, "Success") == (1, 4.0)


def test_an_execution_with_a_refused_delete_is_an_error():
    metrics = Metrics()
    metrics.decided(victims("a", "b"), now=10.0, seconds=0.1)
    metrics.handled(EvictFailed("a-uid", "forbidden"), 11.0)
    metrics.handled(Removed("Pod", "ns", "b", "b-uid"), 13.0)

    assert executed(metrics, "Error") == (1, 3.0)


def test_an_execution_that_is_called_off_is_an_error():
    metrics = Metrics()
    metrics.decided(victims("a"), now=10.0, seconds=0.1)
    mark = Ref("Pod", "ns", "a", "a-uid")
    metrics.decided([SetCondition(mark, "DisruptionTarget", "False", "PreemptionCalledOff", "")], now=12.0, seconds=0.1)

    assert executed(metrics, "Error") == (1, 2.0)


def test_a_victim_that_leaves_for_somebody_else_ends_the_first_execution():
    metrics = Metrics()
    metrics.decided(victims("a"), now=10.0, seconds=0.1)
    other = Ref("Pod", "ns", "other", "other-uid")
    metrics.decided([Evict(Ref("Pod", "ns", "a", "a-uid"), other)], now=15.0, seconds=0.1)
    metrics.handled(Removed("Pod", "ns", "a", "a-uid"), 18.0)

    assert executed(metrics, "Success") == (1, 5.0)
    labels = {"preemptor": "pod", "result": "Success"}
    assert value(metrics, "preemption_execution_duration_seconds_sum", **labels) == 3.0


def test_seats_that_a_group_gives_back_are_no_preemption():
    metrics = Metrics()
    metrics.decided([Evict(Ref("Pod", "ns", "a", "a-uid"), GANG, given_back=True)], now=10.0, seconds=0.1)
    metrics.handled(Removed("Pod", "ns", "a", "a-uid"), 18.0)

    assert executed(metrics, "Success") == (None, None)


def test_pods_behind_a_gate_show_as_gated():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_pod("alone", gates=["wait"]))
    world.add(
        a_gang("g", 2), a_pod("g-0", "g", gates=["wait"]), a_pod("g-1", "g"), a_gang("short", 2), a_pod("s-0", "short")
    )
    world.run()

    metrics = Metrics()
    metrics.registry.register(BrainView(world.brain, lambda: 0))

    assert value(metrics, "pending_pods", queue="gated") == 3
    assert value(metrics, "pending_pods", queue="incomplete") == 1
