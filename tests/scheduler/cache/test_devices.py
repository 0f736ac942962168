"""Devices that are counted on: together on a node, undone exactly, given back when the claim or the pod is gone."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from muster.api.devices import ResourceClaimStatus
from muster.scheduler.cache.devices import Devices
from tests.build.devices import (
    a_class,
    a_gpu_pod,
    a_request,
    a_slice,
    gpus,
    gpus_of,
    own_claim,
    shared_claim,
    using_claim,
)
from tests.build.objects import a_node
from tests.build.scheduler import TestWorld


def a_world() -> TestWorld:
    world = TestWorld([a_node(f"n{number}", cpu=64) for number in range(3)]).add(a_class("gpu"))
    world.add(*(gpus_of(f"n{number}", 4) for number in range(2)))
    everywhere = a_slice("everywhere", gpus(2), allNodes=True)
    return world.add(everywhere)


def contents(devices: Devices) -> object:
    usage = devices.usage
    return (
        dict(usage._whole),
        dict(usage._shares),
        dict(usage._counters),
        dict(devices.promised),
        dict(devices._tried),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_trial_leaves_nothing_behind(seed: int) -> None:
    random, world = Random(seed), a_world()
    shapes = []
    for number in range(3):
        name = f"p{number}"
        world.add(own_claim(name, a_request("r", count=random.randint(1, 2))), a_gpu_pod(name))
    world.add(shared_claim("shared"), using_claim("q", "shared"))
    state = world.scheduler.state
    shapes = [state.shape_of(state.forest.members[f"pod-{name}"]) for name in ("p0", "p1", "p2", "q")]
    devices = state.cluster.devices
    before = contents(devices)
    with state.evaluator.trial() as trial:
        marks = []
        for _ in range(30):
            shape, slot = random.choice(shapes), random.randrange(3)
            match random.random():
                case chance if chance < 0.7:
                    trial.place(shape, slot, random.randint(1, 2))
                case chance if chance < 0.85:
                    marks.append((trial.mark(), contents(devices), trial.seats(shape).tolist(), shape))
                case _ if marks:
                    mark, known, seats, asked = marks.pop()
                    trial.undo(mark)
                    assert contents(devices) == known
                    assert trial.seats(asked).tolist() == seats
                case _:
                    pass
    assert contents(devices) == before


def test_how_many_more_pods_find_devices_counts_those_of_one_node_and_of_all() -> None:
    world = a_world().add(own_claim("p", a_request("r", count=2)), a_gpu_pod("p"))
    state = world.scheduler.state
    needs = state.shape_of(state.forest.members["pod-p"]).footprint.needs
    assert needs is not None
    assert [state.cluster.device_room.most(needs, slot, 256) for slot in range(3)] == [3, 3, 1]
    assert state.cluster.device_room.most(needs, 0, 2) == 2


def test_a_promise_ends_when_the_claim_shows_its_devices() -> None:
    world = a_world().add(own_claim("p"), a_gpu_pod("p")).run()
    devices = world.scheduler.state.cluster.devices
    assert not devices.promised
    assert sum(devices.usage._whole.values()) == 1
    claim = world.get("ResourceClaim", "p-gpu")
    world.add(msgspec.structs.replace(claim, status=ResourceClaimStatus()))
    assert not devices.usage._whole


def test_devices_of_a_slice_that_goes_and_comes_back_stay_in_use() -> None:
    world = a_world().add(own_claim("p"), a_gpu_pod("p")).run()
    devices = world.scheduler.state.cluster.devices
    for node in ("n0", "n1", "everywhere"):
        slice_ = world.get("ResourceSlice", node, "")
        world.objects.pop(("ResourceSlice", "", node))
        world.scheduler.state.cluster.remove("ResourceSlice", "", node)
        world.add(slice_)
    assert sum(devices.usage._whole.values()) == 1
    assert world.add(own_claim("q", a_request("r", count=11)), a_gpu_pod("q")).run().bound().keys() == {"p"}
