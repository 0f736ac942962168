"""An oracle for preemption that knows nothing of the scheduler: it tries every set of units and every placement."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from tests.build.preemption_cases import Case, Group


def cost(case: Case, units: list[frozenset[str]]) -> tuple[float, ...]:
    gone = frozenset().union(*units)
    victims = [pod for pod in case.pods if pod.name in gone]
    drawn = [sum(pod.budget == number for pod in victims) for number in range(len(case.budgets))]
    violations = sum(max(0, count - allowed) for count, allowed in zip(drawn, case.budgets, strict=True))
    top = max((pod.priority for pod in victims), default=-(1 << 40))
    broken = sum(holds(case, g, frozenset()) and not holds(case, g, gone) for g in case.groups)
    return (violations, top, broken, len(units), len(victims), -sum(pod.start for pod in victims))


def holds(case: Case, group: Group, gone: frozenset[str]) -> bool:
    if group.composite:
        return sum(holds(case, g, gone) for g in case.groups if g.parent == group.name) >= group.minimum
    return sum(pod.leaf == group.name and pod.name not in gone for pod in case.pods) >= group.minimum


def fits(case: Case, gone: frozenset[str]) -> bool:
    free = [cpu for cpu, _ in case.nodes]
    for pod in case.pods:
        if pod.name not in gone:
            free[pod.node] -= pod.cpu
    racks = sorted({rack for _, rack in case.nodes})
    scopes = [{rack} for rack in racks] if case.tree_rack else [set(racks)]
    return any(_seat(case, free, scope, list(case.leaves)) for scope in scopes)


def _seat(case: Case, free: list[int], scope: set[str], leaves: list[tuple[int, int, bool]]) -> bool:
    if not leaves:
        return True
    count, cpu, rack = leaves[0]
    for inside in [{one} for one in sorted(scope)] if rack else [scope]:
        nodes = [i for i, (_, name) in enumerate(case.nodes) if name in inside]
        if any(_seat(case, left, scope, leaves[1:]) for left in _ways(free, nodes, count, cpu)):
            return True
    return False


def best(case: Case) -> tuple[float, ...] | None:
    """The price of the cheapest set of units that makes room, or None if no set does."""
    units = case.units()
    subsets = [list(some) for size in range(len(units) + 1) for some in combinations(units, size)]
    for price, number in sorted((cost(case, some), number) for number, some in enumerate(subsets)):
        if fits(case, frozenset().union(*subsets[number])):
            return price
    return None


def _ways(free: list[int], nodes: list[int], count: int, cpu: int) -> Any:
    """All ways to put so many alike pods on nodes, as what is then left."""
    if count == 0:
        yield free
        return
    if not nodes:
        return
    first, rest = nodes[0], nodes[1:]
    for here in range(min(count, max(0, free[first]) // cpu), -1, -1):
        left = list(free)
        left[first] -= here * cpu
        yield from _ways(left, rest, count - here, cpu)
