"""What an eviction costs, as a tuple that compares in the order of harm.

Budget violations, the highest priority among the victims, gangs that fall below their minimum, units,
pods, work lost. Units that are on their way out already cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from muster.api import selectors, types
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.victims import Quorum, Victim

Cost = tuple[int, int, int, int, int, float]


SingleCost = tuple[int, int, int, int, float]  # violations, priority, gangs broken, pods, work lost


PodOf = Callable[[str], types.Pod]


NOTHING_EVICTED = -(1 << 40)  # a priority below every priority


class EvictionCost:
    """Prices sets of units against budgets and quorums."""

    def __init__(
        self,
        units: Sequence[Victim],
        budgets: Iterable[types.PodDisruptionBudget],
        quorums: Mapping[EntityKey, Quorum],
        pod_of: PodOf,
    ) -> None:
        self._budgets = [budget for budget in budgets if budget.spec.selector is not None]
        self._quorums = quorums
        self._pod_of = pod_of
        self._times: dict[str, float] = {}
        self._hits: dict[EntityKey, dict[int, int]] = {}
        if self._budgets:
            for unit in units:
                self._hits[unit.key] = self._budgets_hit(unit)
        self.allowed = [max(0, budget.status.disruptions_allowed) for budget in self._budgets]

    def _budgets_hit(self, unit: Victim) -> dict[int, int]:
        hits: dict[int, int] = {}
        for uid in unit.uids:
            pod = self._pod_of(uid)
            for number, budget in enumerate(self._budgets):
                if _protects(budget, pod):
                    hits[number] = hits.get(number, 0) + 1
        return hits

    def hits(self, unit: Victim) -> Mapping[int, int]:
        """Which budgets a unit draws on, and how often."""
        return self._hits.get(unit.key, {})

    def violations(self, chosen: Iterable[Victim]) -> int:
        """Pods evicted beyond what their budgets allow."""
        if not self.allowed:
            return 0
        drawn: Counter[int] = Counter()
        for unit in chosen:
            if not unit.marked:
                drawn.update(self.hits(unit))
        return sum(max(0, count - self.allowed[number]) for number, count in drawn.items())

    def broken(self, chosen: Iterable[Victim]) -> int:
        """Gangs, at every level, that have their minimum now and would fall below it."""
        lost: Counter[EntityKey] = Counter()
        for unit in chosen:
            if not unit.marked:
                for key, count in unit.losses:
                    lost[key] += count
        count = 0
        while lost:
            above: Counter[EntityKey] = Counter()
            for key, members in lost.items():
                quorum = self._quorums[key]
                if quorum.bound >= quorum.minimum > quorum.bound - members:
                    count += quorum.gang
                    if quorum.parent is not None:
                        above[quorum.parent] += 1
            lost = above
        return count

    def breaks(self, key: EntityKey) -> bool:
        """Would the loss of one member break this gang?"""
        quorum = self._quorums[key]
        return quorum.gang and quorum.bound == quorum.minimum

    def slack(self, key: EntityKey) -> int:
        """How many members a group can lose before it breaks; one that is broken or no gang has nothing to lose."""
        quorum = self._quorums[key]
        return quorum.bound - quorum.minimum if quorum.gang and quorum.bound >= quorum.minimum else -1

    def cost(self, chosen: Sequence[Victim]) -> Cost:
        """The price of evicting a set of units together."""
        paid = [unit for unit in chosen if not unit.marked]
        return (
            self.violations(paid),
            max((unit.priority for unit in paid), default=NOTHING_EVICTED),
            self.broken(paid),
            len(paid),
            sum(len(unit.uids) for unit in paid),
            -sum(self.seconds(start) for unit in paid for start in unit.starts),
        )

    def alone(self, unit: Victim) -> SingleCost:
        """How dear one unit is by itself; the cheapest goes first. Ties are left in the order of keys."""
        if unit.marked:
            return (0, NOTHING_EVICTED, 0, 0, 0.0)
        if len(unit.uids) == 1:
            broken = sum(self.breaks(key) for key, _ in unit.losses)
            return (self._over(unit), unit.priority, broken, 1, -self.seconds(unit.starts[0]))
        latest = -max((self.seconds(start) for start in unit.starts), default=0.0)
        return (self._over(unit), unit.priority, self.broken((unit,)), len(unit.uids), latest)

    def _over(self, unit: Victim) -> int:
        hits = self._hits.get(unit.key)
        return sum(max(0, count - self.allowed[number]) for number, count in hits.items()) if hits else 0

    def seconds(self, time: str) -> float:
        known = self._times.get(time)
        if known is None:
            known = self._times[time] = seconds(time)
        return known


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
