"""Does a set of victims suffice? Asked many times for similar sets, so nothing is worked out twice.

What was planned once is remembered; where one more eviction never hurts, a set inside a failed one fails and a set
around a sufficient one suffices. A count that falls short spares the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from muster.scheduler.arrays import Ints
from muster.scheduler.planning.demand import Demand, GroupKey, Leaf
from muster.scheduler.preemption.countable import Counted
from muster.scheduler.preemption.counting import Ledger
from muster.scheduler.preemption.units import Unit
from muster.scheduler.preemption.whatif import WhatIf

MOST_REMEMBERED = 256

Keys = frozenset[GroupKey]


class Judge:
    """Answers for one demand."""

    def __init__(
        self, what_if: WhatIf, demand: Demand, ledger: Ledger | None, shapes: Mapping[int, Counted], *, monotone: bool
    ) -> None:
        self._what_if = what_if
        self._demand = demand
        self._ledger = ledger
        self._shapes = shapes
        self._monotone = monotone
        self._failed: list[Keys] = []
        self._sufficed: list[Keys] = []
        self._number = {unit.key: at for at, unit in enumerate(ledger.units)} if ledger is not None else {}

    def __call__(self, victims: Sequence[Unit]) -> bool:
        keys = frozenset(unit.key for unit in victims)
        if self._monotone:
            if any(keys <= known for known in self._failed):
                return False
            if any(keys >= known for known in self._sufficed):
                return True
        elif keys in self._failed or keys in self._sufficed:
            return keys in self._sufficed
        answer = self._could(victims) and self._what_if.suffices(self._demand, victims)
        known = self._sufficed if answer else self._failed
        known.append(keys)
        del known[:-MOST_REMEMBERED]
        return answer

    # --- a bound by counting -----------------------------------------------------------------------

    def _could(self, victims: Sequence[Unit]) -> bool:
        ledger = self._ledger
        if ledger is None:
            return True
        free = ledger.without(self._number[unit.key] for unit in victims)
        seats = {number: ledger.seats(shape, free) for number, shape in self._shapes.items()}
        if len(seats) == 1 and int(next(iter(seats.values())).sum()) < _required(self._demand):
            return False
        return self._possible(self._demand, seats)

    def _possible(self, demand: Demand, seats: Mapping[int, Ints]) -> bool:
        """Could the group have its minimum if it had the nodes of its domain for itself?"""
        if not isinstance(demand, Leaf):
            return sum(self._possible(child, seats) for child in demand.children) >= demand.minimum
        if not demand.need:
            return True
        wanted: dict[int, int] = {}
        for member in demand.members:
            wanted[member.shape.id] = wanted.get(member.shape.id, 0) + 1
        if demand.topology is None:
            return sum(min(count, int(seats[shape].sum())) for shape, count in wanted.items()) >= demand.need
        values = self._what_if.cluster.labels(demand.topology)
        sums = sum(np.minimum(np.bincount(values, seats[shape])[1:], count) for shape, count in wanted.items())
        return bool(np.any(sums >= demand.need))


def _required(demand: Demand) -> int:
    """The fewest members that must sit for the minimum to hold at every level."""
    if isinstance(demand, Leaf):
        return demand.need
    return sum(sorted(map(_required, demand.children))[: demand.minimum])
