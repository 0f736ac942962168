"""A random life of a small cluster behind a slow API server: trees of groups are built, torn down and built again.

A life is a list of deeds, each with a number that decides everything else about it, so a life can be repeated and a
failing one made smaller. Names are few and used again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import msgspec

from tests.build.delayed_api import a_delayed_api
from tests.build.objects import RACK, a_basic, a_composite, a_gang, a_node, a_pod

COMPOSITES = ("c0", "c1", "c2", "high")  # a composite is usually below one that comes earlier
GANGS = ("g0", "g1", "g2", "high0", "high1")
KINDS = ("Pod", "Node", "PodGroup", "CompositePodGroup")
Deed = tuple[str, int]


class Life:
    """One cluster, and what is done to it."""

    def __init__(self, seed: int = 0) -> None:
        self.api = a_delayed_api([a_node(f"n{i}", cpu=3, rack=f"r{i % 2}") for i in range(2)], seed=seed)
        self.number = 0
        for i in range(4):
            self.api.create(a_pod(f"solo-{i}"))
        self.api.settle(1)

    def live(self, deeds: Iterable[Deed]) -> None:
        for name, number in deeds:
            DEEDS[name](self, Random(number))

    # --- groups ------------------------------------------------------------------------------------

    def create_group(self, rng: Random) -> None:
        """A group that does not exist, whatever names it already."""
        missing = [name for name in COMPOSITES + GANGS if (_kind(name), "ns", name) not in self.api.objects]
        if missing:
            self._create_group(rng, rng.choice(missing))

    def complete(self, rng: Random) -> None:
        """Everything that a gang still lacks: itself, the composites above it, and pods."""
        name = rng.choice(GANGS)
        self._create_pods(rng, name, 3)
        while name is not None:
            if (_kind(name), "ns", name) not in self.api.objects:
                self._create_group(rng, name)
            name = self.api.get(_kind(name), name).spec.parent_composite_pod_group_name
            if name is not None and (_kind(name), "ns", name) in self.api.objects:
                return

    def _create_group(self, rng: Random, name: str) -> None:
        self.number += 1
        fields: dict[str, Any] = {"parent": self._parent(rng, name), "created": self.number}
        fields |= {"priority": self._priority(rng, name), "mode": "all" if rng.random() < 0.1 else "single"}
        if rng.random() < 0.15:
            fields["topology"] = RACK
        if name in COMPOSITES:
            self.api.create(a_composite(name, rng.choice((1, 1, 2)), **fields))
        elif rng.random() < 0.1:
            self.api.create(a_basic(name, **fields))
        else:
            self.api.create(a_gang(name, rng.choice((1, 2, 2, 3)), **fields))

    @staticmethod
    def _parent(rng: Random, name: str) -> str | None:
        """In the tree of its own priority, mostly above it; with some luck the parents form a cycle."""
        if name.startswith("high"):
            return rng.choice((None, "high")) if name in GANGS else None
        above = COMPOSITES[:3] if name in GANGS or rng.random() < 0.1 else COMPOSITES[: COMPOSITES.index(name)]
        return rng.choice((None, *above, *above))

    @staticmethod
    def _priority(rng: Random, name: str) -> int:
        """Alike in a tree, as it must be, but for a few."""
        return 10 if name.startswith("high") else 5 if rng.random() < 0.01 else 0

    def delete_group(self, rng: Random) -> None:
        """A group alone, or with its pods, seen in either order."""
        found = sorted((kind, name) for kind, _, name in self.api.objects if kind.endswith("PodGroup"))
        if not found:
            return
        kind, name = rng.choice(found)
        self.api.remove(kind, name)
        if rng.random() < 0.4:
            for pod in self._pods(f"{name}-"):
                self.api.remove("Pod", pod)
            if rng.random() < 0.5:
                self.api.deliver(*rng.choice((("Pod", kind), (kind, "Pod"))))

    def change_minimum(self, rng: Random) -> None:
        gangs = [obj for (kind, _, _), obj in sorted(self.api.objects.items()) if kind == "PodGroup"]
        gangs = [obj for obj in gangs if obj.spec.scheduling_policy.gang is not None]
        if gangs:
            obj = rng.choice(gangs)
            changed = a_gang(obj.metadata.name, rng.choice((1, 2, 3))).spec.scheduling_policy
            self.api.add(
                msgspec.structs.replace(obj, spec=msgspec.structs.replace(obj.spec, scheduling_policy=changed))
            )

    # --- pods --------------------------------------------------------------------------------------

    def _pods(self, prefix: str = "") -> list[str]:
        return sorted(name for kind, _, name in self.api.objects if kind == "Pod" and name.startswith(prefix))

    def create_pods(self, rng: Random) -> None:
        self._create_pods(rng, rng.choice((*GANGS, "solo")), rng.randint(1, 3))

    def _create_pods(self, rng: Random, group: str, count: int) -> None:
        used = set(self._pods(f"{group}-"))
        for name in [name for name in (f"{group}-{i}" for i in range(6)) if name not in used][:count]:
            self.number += 1
            fields: dict[str, Any] = {"created": self.number, "cpu": rng.choice((1, 1, 1, 2))}
            fields["priority"] = rng.choice((0, 5, 10)) if group == "solo" else self._priority(rng, group)
            fields["gates"] = ["hold"] if rng.random() < 0.05 else []
            fields["owner"] = "job" if rng.random() < 0.3 else None
            self.api.create(a_pod(name, None if group == "solo" else group, **fields))

    def open_gate(self, rng: Random) -> None:
        gated = [name for name in self._pods() if self.api.pod(name).spec.scheduling_gates]
        if gated:
            pod = self.api.pod(rng.choice(gated))
            self.api.add(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=None)))

    def delete_pod(self, rng: Random) -> None:
        """Gone at once, being deleted, or finished."""
        if names := self._pods():
            name = rng.choice(names)
            match rng.choice(("gone", "terminating", "finished")):
                case "gone":
                    self.api.remove("Pod", name)
                case "terminating":
                    self.api.terminate(name)
                case _ if self.api.pod(name).spec.node_name:
                    self.api.finish(name, rng.choice(("Succeeded", "Failed")))
                case _:
                    pass

    def reap(self, rng: Random) -> None:
        self.api.reap()

    # --- nodes -------------------------------------------------------------------------------------

    def add_node(self, rng: Random) -> None:
        name = f"n{rng.randint(0, 3)}"
        if ("Node", "", name) not in self.api.objects:
            self.api.add(a_node(name, cpu=3, rack=f"r{rng.randint(0, 1)}"))

    def remove_node(self, rng: Random) -> None:
        """With its pods, or they are left behind."""
        nodes = sorted(name for kind, _, name in self.api.objects if kind == "Node")
        if not nodes:
            return
        lost = rng.choice(nodes)
        self.api.remove("Node", lost)
        if rng.random() < 0.5:
            for name, node in self.api.bound().items():
                if node == lost:
                    self.api.remove("Pod", name)

    def change_taint(self, rng: Random) -> None:
        """A node becomes unreachable, or is back."""
        nodes = [obj for (kind, _, _), obj in sorted(self.api.objects.items()) if kind == "Node"]
        if nodes:
            node = rng.choice(nodes)
            taints = () if node.spec.taints else ("node.kubernetes.io/unreachable=:NoExecute",)
            name, rack = node.metadata.name, node.metadata.labels[RACK]
            self.api.add(a_node(name, cpu=3, rack=rack, taints=taints))

    # --- the slow API server and the scheduler -----------------------------------------------------

    def deliver(self, rng: Random) -> None:
        self.api.deliver(*rng.sample(KINDS, rng.randint(1, 4)), most=rng.choice((1, 3, None)))

    def execute(self, rng: Random) -> None:
        self.api.execute(succeed=rng.random() < 0.7, most=rng.choice((1, 2, None)))

    def answer(self, rng: Random) -> None:
        self.api.answer(rng.choice((1, 2, None)))

    def cycles(self, rng: Random) -> None:
        for _ in range(rng.choice((1, 2, 50))):
            self.api.step()

    def pass_time(self, rng: Random) -> None:
        self.api.wait(rng.choice((0.5, 3.0, 30.0, 70.0)))

    def restart(self, rng: Random) -> None:
        self.api.restart()


def _kind(name: str) -> str:
    return "CompositePodGroup" if name in COMPOSITES else "PodGroup"


DEEDS: dict[str, Callable[[Life, Random], None]] = {
    deed.__name__: deed
    for deed in (
        Life.create_group,
        Life.complete,
        Life.delete_group,
        Life.change_minimum,
        Life.create_pods,
        Life.open_gate,
        Life.delete_pod,
        Life.reap,
        Life.add_node,
        Life.remove_node,
        Life.change_taint,
        Life.deliver,
        Life.execute,
        Life.answer,
        Life.cycles,
        Life.pass_time,
        Life.restart,
    )
}
OFTEN = ("complete", "deliver", "cycles", "execute", "answer")
CHOICES = (*DEEDS, *OFTEN, *OFTEN, *OFTEN, "delete_group", "delete_group")
