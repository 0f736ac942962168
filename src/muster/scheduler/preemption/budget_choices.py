"""Which victims may leave together without violating a PodDisruptionBudget.

Victims that no budget protects are in every choice. Of the others, a choice is a largest set whose evictions all
budgets allow. There may be very many: they are tried with the cheapest victims first, and only so many of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from muster.scheduler.preemption.cost import EvictionCost
from muster.scheduler.preemption.victim_table import Victim

MOST_CHOICES = 64


MOST_STEPS = 4096  # of the enumeration: decisions to take a victim or to leave it


def choices_within_budgets(victims: Sequence[Victim], cost: EvictionCost) -> Iterator[list[Victim]]:
    """Sets of victims that violate nothing and to which none can be added; `victims` are sorted, cheapest first."""
    protected = [victim for victim in victims if not victim.marked and cost.disruptions(victim)]
    others = {victim.key for victim in victims} - {victim.key for victim in protected}
    for number, taken in enumerate(_Choices(protected, cost)):
        if number == MOST_CHOICES:
            return
        keys = others | {victim.key for victim in taken}
        yield [victim for victim in victims if victim.key in keys]


class _Choices:
    """The largest sets of protected victims within the budgets, in the order of a depth-first search."""

    def __init__(self, protected: list[Victim], cost: EvictionCost) -> None:
        self.protected = protected
        self.cost = cost
        self.disrupted: Counter[int] = Counter()

    def __iter__(self) -> Iterator[list[Victim]]:
        taken: list[int] = []
        at, steps = 0, 0
        while steps < MOST_STEPS:
            for number in range(at, len(self.protected)):
                if self._is_allowed(number):
                    taken.append(number)
                    self.disrupted.update(self.cost.disruptions(self.protected[number]))
            steps += len(self.protected) - at + 1
            if self._is_largest(set(taken)):
                yield [self.protected[number] for number in taken]
            if not taken:
                return
            last = taken.pop()  # the same without it
            self.disrupted.subtract(self.cost.disruptions(self.protected[last]))
            at = last + 1

    def _is_allowed(self, number: int) -> bool:
        """Whether one more victim violates nothing."""
        allowed, disrupted = self.cost.allowed, self.disrupted
        more = self.cost.disruptions(self.protected[number])
        return all(disrupted[budget] + pods <= allowed[budget] for budget, pods in more.items())

    def _is_largest(self, taken: set[int]) -> bool:
        return not any(number not in taken and self._is_allowed(number) for number in range(len(self.protected)))
