"""Room for a whole demand, bought by counting: leaf by leaf, shape by shape, each in its cheapest domain.

A constrained group is tried in every domain it may use (the most promising ones, where there are very many), with
everything below it, and the cheapest outcome is kept. For one leaf of one shape the count is exact; for more it is a
good candidate that a plan has to confirm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from muster.scheduler.cache.arrays import Bools
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.preemption.seat_victims import SeatVictims, VictimSelection
from muster.scheduler.preemption.supply import CountableShape, NodeSupply

Lots = Mapping[EntityKey, Mapping[int, int]]  # leaf -> shape -> how many members are to be seated


MOST_UNITS_LOOKED_AT = 6000  # over all domains that are tried; the first few are tried in any case


FEWEST_DOMAINS = 4


class GroupVictims:
    """Buys seats for the lots of a demand."""

    def __init__(self, cluster: Cluster, ledger: NodeSupply, shapes: Mapping[int, CountableShape], lots: Lots) -> None:
        self.cluster = cluster
        self.ledger = ledger
        self.shapes = shapes
        self.lots = lots

    def everywhere(self) -> Bools:
        return np.ones(self.cluster.size, dtype=np.bool_)

    def buy(self, request: GroupRequest, market: VictimSelection, scope: Bools) -> VictimSelection | None:
        """The market after the cheapest purchase found, or None if there is none."""
        if not self._wanted(request):
            return market
        domains = list(self.domains(request, scope))
        if len(domains) == 1:
            return self._inside(request, market, domains[0])
        found = [self._inside(request, market.copy(), domain) for domain in self._promising(request, domains)]
        toll = self.ledger.cost
        return min((one for one in found if one is not None), key=lambda one: toll.cost(one.units()), default=None)

    def _wanted(self, request: GroupRequest) -> int:
        if isinstance(request, PodGroupRequest):
            return sum(self.lots.get(request.key, {}).values())
        return sum(self._wanted(child) for child in request.children)

    def _inside(self, request: GroupRequest, market: VictimSelection, scope: Bools) -> VictimSelection | None:
        if isinstance(request, PodGroupRequest):
            if len(self.lots) == 1:
                market.only = scope.tolist()
            return self._leaf(request, market, scope)
        for child in sorted(request.children, key=lambda child: (not child.topology, -self._wanted(child), child.key)):
            bought = self.buy(child, market, scope)
            if bought is None:
                return None
            market = bought
        return market

    def _leaf(self, leaf: PodGroupRequest, market: VictimSelection, scope: Bools) -> VictimSelection | None:
        lots = [(self.shapes[shape], count) for shape, count in self.lots[leaf.key].items()]
        for shape, count in sorted(lots, key=lambda lot: [-ask for _, ask in lot[0].rows]):
            if not SeatVictims(market, shape, scope).run(count):
                return None
            if len(self.lots) > 1 or len(lots) > 1:
                market.sit(shape, scope, count)
        return market

    # --- domains -----------------------------------------------------------------------------------

    def domains(self, request: GroupRequest, scope: Bools) -> Iterator[Bools]:
        """Where the group may lie as a whole."""
        if not request.topology:
            yield scope
            return
        values = self.cluster.labels(request.topology)
        if request.domains:
            pinned = {self.cluster.label_id(request.topology, domain) for domain in request.domains}
            if len(pinned) == 1 and 0 not in pinned:
                yield scope & (values == pinned.pop())
            return
        names = {
            value: self.cluster.label_value(request.topology, int(value)) for value in np.unique(values[values > 0])
        }
        for value in sorted(names, key=lambda value: names[value]):
            yield scope & (values == value)

    def _promising(self, request: GroupRequest, domains: list[Bools]) -> Iterator[Bools]:
        """All domains, or where that is too much work the ones that need least: lowest priority, fewest seats."""
        sizes = [sum(len(self.ledger.on_slot.get(slot, ())) for slot in np.flatnonzero(d).tolist()) for d in domains]
        order = list(range(len(domains)))
        if sum(sizes) > MOST_UNITS_LOOKED_AT:
            order.sort(key=self._outlook(request, domains, sizes).__getitem__)
        spent = 0
        for tried, at in enumerate(order):
            if spent > MOST_UNITS_LOOKED_AT and tried >= FEWEST_DOMAINS:
                return
            spent += sizes[at]
            yield domains[at]

    def _outlook(self, request: GroupRequest, domains: list[Bools], sizes: list[int]) -> list[tuple[int, int, int]]:
        """Per domain: the lowest priority up to which all must go, the seats that are missing, the units there."""
        lots = self.lots.get(request.key, {})
        if len(lots) != 1:
            return [(0, 0, size) for size in sizes]
        (number, wanted), ledger = next(iter(lots.items())), self.ledger
        shape = self.shapes[number]
        levels = sorted({unit.priority for unit in ledger.victims})
        now = ledger.seats(shape)
        found = [
            (len(levels), wanted - int(now[domain].sum()), size) for domain, size in zip(domains, sizes, strict=True)
        ]
        for rank, level in reversed(list(enumerate(levels))):
            below = ledger.without(n for n, unit in enumerate(ledger.victims) if unit.priority <= level)
            seats = ledger.seats(shape, below)
            enough = [int(seats[domain].sum()) >= wanted for domain in domains]
            found = [(rank, *one[1:]) if ok else one for one, ok in zip(found, enough, strict=True)]
            if not any(enough):
                break
        return found
