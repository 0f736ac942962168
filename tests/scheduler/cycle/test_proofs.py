"""A proof of infeasibility is checked by other code before it is said, and before anybody is evicted for it."""

from __future__ import annotations

import pytest

from muster.scheduler.cycle import proofs
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def a_gang_that_needs_room(priority: int = 0) -> TestWorld:
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_pod("low", node="n0", cpu=2))
    return world.add(a_gang("g", 2, priority=priority), *pods(2, "g", cpu=1, priority=priority))


def test_a_proof_that_holds_is_accepted_and_counted():
    world = a_gang_that_needs_room().run()
    found = world.condition("PodGroup", "g")
    assert found is not None
    assert found.reason == "Unschedulable"
    assert world.scheduler.take_proofs() == {"accepted": 1}
    assert world.scheduler.take_proofs() == {}


def test_a_rejected_proof_is_not_said_and_evicts_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proofs, "check_proof", lambda *_, **__: "a placement exists")
    world = a_gang_that_needs_room(priority=100).run()
    found = world.condition("PodGroup", "g")
    assert found is not None
    assert found.reason == "PlacementNotGuaranteed"
    assert found.message.startswith("no placement found within the budget, one may exist")
    assert world.evicted() == []
    assert world.scheduler.take_proofs() == {"rejected": 1}


def test_an_accepted_proof_lets_the_gang_preempt():
    world = a_gang_that_needs_room(priority=100).run()
    assert world.evicted() == ["low"]
    assert world.scheduler.take_proofs()["accepted"] >= 1


def test_a_proof_that_is_too_large_to_check_is_counted_as_unchecked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proofs, "MOST_WORK", 0)
    world = a_gang_that_needs_room().run()
    assert world.scheduler.take_proofs() == {"unchecked": 1}
    found = world.condition("PodGroup", "g")
    assert found is not None
    assert found.reason == "Unschedulable"


def test_a_pod_that_its_volumes_hold_back_keeps_its_own_message():
    world = a_world([a_node("n0")])
    world.add(a_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])).run()
    found = world.condition("Pod", "p")
    assert found is not None
    assert found.message == '0/1 nodes are available: persistentvolumeclaim "data" not found.'
    assert world.scheduler.take_proofs() == {"unchecked": 1}
