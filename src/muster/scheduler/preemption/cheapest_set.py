"""The cheapest sufficient set of victims, and the cache of which sets suffice.

Whether a set suffices is asked many times for similar sets. What was planned once is remembered; where one more
eviction never hurts, a subset of a set that failed fails and a superset of one that suffices does too. A count that
falls short spares the plan.

With few victims the cheapest set is proven by implicit hitting sets: sets are tried in the order of cost; one that
fails is extended to the largest that still fails, and at least one victim outside of that must be in any sufficient
set, which rules out whole families of sets untried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.preemption.cost import EvictionCost
from muster.scheduler.preemption.supply import CountableShape, NodeSupply
from muster.scheduler.preemption.victim_table import Victim
from muster.scheduler.preemption.what_if import EvictionTrial

MOST_REMEMBERED = 256


MOST_PLANS = 500  # that a proof may cost where a failed set cannot be extended


Suffices = Callable[[list[Victim]], bool]


# --- the cheapest set ------------------------------------------------------------------------------


def cheapest_sufficient(
    victims: Sequence[Victim],
    cost: EvictionCost,
    suffices: Suffices,
    *,
    below: Sequence[Victim] | None,
    monotone: bool,
) -> list[Victim] | None:
    """The cheapest set that suffices, if it is cheaper than `below`; `monotone`: a larger set suffices as well.

    Sets are bit masks over the victims, of which there must be few.
    """
    everyone = (1 << len(victims)) - 1
    limit = cost.cost(below) if below is not None else None
    by_cost = sorted((cost.cost(_subset(victims, mask)), mask) for mask in range(everyone + 1))
    must_hit: list[int] = []
    plans = 0
    for value, mask in by_cost:
        if limit is not None and value >= limit:
            return None
        if any(not mask & some for some in must_hit):
            continue
        if suffices(_subset(victims, mask)):
            return _subset(victims, mask)
        plans += 1
        if monotone:
            must_hit.append(everyone & ~_extended(victims, mask, suffices))
        elif plans > MOST_PLANS:
            return None
    return None


def _extended(victims: Sequence[Victim], mask: int, suffices: Suffices) -> int:
    """A failed set with every victim added with which it still fails."""
    for bit in range(len(victims)):
        more = mask | 1 << bit
        if more != mask and not suffices(_subset(victims, more)):
            mask = more
    return mask


def _subset(victims: Sequence[Victim], mask: int) -> list[Victim]:
    return [victim for bit, victim in enumerate(victims) if mask >> bit & 1]


# --- which sets suffice ----------------------------------------------------------------------------


class SufficiencyCache:
    """Whether evicting a set of victims suffices for one request."""

    def __init__(
        self,
        what_if: EvictionTrial,
        request: GroupRequest,
        supply: NodeSupply | None,
        shapes: Mapping[int, CountableShape],
        *,
        monotone: bool,
    ) -> None:
        self._what_if = what_if
        self._request = request
        self._supply = supply
        self._shapes = shapes
        self._monotone = monotone
        self._failed: list[frozenset[EntityKey]] = []
        self._sufficed: list[frozenset[EntityKey]] = []
        self._number = {victim.key: at for at, victim in enumerate(supply.victims)} if supply is not None else {}

    def __call__(self, victims: Sequence[Victim]) -> bool:
        keys = frozenset(victim.key for victim in victims)
        if self._monotone:
            if any(keys <= known for known in self._failed):
                return False
            if any(keys >= known for known in self._sufficed):
                return True
        elif keys in self._failed or keys in self._sufficed:
            return keys in self._sufficed
        answer = self._may_suffice(victims) and self._what_if.suffices(self._request, victims)
        known = self._sufficed if answer else self._failed
        known.append(keys)
        del known[:-MOST_REMEMBERED]
        return answer

    def _may_suffice(self, victims: Sequence[Victim]) -> bool:
        """A bound by counting; True where the shapes cannot be counted."""
        supply = self._supply
        if supply is None:
            return True
        free = supply.free_without(self._number[victim.key] for victim in victims)
        seats = {number: supply.seats(shape, free) for number, shape in self._shapes.items()}
        if len(seats) == 1 and int(next(iter(seats.values())).sum()) < _fewest_pods(self._request):
            return False
        return self._may_hold(self._request, seats)

    def _may_hold(self, request: GroupRequest, seats: Mapping[int, Ints]) -> bool:
        """Whether the group could have its minimum if it had the nodes of its domain for itself."""
        if not isinstance(request, PodGroupRequest):
            return sum(self._may_hold(child, seats) for child in request.children) >= request.minimum
        if not request.need:
            return True
        counts: dict[int, int] = {}
        for member in request.members:
            counts[member.shape.id] = counts.get(member.shape.id, 0) + 1
        if not request.topology:
            return sum(min(count, int(seats[shape].sum())) for shape, count in counts.items()) >= request.need
        values = self._what_if.cluster.labels(request.topology)
        sums = sum(np.minimum(np.bincount(values, seats[shape])[1:], count) for shape, count in counts.items())
        return bool(np.any(sums >= request.need))


def _fewest_pods(request: GroupRequest) -> int:
    """The fewest pods that must be placed for the minimum to hold at every level."""
    if isinstance(request, PodGroupRequest):
        return request.need
    return sum(sorted(map(_fewest_pods, request.children))[: request.minimum])
