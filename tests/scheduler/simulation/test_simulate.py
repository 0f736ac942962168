"""A simulation carries out decisions at once: binds succeed, victims are gone, conditions are recorded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api.devices import ResourceClaimStatus
from muster.scheduler.interface.decisions import RecordEvent
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.runtime.config import default_config
from muster.scheduler.simulation import simulate
from muster.scheduler.simulation.simulate import Simulation
from muster.scheduler.simulation.snapshot import Snapshot, scheduler_of
from tests.build.devices import DRIVER, a_class, a_gpu_pod, gpus_of, own_claim
from tests.build.objects import a_gang, a_node, a_pod, of, pods


def simulated(*objects: Any) -> Simulation:
    by_kind: dict[str, list[Any]] = {}
    for obj in objects:
        by_kind.setdefault(type(obj).__name__, []).append(obj)
    return Simulation(scheduler_of(Snapshot(by_kind), default_config())).run()


def names(refs: dict[ObjectRef, Any]) -> list[str]:
    return [ref.name for ref in refs]


def test_pods_that_fit_are_placed_in_the_order_of_their_binds():
    found = simulated(a_node("n0", cpu=2), a_gang("g", 2), *pods(2, "g"))
    assert {ref.name: node for ref, node in found.placed.items()} == {"g-0": "n0", "g-1": "n0"}
    assert found.scheduler.pending() == 0


def test_victims_are_gone_at_once_and_the_preemptor_is_placed():
    low = a_pod("low", node="n0", priority=1)
    found = simulated(a_node("n0", cpu=1), low, a_pod("high", priority=5))
    assert {pod.name: preemptor.name for pod, preemptor in found.victims.items()} == {"low": "high"}
    assert names(found.placed) == ["high"]


def test_conditions_of_what_does_not_fit_are_recorded():
    found = simulated(a_node("n0", cpu=1), a_pod("big", cpu=2))
    (condition,) = found.conditions.values()
    assert (condition.about.name, condition.status, condition.reason) == ("big", "False", "Unschedulable")
    assert found.placed == {}


def test_a_condition_is_set_on_the_pod_so_that_it_is_not_set_again():
    found = simulated(a_node("n0", cpu=1), a_pod("big", cpu=2))
    member = found.scheduler.state.forest.members["pod-big"]
    assert [condition.type for condition in member.pod.status.conditions or ()] == ["PodScheduled"]


def test_a_simulation_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch):
    found = simulated(a_node("n0"))
    endless = RecordEvent(ObjectRef("Pod", "ns", "x"), "Normal", "Again", "Again", "")
    monkeypatch.setattr(found.scheduler, "next", lambda now: [endless])
    monkeypatch.setattr(simulate, "MOST_CYCLES", 5)
    with pytest.raises(RuntimeError, match="did not end after 5 cycles"):
        found.run()


def test_victims_give_their_devices_back_at_once():
    result = {"request": "r", "driver": DRIVER, "pool": "n0", "device": "gpu-0"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "low", "uid": "pod-low"}],
    }
    held = msgspec.structs.replace(own_claim("low"), status=of(ResourceClaimStatus, status))
    low, high = a_gpu_pod("low", node="n0", priority=1), a_gpu_pod("high", priority=5)
    found = simulated(a_node("n0", cpu=8), a_class("gpu"), gpus_of("n0", 1), held, own_claim("high"), low, high)
    assert names(found.victims) == ["low"]
    assert names(found.placed) == ["high"]
