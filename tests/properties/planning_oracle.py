"""Random small worlds for the planner, and a brute-force oracle that knows nothing of it.

The oracle walks over every choice of children, domains, members and nodes, one pod after the other,
on plain tuples. It is slow and has no idea of classes, patterns or bounds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, leaves
from tests.scheduler.planning.scene import KEYS, RACK, ZONE, Scene, a_node, a_pod

GIB = 1024**3
Free = tuple[tuple[int, int], ...]


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
        labels.append({**{KEYS[key]: value for key, value in at.items()}, "kind": kind})
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
            extra = {"memory": f"{kind.memory}Gi"} if kind.memory else None
            pods.append(a_pod(f"{name}-{index}", kind.cpu, extra, **selector))
            small.kind_of[f"uid-{name}-{index}"] = kind
        bound = rng.choice((0, 0, 0, 1))
        minimum = rng.randint(1, len(pods) + bound)
        domains = (rng.choice(("r1", "z1")),) if bound and topology and rng.random() < 0.5 else ()
        return small.scene.gang(name, *pods, min_count=minimum, bound=bound, topology=topology, domains=domains)
    children = [_tree(rng, small, kinds, depth - 1, serial) for _ in range(rng.randint(1, 3))]
    return small.scene.composite(name, *children, min_groups=rng.randint(1, len(children)), topology=topology)


# --- the oracle --------------------------------------------------------------------------------------


def holds(demand: GroupRequest) -> bool:
    if isinstance(demand, PodGroupRequest):
        return demand.bound >= demand.minimum
    return sum(holds(child) for child in demand.children) >= demand.minimum


def placeable(small: Small) -> bool:
    """Whether any set of seats makes the root hold with at least one new pod."""
    everywhere = tuple(range(len(small.free)))
    if holds(small.demand):
        return any(True for _ in _additions(small, small.demand, everywhere))
    return any(True for _ in _ways(small, small.demand, everywhere, small.free))


def _additions(small: Small, demand: GroupRequest, nodes: tuple[int, ...]) -> Iterator[bool]:
    """Single things that can be added to a group that holds."""
    for scope in _scopes(small, demand, nodes):
        if isinstance(demand, PodGroupRequest):
            for member in demand.members:
                if any(True for _ in _seat(small, (member.uid,), scope, small.free)):
                    yield True
            continue
        for child in demand.children:
            if holds(child):
                yield from _additions(small, child, scope)
            elif any(True for _ in _ways(small, child, scope, small.free)):
                yield True


def _scopes(small: Small, demand: GroupRequest, nodes: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not demand.topology:
        return [nodes]
    values = sorted({small.labels[n][demand.topology] for n in nodes if demand.topology in small.labels[n]})
    if demand.domains:
        values = [value for value in values if value in demand.domains and len(set(demand.domains)) == 1]
    return [tuple(n for n in nodes if small.labels[n].get(demand.topology) == value) for value in values]


def _ways(small: Small, demand: GroupRequest, nodes: tuple[int, ...], free: Free) -> Iterator[Free]:
    """What may be left free after a group that does not hold yet has been made to hold."""
    for scope in _scopes(small, demand, nodes):
        if isinstance(demand, PodGroupRequest):
            tried: set[tuple[tuple[int, int, str], ...]] = set()
            for chosen in combinations(demand.members, demand.minimum - demand.bound):
                kinds = [small.kind_of[member.uid] for member in chosen]
                face = tuple(sorted((kind.cpu, kind.memory, kind.only or "") for kind in kinds))
                if face not in tried:
                    tried.add(face)
                    yield from _seat(small, tuple(member.uid for member in chosen), scope, free)
            continue
        missing = [child for child in demand.children if not holds(child)]
        count = demand.minimum - (len(demand.children) - len(missing))
        for chosen_children in combinations(missing, count):
            yield from _one_after_the_other(small, chosen_children, scope, free)


def _one_after_the_other(
    small: Small, children: Sequence[GroupRequest], nodes: tuple[int, ...], free: Free
) -> Iterator[Free]:
    if not children:
        yield free
        return
    seen: set[Free] = set()
    for left in _ways(small, children[0], nodes, free):
        if left not in seen:
            seen.add(left)
            yield from _one_after_the_other(small, children[1:], nodes, left)


def _seat(small: Small, uids: tuple[str, ...], nodes: tuple[int, ...], free: Free) -> Iterator[Free]:
    if not uids:
        yield free
        return
    kind = small.kind_of[uids[0]]
    for node in nodes:
        cpu, memory = free[node]
        if kind.cpu > cpu or kind.memory > memory or (kind.only and small.labels[node]["kind"] != kind.only):
            continue
        left = (*free[:node], (cpu - kind.cpu, memory - kind.memory), *free[node + 1 :])
        yield from _seat(small, uids[1:], nodes, left)
