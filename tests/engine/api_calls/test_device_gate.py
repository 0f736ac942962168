"""Binds wait until devices with binding conditions are ready, and fail together when they never will be."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.devices import ResourceClaim
from muster.engine.api_calls.device_gate import BindGates, DeviceBindGate
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.interface.events import BindFailed, Event
from muster.scheduler.interface.keys import ObjectRef

REF = ObjectRef("ResourceClaim", "ns", "c", "claim-uid")
BIND = Bind(ObjectRef("Pod", "ns", "p", "pod-uid"), "n0")
DEVICE = {"driver": "d", "pool": "p", "device": "x"}


class Scene:
    """A gate with one bind behind it."""

    def __init__(self) -> None:
        self.claim: ResourceClaim | None = None
        self.events: list[Event] = []
        self.released = self.given_back = 0
        self.gate = DeviceBindGate(lambda kind, namespace, name: self.claim, self.events.append, timeout=10.0)

    def hold(self) -> None:
        self.gate.hold([BIND], [REF], self._release, self._give_back, 0.0)

    def _release(self) -> None:
        self.released += 1

    def _give_back(self) -> None:
        self.given_back += 1

    def show(self, *conditions: tuple[str, str], allocated: bool = True, uid: str = "claim-uid") -> None:
        """The claim as the watch shows it, with conditions of its device."""
        result = {"request": "r", **DEVICE, "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
        status: dict[str, Any] = {"allocation": {"devices": {"results": [result]}}} if allocated else {}
        told = [{"type": name, "status": value, "reason": "", "message": ""} for name, value in conditions]
        status["devices"] = [{**DEVICE, "conditions": told}]
        meta = {"name": "c", "namespace": "ns", "uid": uid}
        self.claim = msgspec.convert({"metadata": meta, "status": status}, ResourceClaim)
        self.gate.review(1.0)


def test_a_bind_waits_until_the_condition_is_true() -> None:
    scene = Scene()
    scene.show(allocated=False)
    scene.hold()
    for conditions in ((), (("Ready", "False"),), (("Other", "True"),)):
        scene.show(*conditions)
        assert (scene.released, scene.gate.busy) == (0, True)
    scene.show(("Ready", "True"))
    assert (scene.released, scene.given_back, scene.gate.busy) == (1, 0, False)
    assert scene.events == []


def test_a_failure_gives_the_claims_back_and_fails_the_binds() -> None:
    scene = Scene()
    scene.show()
    scene.hold()
    scene.show(("Ready", "True"), ("Broken", "True"))
    assert (scene.released, scene.given_back) == (0, 1)
    (event,) = scene.events
    assert isinstance(event, BindFailed)
    assert "the device x of the claim ns/c could not be made ready: Broken" in event.reason


def test_a_claim_that_is_gone_or_too_slow_fails_the_binds() -> None:
    scene = Scene()
    scene.show()
    scene.hold()
    assert scene.gate.next_due() == 10.0
    scene.gate.review(10.0)
    assert (scene.released, scene.given_back) == (0, 1)
    scene.hold()
    scene.show(uid="another")
    assert [event.reason for event in scene.events if isinstance(event, BindFailed)] == [
        "devices were not ready in time",
        "the claim ns/c is gone",
    ]


def test_gates_are_busy_when_one_of_them_is() -> None:
    scene, other = Scene(), Scene()
    gates = BindGates(scene.gate, other.gate)
    assert (gates.busy, gates.next_due()) == (False, None)
    scene.show()
    scene.hold()
    assert (gates.busy, gates.next_due()) == (True, 10.0)
    gates.review(10.0)
    assert not gates.busy
