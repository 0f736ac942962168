"""Random small clusters and requests for the planner, in numbers that an oracle can try out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.scheduler.placement.request import GroupRequest, leaves
from tests.build.objects import DOMAINS, RACK, ZONE, a_node, a_pod
from tests.build.planning import Scene

Free = tuple[tuple[int, int], ...]  # cpu and memory of each node


@dataclass
class Kind:
    """A kind of pod: whole cpus, whole GiB, and the node class it insists on."""

    cpu: int
    memory: int
    only: str | None = None


@dataclass
class Small:
    """A world that the oracle can take in at a glance."""

    scene: Scene
    demand: GroupRequest
    free: Free
    labels: list[dict[str, str]]
    kind_of: dict[str, Kind] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        return sum(len(leaf.members) for leaf in leaves(self.demand))


def a_small_world(rng: random.Random, most_pods: int = 9) -> Small:
    while True:
        small = _draw(rng)
        if small.pods <= most_pods:
            return small


def _draw(rng: random.Random) -> Small:
    scene, free, labels = Scene(seed=rng.randint(0, 3)), [], []
    for index in range(rng.randint(2, 5)):
        cpu, memory = rng.randint(1, 5), rng.randint(1, 5)
        at = {"zone": f"z{rng.randint(1, 2)}", "rack": f"r{rng.randint(1, 3)}"}
        if rng.random() < 0.1:
            del at["rack"]
        kind = rng.choice(("fast", "slow"))
        scene.nodes(a_node(f"n{index}", cpu=cpu, memory=f"{memory}Gi", labels={"kind": kind}, **at))
        free.append((cpu, memory))
        labels.append({**{DOMAINS[key]: value for key, value in at.items()}, "kind": kind})
    kinds = [
        Kind(rng.randint(1, 3), rng.randint(0, 3), rng.choice((None, None, None, "fast")))
        for _ in range(rng.randint(1, 3))
    ]
    small = Small(scene, None, tuple(free), labels)  # type: ignore[arg-type]
    small.demand = _tree(rng, small, kinds, rng.randint(0, 2), [0])
    return small


def _tree(rng: random.Random, small: Small, kinds: Sequence[Kind], depth: int, serial: list[int]) -> GroupRequest:
    serial[0] += 1
    name, topology = f"g{serial[0]}", rng.choice(("", "", RACK, ZONE))
    if depth == 0 or rng.random() < 0.25:
        pods = []
        for index in range(rng.randint(1, 4)):
            kind = rng.choice(kinds)
            selector = {"nodeSelector": {"kind": kind.only}} if kind.only else {}
            memory = f"{kind.memory}Gi" if kind.memory else None
            pods.append(a_pod(f"{name}-{index}", cpu=kind.cpu, memory=memory, **selector))
            small.kind_of[f"uid-{name}-{index}"] = kind
        bound = rng.choice((0, 0, 0, 1))
        minimum = rng.randint(1, len(pods) + bound)
        domains = (rng.choice(("r1", "z1")),) if bound and topology and rng.random() < 0.5 else ()
        return small.scene.gang(name, *pods, min_count=minimum, bound=bound, topology=topology, domains=domains)
    children = [_tree(rng, small, kinds, depth - 1, serial) for _ in range(rng.randint(1, 3))]
    return small.scene.composite(name, *children, min_groups=rng.randint(1, len(children)), topology=topology)
