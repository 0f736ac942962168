"""Evictions in a restless world: whatever happens in between, nothing is left half done once it is quiet.

Preemptors come, go and overtake each other; victims leave slowly or cannot be deleted; nodes vanish, others bind pods,
the scheduler restarts. No node is ever overcommitted by us (the world checks after every turn).
"""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.queue.entity import EntityState
from tests.build.examples import examples
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

STEPS = 14


class Life:
    """One random life of a small cluster."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world: TestWorld = a_world([a_node(f"n{i}", cpu=4, rack=f"r{i % 2}") for i in range(4)])
        self.world.slow_victims = True
        self.number = 0
        self.stubborn: set[str] = set()
        delete = self.world._evict

        def evict(ref: ObjectRef) -> None:
            if ref.name in self.stubborn:
                self.world.scheduler.handle(events.EvictionFailed(ref.uid, "forbidden"), self.world.now)
            else:
                delete(ref)

        self.world._evict = evict

    def live(self) -> None:
        for _ in range(3):
            self.tenant()
        self.world.run()
        deeds = [self.tenant, self.preemptor, self.preemptor, self.reap_some, self.turns, self.turns]
        deeds += [self.delete, self.restart, self.lose_node, self.gain_node, self.intrude, self.make_stubborn]
        for _ in range(STEPS):
            self.rng.choice(deeds)()

    def settle(self) -> None:
        self.stubborn.clear()
        for _ in range(6):
            self.world.wait(70)
            self.world.reap()
        self.world.wait(1)

    # --- deeds -------------------------------------------------------------------------------------

    def _group(self, priority: int) -> None:
        rng, world = self.rng, self.world
        name = f"g{self.number}"
        self.number += 1
        size, fields = rng.randint(1, 4), {"priority": priority, "created": self.number}
        mode = rng.choice(["single", "all"])
        match rng.choice(["pod", "gang", "gang", "tree"]):
            case "pod":
                world.add(a_pod(name, cpu=rng.randint(1, 3), **fields))
            case "gang":
                topology = {"topology": RACK} if rng.random() < 0.3 else {}
                world.add(a_gang(name, rng.randint(1, size), mode=mode, **fields, **topology))
                world.add(*pods(size, name, cpu=rng.randint(1, 2), **fields))
            case _:
                world.add(a_composite(name, rng.randint(1, 2), mode=mode, **fields))
                for child in ("a", "b"):
                    world.add(a_gang(f"{name}{child}", 1, parent=name, mode=mode, **fields))
                    world.add(*pods(rng.randint(1, 2), f"{name}{child}", **fields))

    def tenant(self) -> None:
        self._group(self.rng.choice([1, 5]))

    def preemptor(self) -> None:
        self._group(self.rng.choice([10, 10, 20]))

    def turns(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.world.step()

    def _pods(self) -> list[str]:
        return sorted(name for (kind, _, name) in self.world.objects if kind == "Pod")

    def reap_some(self) -> None:
        for name in self._pods():
            if self.world.pod(name).metadata.deletion_timestamp and self.rng.random() < 0.6:
                self.world.remove("Pod", name)

    def delete(self) -> None:
        names = self._pods()
        if names:
            self.world.remove("Pod", self.rng.choice(names))

    def restart(self) -> None:
        self.world.restart()

    def lose_node(self) -> None:
        nodes = sorted(name for (kind, _, name) in self.world.objects if kind == "Node")
        if len(nodes) > 2:
            lost = self.rng.choice(nodes)
            self.world.remove("Node", lost)
            for name, node in self.world.bound().items():
                if node == lost:
                    self.world.remove("Pod", name)

    def gain_node(self) -> None:
        self.number += 1
        self.world.add(a_node(f"m{self.number}", cpu=self.rng.randint(1, 4), rack=f"r{self.rng.randint(0, 1)}"))

    def intrude(self) -> None:
        """Another scheduler puts a small pod on a node that has room now."""
        for (kind, _, node), obj in sorted(self.world.objects.items()):
            if kind == "Node":
                room = int(obj.status.allocatable["cpu"])
                used = [self.world.pod(name) for name, where in self.world.bound().items() if where == node]
                room -= sum(int(pod.spec.containers[0].resources.requests["cpu"]) for pod in used)
                if room >= 1:
                    self.number += 1
                    self.world.add(a_pod(f"x{self.number}", scheduler="other", priority=7, node=node))
                    return

    def make_stubborn(self) -> None:
        self.stubborn.update(self.rng.sample(self._pods(), min(2, len(self._pods()))))


def check_quiet(life: Life) -> None:
    world, scheduler = life.world, life.world.scheduler.state
    assert not scheduler.preemptions.entities(), "no eviction is under way"
    assert not scheduler.nominations, "no seat is held for anybody"
    assert not scheduler.preemptions.unclaimed, "no mark is without an owner"
    for name in life._pods():
        pod = world.pod(name)
        assert not (pod.status.nominated_node_name and not pod.spec.node_name), f"{name} keeps a nomination"
        marks = [c for c in pod.status.conditions or () if c.type == "DisruptionTarget" and c.status == "True"]
        assert not marks, f"{name} keeps a mark"


def check_everyone_has_a_reason(life: Life) -> None:
    """Every root in line is parked or waits: nobody was forgotten."""
    for root in life.world.scheduler.state.queue.entities.values():
        assert root.state in (EntityState.UNSCHEDULABLE, EntityState.INCOMPLETE, EntityState.BACKOFF), root
        assert root.state is not EntityState.UNSCHEDULABLE or root in life.world.scheduler.state.queue.waiting


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_when_it_is_quiet_nothing_is_left_half_done(seed: int):
    life = Life(seed)
    life.live()
    life.settle()
    check_quiet(life)
    check_everyone_has_a_reason(life)
