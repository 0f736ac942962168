"""Measurements: handed out once, and the oldest are dropped when nobody takes them."""

from __future__ import annotations

from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.preemption.result import NOMINATED, PreemptionAttempt
from muster.scheduler.state.measurements import ACCEPTED, MOST_KEPT, UNCHECKED, Measurements


def test_preemption_attempts_are_handed_out_once():
    measurements = Measurements()
    attempt = PreemptionAttempt("pod", NOMINATED, 2, 1)
    measurements.add_preemption(attempt)
    assert measurements.take_preemptions() == [attempt]
    assert measurements.take_preemptions() == []


def test_evaluated_domains_are_handed_out_once():
    measurements = Measurements()
    evaluated = DomainsEvaluated()
    measurements.add_domains(evaluated)
    assert measurements.take_domains() == [evaluated]
    assert measurements.take_domains() == []


def test_proofs_are_counted_by_what_became_of_them():
    measurements = Measurements()
    for result in (ACCEPTED, UNCHECKED, ACCEPTED):
        measurements.add_proof(result)
    assert measurements.take_proofs() == {ACCEPTED: 2, UNCHECKED: 1}
    assert measurements.take_proofs() == {}


def test_the_oldest_are_dropped_when_nobody_takes_them():
    measurements = Measurements()
    for pods in range(MOST_KEPT + 3):
        measurements.add_preemption(PreemptionAttempt("pod", NOMINATED, pods))
    taken = measurements.take_preemptions()
    assert (len(taken), taken[0].pods) == (MOST_KEPT, 3)
