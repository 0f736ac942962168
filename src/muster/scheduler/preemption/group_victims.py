"""Victims for a whole request, by counting: PodGroup by PodGroup, shape by shape, each in its cheapest domain.

A constrained group is tried in every domain it may use (the most promising ones, where there are very many), with
everything below it, and the cheapest outcome is kept. For one PodGroup of one shape the count is exact; for more it
is a candidate that a plan has to confirm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from muster.scheduler.cache.arrays import Bools, present_ids
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.preemption.seat_victims import SeatVictims
from muster.scheduler.preemption.supply import CountableShape, NodeSupply
from muster.scheduler.preemption.victim_selection import VictimSelection

SeatsWanted = Mapping[EntityKey, Mapping[int, int]]  # PodGroup -> shape id -> how many pods are to be placed


MOST_VICTIMS = 6000  # in all domains that are tried; the first few are tried in any case


FEWEST_DOMAINS = 4


class GroupVictims:
    """Chooses victims for the seats that the groups of a request need."""

    def __init__(
        self, cluster: Cluster, supply: NodeSupply, shapes: Mapping[int, CountableShape], wanted: SeatsWanted
    ) -> None:
        self.cluster = cluster
        self.supply = supply
        self.shapes = shapes
        self.wanted = wanted

    def everywhere(self) -> Bools:
        return np.ones(self.cluster.size, dtype=np.bool_)

    def select(self, request: GroupRequest, selection: VictimSelection, nodes: Bools) -> VictimSelection | None:
        """The selection with the cheapest victims found for a group, or None if there are none."""
        if not self._seats_wanted(request):
            return selection
        domains = list(self.domains(request, nodes))
        if len(domains) == 1:
            return self._inside(request, selection, domains[0])
        found = [self._inside(request, selection.copy(), domain) for domain in self._promising(request, domains)]
        supply = self.supply
        possible = (one for one in found if one is not None)
        return min(possible, key=lambda one: supply.cost.cost_of(supply.victims, one.chosen), default=None)

    def _seats_wanted(self, request: GroupRequest) -> int:
        if isinstance(request, PodGroupRequest):
            return sum(self.wanted.get(request.key, {}).values())
        return sum(self._seats_wanted(child) for child in request.children)

    def _inside(self, request: GroupRequest, selection: VictimSelection, nodes: Bools) -> VictimSelection | None:
        if isinstance(request, PodGroupRequest):
            if len(self.wanted) == 1:
                selection.slots = nodes.tolist()
            return self._leaf(request, selection, nodes)
        for child in sorted(
            request.children, key=lambda child: (not child.topology, -self._seats_wanted(child), child.key)
        ):
            extended = self.select(child, selection, nodes)
            if extended is None:
                return None
            selection = extended
        return selection

    def _leaf(self, leaf: PodGroupRequest, selection: VictimSelection, nodes: Bools) -> VictimSelection | None:
        wanted = [(self.shapes[shape], count) for shape, count in self.wanted[leaf.key].items()]
        for shape, count in sorted(wanted, key=lambda item: [-request for _, request in item[0].requests]):
            if not SeatVictims(selection, shape, nodes).select(count):
                return None
            if len(self.wanted) > 1 or len(wanted) > 1:
                selection.place(shape, nodes, count)
        return selection

    # --- domains -----------------------------------------------------------------------------------

    def domains(self, request: GroupRequest, nodes: Bools) -> Iterator[Bools]:
        """The sets of nodes of which the group must be in one."""
        if not request.topology:
            yield nodes
            return
        values = self.cluster.labels(request.topology)
        if request.domains:
            pinned = {self.cluster.label_id(request.topology, domain) for domain in request.domains}
            if len(pinned) == 1 and 0 not in pinned:
                yield nodes & (values == pinned.pop())
            return
        names = {value: self.cluster.label_value(request.topology, int(value)) for value in present_ids(values)}
        for value in sorted(names, key=lambda value: names[value]):
            yield nodes & (values == value)

    def _promising(self, request: GroupRequest, domains: list[Bools]) -> Iterator[Bools]:
        """All domains, or where that is too much work those that need least: lowest priority, fewest seats."""
        sizes = [self.supply.victims_on(domain) for domain in domains]
        order = list(range(len(domains)))
        if sum(sizes) > MOST_VICTIMS:
            order.sort(key=self._estimates(request, domains, sizes).__getitem__)
        spent = 0
        for tried, at in enumerate(order):
            if spent > MOST_VICTIMS and tried >= FEWEST_DOMAINS:
                return
            spent += sizes[at]
            yield domains[at]

    def _estimates(self, request: GroupRequest, domains: list[Bools], sizes: list[int]) -> list[tuple[int, int, int]]:
        """Per domain: the lowest priority up to which all must be evicted, the missing seats, the victims there."""
        shapes = self.wanted.get(request.key, {})
        if len(shapes) != 1:
            return [(0, 0, size) for size in sizes]
        (number, wanted), supply = next(iter(shapes.items())), self.supply
        shape = self.shapes[number]
        levels = sorted(set(list[int](supply.victims.priority.tolist())))
        now = supply.seats(shape)
        found = [
            (len(levels), wanted - int(now[domain].sum()), size) for domain, size in zip(domains, sizes, strict=True)
        ]
        for rank, level in reversed(list(enumerate(levels))):
            seats = supply.seats(shape, supply.add_freed(supply.free.copy(), supply.victims.priority <= level))
            enough = [int(seats[domain].sum()) >= wanted for domain in domains]
            found = [(rank, *one[1:]) if ok else one for one, ok in zip(found, enough, strict=True)]
            if not any(enough):
                break
        return found
