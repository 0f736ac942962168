"""Measurements: everything is taken once, in order, and what nobody takes does not grow without end."""

from __future__ import annotations

from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.preemption.result import NO_VICTIMS, NOMINATED, PreemptionAttempt
from muster.scheduler.state.measurements import ACCEPTED, MOST_KEPT, REJECTED, UNCHECKED, Measurements


def test_preemption_attempts_are_taken_once_in_their_order():
    measurements = Measurements()
    attempts = [PreemptionAttempt("pod", NOMINATED, 1, 1), PreemptionAttempt("podgroup", NO_VICTIMS)]
    for attempt in attempts:
        measurements.add_preemption(attempt)

    assert (measurements.take_preemptions(), measurements.take_preemptions()) == (attempts, [])


def test_evaluated_domains_are_taken_once_in_their_order():
    measurements = Measurements()
    evaluated = [DomainsEvaluated("a", 4, 2), DomainsEvaluated("b", 1, 1)]
    for domains in evaluated:
        measurements.add_domains(domains)

    assert (measurements.take_domains(), measurements.take_domains()) == (evaluated, [])


def test_proofs_are_counted_by_what_became_of_them_since_they_were_last_taken():
    measurements = Measurements()
    for result in (ACCEPTED, UNCHECKED, ACCEPTED):
        measurements.add_proof(result)

    taken = measurements.take_proofs()
    measurements.add_proof(REJECTED)

    assert taken == {ACCEPTED: 2, UNCHECKED: 1}
    assert (measurements.take_proofs(), measurements.take_proofs()) == ({REJECTED: 1}, {})


def test_the_oldest_are_dropped_when_nobody_takes_them():
    measurements = Measurements()
    for number in range(MOST_KEPT + 2):
        measurements.add_preemption(PreemptionAttempt("pod", NOMINATED, number))
        measurements.add_domains(DomainsEvaluated("a", number))

    assert [attempt.pods for attempt in measurements.take_preemptions()] == list(range(2, MOST_KEPT + 2))
    assert [evaluated.domains for evaluated in measurements.take_domains()] == list(range(2, MOST_KEPT + 2))
