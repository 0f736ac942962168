"""The cost of evicting victims, as a tuple that compares in the order of harm.

PodDisruptionBudget violations, the highest priority among the victims, gangs that fall below their minimum, victims,
pods, work lost. Victims that have the condition DisruptionTarget already cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from muster.api import selectors, types
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.run_times import seconds_of
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.victim_table import Losses, Victim, VictimTable
from muster.scheduler.preemption.victims import Quorum

Cost = tuple[int, int, int, int, int, float]  # violations, priority, gangs broken, victims, pods, work lost


SingleCost = tuple[int, int, int, int, float]  # violations, priority, gangs broken, pods, work lost


CostColumns = tuple[Ints, Ints, Ints, Ints, npt.NDArray[np.float64]]  # the same for all victims


PodOf = Callable[[str], types.Pod]


NOTHING_EVICTED = -(1 << 40)  # a priority below every priority


class EvictionCost:
    """The cost of sets of victims under some budgets and quorums."""

    def __init__(
        self,
        victims: Sequence[Victim],
        budgets: Iterable[types.PodDisruptionBudget],
        quorums: Mapping[EntityKey, Quorum],
        pod_of: PodOf,
    ) -> None:
        self._budgets = [budget for budget in budgets if budget.spec.selector is not None]
        self._quorums = quorums
        self._pod_of = pod_of
        self._disruptions: dict[EntityKey, dict[int, int]] = {}
        if self._budgets:
            for victim in victims:
                self._disruptions[victim.key] = self._count_disruptions(victim)
        self.allowed = [max(0, budget.status.disruptions_allowed) for budget in self._budgets]

    def _count_disruptions(self, victim: Victim) -> dict[int, int]:
        counts: dict[int, int] = {}
        for uid in victim.uids:
            pod = self._pod_of(uid)
            for number, budget in enumerate(self._budgets):
                if _protects(budget, pod):
                    counts[number] = counts.get(number, 0) + 1
        return counts

    # --- sets of victims ---------------------------------------------------------------------------

    def cost(self, victims: Sequence[Victim]) -> Cost:
        """The cost of evicting these victims together."""
        new = [victim for victim in victims if not victim.marked]
        return (
            self.violations(new),
            max((victim.priority for victim in new), default=NOTHING_EVICTED),
            self.broken_gangs(new),
            len(new),
            sum(len(victim.uids) for victim in new),
            -sum(seconds(start) for victim in new for start in victim.starts),
        )

    def cost_of(self, victims: VictimTable, chosen: Iterable[int]) -> Cost:
        """`cost` of some victims of a table, by number."""
        ordered = sorted(chosen)
        if self.allowed:
            return self.cost([victims[number] for number in ordered])
        numbers = np.array(ordered, dtype=np.int64)
        new = numbers[~victims.marked[numbers]]
        lost: dict[EntityKey, int] = {}
        for number in new.tolist():
            for key, count in victims.losses(number):
                lost[key] = lost.get(key, 0) + count
        return (
            0,
            int(victims.priority[new].max(initial=NOTHING_EVICTED)),
            self._broken_by(lost.items()),
            len(new),
            int(victims.sizes[new].sum()),
            -float(victims.start_sum[new].sum()),
        )

    def violations(self, victims: Iterable[Victim]) -> int:
        """Pods evicted beyond what their budgets allow."""
        if not self.allowed:
            return 0
        disrupted: Counter[int] = Counter()
        for victim in victims:
            if not victim.marked:
                disrupted.update(self.disruptions(victim))
        return sum(max(0, count - self.allowed[number]) for number, count in disrupted.items())

    def broken_gangs(self, victims: Iterable[Victim]) -> int:
        """Gangs, at every level, that have their minimum now and would fall below it."""
        lost: dict[EntityKey, int] = {}
        for victim in victims:
            if not victim.marked:
                for key, count in victim.losses:
                    lost[key] = lost.get(key, 0) + count
        return self._broken_by(lost.items())

    def _broken_by(self, losses: Iterable[tuple[EntityKey, int]]) -> int:
        """The gangs that break if PodGroups, each named once, lose so many members."""
        broken = 0
        while losses:
            above: Counter[EntityKey] = Counter()
            for key, members in losses:
                quorum = self._quorums[key]
                if quorum.bound >= quorum.minimum > quorum.bound - members:
                    broken += quorum.gang
                    if quorum.parent is not None:
                        above[quorum.parent] += 1
            losses = above.items()
        return broken

    # --- one victim --------------------------------------------------------------------------------

    def single(self, victim: Victim) -> SingleCost:
        """The cost of one victim by itself; equal costs are left in the order of keys."""
        if victim.marked:
            return (0, NOTHING_EVICTED, 0, 0, 0.0)
        latest = -max(map(seconds, victim.starts), default=0.0)
        broken = self._broken_alone(victim.losses, len(victim.uids))
        return (self._violations(victim), victim.priority, broken, len(victim.uids), latest)

    def _broken_alone(self, losses: Losses, pods: int) -> int:
        """The gangs that a victim breaks by itself; of a single pod only its own, as long as nobody else leaves."""
        return sum(self._breaks(key) for key, _ in losses) if pods == 1 else self._broken_by(losses)

    def single_columns(self, victims: VictimTable) -> CostColumns:
        """`single` for all victims."""
        violations = np.zeros(len(victims), dtype=np.int64)
        if self.allowed:
            violations[:] = [self._violations(victim) for victim in victims]
        breaks = [self._breaks(group.key) for group in victims.groups]
        broken = np.array([*breaks, False, False], dtype=np.int64)[victims.group_of]
        pods = np.ones(len(victims), dtype=np.int64)
        for number, subtree in victims.subtrees():
            pods[number] = len(subtree.members)
            broken[number] = self._broken_alone(subtree.losses(), len(subtree.members))
        columns = (violations, victims.priority.copy(), broken, pods, -victims.started)
        for column, value in zip(columns, (0, NOTHING_EVICTED, 0, 0, 0.0), strict=True):
            column[victims.marked] = value
        return columns

    def cheapest_first(self, victims: VictimTable) -> tuple[VictimTable, SingleCosts]:
        """The victims sorted by what they cost by themselves, equal ones by key; and these costs."""
        columns = self.single_columns(victims)
        order = np.lexsort(columns[::-1])
        differs = np.zeros(len(victims) + 1, dtype=np.bool_)
        differs[[0, -1]] = True
        for column in columns:
            differs[1:-1] |= column[order[1:]] != column[order[:-1]]
        edges = np.flatnonzero(differs)
        for at in np.flatnonzero(np.diff(edges) > 1).tolist():
            equal = slice(edges[at], edges[at + 1])
            order[equal] = victims.by_key(order[equal])
        return victims.reordered(order), SingleCosts(columns, order)

    def disruptions(self, victim: Victim) -> Mapping[int, int]:
        """How many pods of a victim count against which budget."""
        return self._disruptions.get(victim.key, {})

    def _violations(self, victim: Victim) -> int:
        counts = self._disruptions.get(victim.key)
        return sum(max(0, count - self.allowed[number]) for number, count in counts.items()) if counts else 0

    def _breaks(self, key: EntityKey) -> bool:
        """Whether the loss of one member breaks a gang."""
        quorum = self._quorums[key]
        return quorum.gang and quorum.bound == quorum.minimum

    def slack(self, key: EntityKey) -> int:
        """How many members a gang can lose before it breaks; -1 for one that is broken already or no gang."""
        quorum = self._quorums[key]
        return quorum.bound - quorum.minimum if quorum.gang and quorum.bound >= quorum.minimum else -1


class SingleCosts:
    """What each victim costs by itself; a tuple is made when it is asked for."""

    def __init__(self, columns: CostColumns, order: Ints) -> None:
        self._columns: list[list[Any]] = [column[order].tolist() for column in columns]

    def __getitem__(self, number: int) -> SingleCost:
        violations, priority, broken, pods, lost = self._columns
        return (violations[number], priority[number], broken[number], pods[number], lost[number])


def _protects(budget: types.PodDisruptionBudget, pod: types.Pod) -> bool:
    if budget.metadata.namespace != pod.metadata.namespace:
        return False
    if pod.metadata.name in (budget.status.disrupted_pods or {}):
        return False
    return selectors.matches(budget.spec.selector, pod.metadata.labels or {})


def seconds(time: str) -> float:
    """An RFC 3339 time as seconds; 0 for a pod without one."""
    return seconds_of(time) or 0.0
