"""A brute-force oracle that knows nothing of the planner.

The oracle walks over every choice of children, domains, members and nodes, one pod after the other,
on plain tuples. It is slow and has no idea of classes, patterns or bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from tests.build.planning_cases import Free, Small


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
