"""What an eviction costs, as a tuple that compares in the order of harm.

Budget violations, the highest priority among the victims, gangs that fall below their minimum, units,
pods, work lost. Units that are on their way out already cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from muster.api import selectors, types
from muster.scheduler.planning.demand import GroupKey
from muster.scheduler.preemption.units import Unit

Cost = tuple[int, int, int, int, int, float]
PodOf = Callable[[str], types.Pod]

NOTHING_EVICTED = -(1 << 40)  # a priority below every priority


class Toll:
    """Prices sets of units against budgets and quorums."""

    def __init__(
        self,
        units: Sequence[Unit],
        budgets: Iterable[types.PodDisruptionBudget],
        quorums: Mapping[GroupKey, tuple[int, int]],
        pod_of: PodOf,
    ) -> None:
        self._budgets = [budget for budget in budgets if budget.spec.selector is not None]
        self._quorums = quorums
        self._pod_of = pod_of
        self._hits: dict[GroupKey, dict[int, int]] = {}
        if self._budgets:
            for unit in units:
                self._hits[unit.key] = self._budgets_hit(unit)
        self.allowed = [max(0, budget.status.disruptions_allowed) for budget in self._budgets]

    def _budgets_hit(self, unit: Unit) -> dict[int, int]:
        hits: dict[int, int] = {}
        for uid in unit.uids:
            pod = self._pod_of(uid)
            for number, budget in enumerate(self._budgets):
                if _protects(budget, pod):
                    hits[number] = hits.get(number, 0) + 1
        return hits

    def hits(self, unit: Unit) -> Mapping[int, int]:
        """Which budgets a unit draws on, and how often."""
        return self._hits.get(unit.key, {})

    def violations(self, chosen: Iterable[Unit]) -> int:
        """Pods evicted beyond what their budgets allow."""
        drawn: Counter[int] = Counter()
        for unit in chosen:
            if not unit.marked:
                drawn.update(self.hits(unit))
        return sum(max(0, count - self.allowed[number]) for number, count in drawn.items())

    def broken(self, chosen: Iterable[Unit]) -> int:
        """Gangs that have their minimum now and would fall below it."""
        lost: Counter[GroupKey] = Counter()
        for unit in chosen:
            if not unit.marked:
                lost.update(dict(unit.losses))
        count = 0
        for key, members in lost.items():
            bound, minimum = self._quorums[key]
            count += bound >= minimum > bound - members
        return count

    def cost(self, chosen: Sequence[Unit]) -> Cost:
        """The price of evicting a set of units together."""
        paid = [unit for unit in chosen if not unit.marked]
        return (
            self.violations(paid),
            max((unit.priority for unit in paid), default=NOTHING_EVICTED),
            self.broken(paid),
            len(paid),
            sum(len(unit.uids) for unit in paid),
            -sum(seconds(start) for unit in paid for start in unit.starts),
        )

    def alone(self, unit: Unit) -> tuple[int, int, int, int, float, GroupKey]:
        """How dear one unit is by itself; the cheapest goes first."""
        if unit.marked:
            return (0, NOTHING_EVICTED, 0, 0, 0.0, unit.key)
        latest = -max((seconds(start) for start in unit.starts), default=0.0)
        return (self.violations([unit]), unit.priority, self.broken([unit]), len(unit.uids), latest, unit.key)


def _protects(budget: types.PodDisruptionBudget, pod: types.Pod) -> bool:
    if budget.metadata.namespace != pod.metadata.namespace:
        return False
    if pod.metadata.name in (budget.status.disrupted_pods or {}):
        return False
    return selectors.matches(budget.spec.selector, pod.metadata.labels or {})


def seconds(time: str) -> float:
    """An RFC 3339 time as seconds; a pod without one counts as old."""
    try:
        return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
