"""Does a set of victims suffice? Asked many times for similar sets, so nothing is worked out twice.

What was planned once is remembered; where one more eviction never hurts, a set inside a failed one fails and a set
around a sufficient one suffices. A count that falls short spares the plan.

The cheapest set of few units, proven: no cheaper set suffices.

Sets are looked at in order of price. One that fails is grown to the largest that still fails; everyone
outside of that is a list of which at least one must go, and whole families of sets need no look any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.preemption.cost import EvictionCost
from muster.scheduler.preemption.supply import CountableShape, NodeSupply
from muster.scheduler.preemption.victims import Victim
from muster.scheduler.preemption.what_if import EvictionTrial

MOST_REMEMBERED = 256


Keys = frozenset[EntityKey]


class SufficiencyCache:
    """Answers for one demand."""

    def __init__(
        self,
        what_if: EvictionTrial,
        request: GroupRequest,
        ledger: NodeSupply | None,
        shapes: Mapping[int, CountableShape],
        *,
        monotone: bool,
    ) -> None:
        self._what_if = what_if
        self._demand = request
        self._ledger = ledger
        self._shapes = shapes
        self._monotone = monotone
        self._failed: list[Keys] = []
        self._sufficed: list[Keys] = []
        self._number = {unit.key: at for at, unit in enumerate(ledger.victims)} if ledger is not None else {}

    def __call__(self, victims: Sequence[Victim]) -> bool:
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

    def _could(self, victims: Sequence[Victim]) -> bool:
        ledger = self._ledger
        if ledger is None:
            return True
        free = ledger.without(self._number[unit.key] for unit in victims)
        seats = {number: ledger.seats(shape, free) for number, shape in self._shapes.items()}
        if len(seats) == 1 and int(next(iter(seats.values())).sum()) < _required(self._demand):
            return False
        return self._possible(self._demand, seats)

    def _possible(self, request: GroupRequest, seats: Mapping[int, Ints]) -> bool:
        """Could the group have its minimum if it had the nodes of its domain for itself?"""
        if not isinstance(request, PodGroupRequest):
            return sum(self._possible(child, seats) for child in request.children) >= request.minimum
        if not request.need:
            return True
        wanted: dict[int, int] = {}
        for member in request.members:
            wanted[member.shape.id] = wanted.get(member.shape.id, 0) + 1
        if not request.topology:
            return sum(min(count, int(seats[shape].sum())) for shape, count in wanted.items()) >= request.need
        values = self._what_if.cluster.labels(request.topology)
        sums = sum(np.minimum(np.bincount(values, seats[shape])[1:], count) for shape, count in wanted.items())
        return bool(np.any(sums >= request.need))


def _required(request: GroupRequest) -> int:
    """The fewest members that must sit for the minimum to hold at every level."""
    if isinstance(request, PodGroupRequest):
        return request.need
    return sum(sorted(map(_required, request.children))[: request.minimum])


MOST_LOOKS = 500  # plans that a proof may cost where growing a failed set is not sound


Suffices = Callable[[list[Victim]], bool]


def cheapest_sufficient(
    units: Sequence[Victim], toll: EvictionCost, suffices: Suffices, *, below: Sequence[Victim] | None, monotone: bool
) -> list[Victim] | None:
    """The cheapest set that suffices, if it is cheaper than `below`; `monotone`: a larger set suffices as well."""
    everyone = (1 << len(units)) - 1
    limit = toll.cost(below) if below is not None else None
    priced = [(toll.cost(chosen), mask) for mask in range(everyone + 1) for chosen in [_chosen(units, mask)]]
    one_must_go: list[int] = []
    looks = 0
    for cost, mask in sorted(priced):
        if limit is not None and cost >= limit:
            return None
        if any(not mask & some for some in one_must_go):
            continue
        if suffices(_chosen(units, mask)):
            return _chosen(units, mask)
        looks += 1
        if monotone:
            one_must_go.append(everyone & ~_grown(units, mask, suffices))
        elif looks > MOST_LOOKS:
            return None
    return None


def _grown(units: Sequence[Victim], mask: int, suffices: Suffices) -> int:
    """The failed set with everyone added who does not help it."""
    for bit in range(len(units)):
        more = mask | 1 << bit
        if more != mask and not suffices(_chosen(units, more)):
            mask = more
    return mask


def _chosen(units: Sequence[Victim], mask: int) -> list[Victim]:
    return [unit for bit, unit in enumerate(units) if mask >> bit & 1]
