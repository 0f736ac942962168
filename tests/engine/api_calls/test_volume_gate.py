"""Binds that wait for volumes: released together, or failed together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api import types
from muster.engine.api_calls.patches import SELECTED_NODE
from muster.engine.api_calls.volume_gate import VolumeBindGate
from muster.scheduler.interface.decisions import Bind, PromiseVolume, SelectVolumeNode
from muster.scheduler.interface.events import BindFailed, Event
from muster.scheduler.interface.keys import ObjectRef

CLAIM = ObjectRef("PersistentVolumeClaim", "ns", "data", "c1")


class Scene:
    """Two pods of a gang, of which one has a claim, and a gate that holds both."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], Any] = {}
        self.released: list[Bind] = []
        self.failed: list[Event] = []
        self.gate = VolumeBindGate(self.look, self.released.append, self.failed.append, timeout=600.0)
        self.binds = [Bind(ObjectRef("Pod", "ns", name, name), "n0") for name in ("a", "b")]
        self.known["Node", "", "n0"] = msgspec.convert({"metadata": {"name": "n0"}}, types.Node)
        for name in ("a", "b"):
            self.known["Pod", "ns", name] = msgspec.convert(
                {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {}}, types.Pod
            )
        self.claim()

    def look(self, kind: str, namespace: str, name: str) -> Any:
        return self.known.get((kind, namespace, name))

    def claim(self, *, chosen: str = "", bound: bool = False) -> None:
        body = {
            "metadata": {
                "name": "data",
                "namespace": "ns",
                "uid": "c1",
                "annotations": {SELECTED_NODE: chosen} if chosen else {},
            },
            "spec": {"volumeName": "pv" if bound else ""},
            "status": {"phase": "Bound" if bound else "Pending"},
        }
        self.known["PersistentVolumeClaim", "ns", "data"] = msgspec.convert(body, types.PersistentVolumeClaim)

    def hold(self, wish: SelectVolumeNode | PromiseVolume | None = None) -> None:
        self.gate.hold(self.binds, [wish or SelectVolumeNode(CLAIM, "n0")], now=0.0)

    def reasons(self) -> list[str]:
        return [event.reason for event in self.failed if isinstance(event, BindFailed)]


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("wish", [SelectVolumeNode(CLAIM, "n0"), PromiseVolume("pv", CLAIM)])
def test_all_binds_wait_for_the_last_claim(scene: Scene, wish: SelectVolumeNode | PromiseVolume) -> None:
    scene.hold(wish)
    scene.claim(chosen="n0")
    scene.gate.review(1.0)
    assert scene.gate.busy
    assert scene.released == []
    scene.claim(chosen="n0", bound=True)
    scene.gate.review(2.0)
    assert scene.released == scene.binds
    assert not scene.gate.busy


def test_a_choice_given_back_fails_them_all(scene: Scene) -> None:
    scene.hold()
    scene.claim(chosen="n0")
    scene.gate.review(1.0)
    scene.claim()
    scene.gate.review(2.0)
    assert scene.reasons() == ["no volume could be made for the claim ns/data on node n0"] * 2
    assert scene.released == []


def test_a_choice_that_the_watch_has_not_shown_yet_was_not_given_back(scene: Scene) -> None:
    scene.hold()
    scene.gate.review(1.0)
    assert scene.gate.busy


def test_time_runs_out_for_them_all(scene: Scene) -> None:
    scene.hold()
    assert scene.gate.next_due() == 600.0
    scene.gate.review(600.0)
    assert scene.reasons() == ["the claim ns/data was not bound in time"] * 2


def test_a_member_that_is_gone_takes_the_others_with_it(scene: Scene) -> None:
    scene.hold()
    del scene.known["Pod", "ns", "b"]
    scene.claim(chosen="n0", bound=True)
    scene.gate.review(1.0)
    assert scene.reasons() == ["the pod ns/b is gone"] * 2
    assert scene.released == []


def test_a_node_that_is_gone_fails_them_all(scene: Scene) -> None:
    scene.hold()
    del scene.known["Node", "", "n0"]
    scene.gate.review(1.0)
    assert scene.reasons() == ["the node n0 is gone"] * 2


def test_a_claim_that_is_gone_fails_them_all(scene: Scene) -> None:
    scene.hold()
    del scene.known["PersistentVolumeClaim", "ns", "data"]
    scene.gate.review(1.0)
    assert scene.reasons() == ["the claim ns/data is gone"] * 2
