"""Gangs with devices are placed exactly where trying every node for every pod and every device finds a placement."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import msgspec
import pytest

from muster.api.devices import ResourceClaim
from tests.build.devices import DRIVER, a_class, a_gpu_pod, a_request, a_slice, own_claim, shared_claim, using_claim
from tests.build.objects import a_gang, a_node, a_pod
from tests.build.scheduler import TestWorld
from tests.scheduler.devices.worlds import feasible, random_claim, random_devices

CASES = int(os.environ.get("DEVICE_GANGS", "60"))
MODEL = f"device.attributes['{DRIVER}'].model"
CLASSES = (
    a_class("gpu", f"{MODEL} != 'wide'"),
    a_class("model-a", f"{MODEL} == 'a'"),
    a_class("wide", f"{MODEL} == 'wide'"),
)

Obj = dict[str, Any]


@dataclass
class Problem:
    """A gang whose pods have claims of their own, of which some also share one, on up to three nodes."""

    cpus: list[int]
    devices: list[list[Obj]]  # by node
    counters: list[int]  # by node, beyond what nobody uses
    racks: list[str]
    wide: list[str]  # racks with a device that all their nodes can use
    own: list[ResourceClaim | None]
    sharing: list[bool]
    shared: str  # class of the shared claim
    known: dict[Any, bool] = field(default_factory=dict)

    @classmethod
    def random(cls, seed: int) -> Problem:
        random = Random(seed)
        nodes, pods = random.randint(1, 3), random.randint(2, 4)
        shapes = [random_claim(random) if random.random() < 0.8 else None for _ in range(2)]
        shared = random.choice(("", "wide", "gpu"))
        own = [random.choice(shapes) for _ in range(pods)]
        sharing = [bool(shared) and random.random() < 0.8 for _ in range(pods)]
        return cls(
            cpus=[random.randint(1, 3) for _ in range(nodes)],
            devices=[random_devices(random) for _ in range(nodes)],
            counters=[random.randint(0, 5) for _ in range(nodes)],
            racks=[random.choice("rs") for _ in range(nodes)],
            wide=[rack for rack in "rs" if random.random() < 0.7],
            own=own,
            sharing=sharing,
            shared=shared,
        )

    # --- as the scheduler sees it ------------------------------------------------------------------

    def placed(self) -> bool:
        world = TestWorld([a_node(f"n{at}", cpu=cpu, rack=rack) for at, (cpu, rack) in enumerate(self._nodes())])
        world.add(*CLASSES)
        for at, devices in enumerate(self.devices):
            name = f"n{at}"
            counters = [{"name": "set", "counters": {"slices": {"value": str(self.counters[at])}}}]
            pool = {"name": name, "resourceSliceCount": 2}
            world.add(
                a_slice(name, devices, pool=pool, nodeName=name),
                a_slice(f"{name}-set", [], pool=pool, nodeName=name, sharedCounters=counters),
            )
        for rack in self.wide:
            term = {"matchExpressions": [{"key": "example.com/rack", "operator": "In", "values": [rack]}]}
            device = {"name": "domain", "attributes": {"model": {"string": "wide"}}}
            world.add(a_slice(f"rack-{rack}", [device], nodeSelector={"nodeSelectorTerms": [term]}))
        if self.shared:
            world.add(shared_claim("shared", a_request("r", self.shared)))
        world.add(a_gang("g", min_count=len(self.own)), *self._pods(world))
        world.run()
        bound = world.bound()
        assert len(bound) in (0, len(self.own)), "all or nothing"
        return bool(bound)

    def _nodes(self) -> list[tuple[int, str]]:
        return list(zip(self.cpus, self.racks, strict=True))

    def _pods(self, world: TestWorld) -> list[Any]:
        pods: list[Any] = []
        for number, (claim, sharing) in enumerate(zip(self.own, self.sharing, strict=True)):
            name = f"g-{number}"
            pod = a_pod(name, "g")
            if claim is not None:
                world.add(msgspec.structs.replace(own_claim(name), spec=claim.spec))
                pod = a_gpu_pod(name, "g")
            if sharing:
                entry = using_claim(name, "shared", "g").spec.resource_claims or ()
                renamed = tuple(msgspec.structs.replace(one, name="shared") for one in entry)
                entries = (*(pod.spec.resource_claims or ()), *renamed)
                pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resource_claims=entries))
            pods.append(pod)
        return pods

    # --- by trying everything ----------------------------------------------------------------------

    def exists(self) -> bool:
        return any(self._works(where) for where in product(range(len(self.cpus)), repeat=len(self.own)))

    def _works(self, where: tuple[int, ...]) -> bool:
        if any(where.count(at) > cpu for at, cpu in enumerate(self.cpus)):
            return False
        users = {node for node, sharing in zip(where, self.sharing, strict=True) if sharing}
        if not users or self.shared == "wide":
            racks = {self.racks[node] for node in users}
            return (not users or (len(racks) == 1 and racks <= set(self.wide))) and self._own_fit(where, None)
        if len(users) > 1:
            return False
        (node,) = users
        claim = shared_claim("shared", a_request("r", "gpu"))
        return self._own_fit(where, (node, claim))

    def _own_fit(self, where: tuple[int, ...], shared: tuple[int, ResourceClaim] | None) -> bool:
        for at in range(len(self.devices)):
            claims = [claim for node, claim in zip(where, self.own, strict=True) if node == at and claim is not None]
            if shared is not None and shared[0] == at:
                claims.append(shared[1])
            if not self._node_fits(at, claims):
                return False
        return True

    def _node_fits(self, at: int, claims: list[ResourceClaim]) -> bool:
        """The same claims on the same node are tried once."""
        key = (at, tuple(sorted(map(repr, claims))))
        if key not in self.known:
            self.known[key] = feasible(claims, self.devices[at], {"slices": self.counters[at]}, set())
        return self.known[key]


@pytest.mark.parametrize("block", range(10))
def test_a_gang_is_placed_exactly_where_a_placement_exists(block: int) -> None:
    found = 0
    for seed in range(block * CASES // 10, (block + 1) * CASES // 10):
        problem = Problem.random(seed)
        exists = problem.exists()
        found += exists
        assert problem.placed() == exists, f"seed {seed}: {problem}"
    assert found or CASES < 1000, "some of them have a placement"


def test_the_problems_are_not_all_alike() -> None:
    answers = [Problem.random(seed).exists() for seed in range(60)]
    assert 10 < sum(answers) < 50
