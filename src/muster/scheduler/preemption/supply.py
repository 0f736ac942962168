"""The supply of seats by counting: which shapes can be counted, what is free, and what each victim would free.

The seats of a countable shape on a node follow from the node alone: what is free in each row that the shape requests,
where its host ports are one more row of which a node has one. Required affinity restricts the nodes as long as no pod
that could be evicted matches its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api import selectors
from muster.api.types import Affinity, Pod, PodAffinity, PodAffinityTerm
from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import Footprint, HostPort
from muster.scheduler.framework.shape import Shape
from muster.scheduler.preemption.cost import EvictionCost, SingleCosts
from muster.scheduler.preemption.victim_table import PodRows, VictimTable
from muster.scheduler.runtime.evaluator import Evaluator

RESOURCES_FIT, NODE_PORTS, INTER_POD_AFFINITY = "NodeResourcesFit", "NodePorts", "InterPodAffinity"


UNLIMITED = 1 << 40


Amounts = Sequence[int]  # per row


RowRequests = tuple[tuple[int, int], ...]  # row, and how much of it one pod requests


# --- countable shapes ------------------------------------------------------------------------------


class CountableShape:
    """A shape whose seats can be counted: which nodes it may use, and how much of which resource it requests."""

    def __init__(self, cluster: Cluster, shape: Shape, nodes: Bools) -> None:
        self.shape = shape
        self.nodes = nodes
        self.ports: tuple[HostPort, ...] = tuple(shape.footprint.requirements.ports)
        requests = shape.request_vector(cluster)
        self.requests: RowRequests = tuple((int(row), int(requests[row])) for row in np.flatnonzero(requests))

    def conflicts(self, footprint: Footprint) -> int:
        """How many ports of a pod conflict with those of the shape."""
        return sum(any(port.conflicts(mine) for mine in self.ports) for port in footprint.requirements.ports)

    def port_room(self, cluster: Cluster) -> Ints:
        """One per node, less the ports there that conflict."""
        room = np.ones(cluster.size, dtype=np.int64)
        for carried, count in cluster.pod_counts.carried():
            if isinstance(carried, HostPort) and any(carried.conflicts(mine) for mine in self.ports):
                room -= count.column[: cluster.size]
        return room


def countable(evaluator: Evaluator, shape: Shape, leaving: Iterable[Pod]) -> CountableShape | None:
    """The shape as one that can be counted whoever of these pods leaves, or None where only a plan can decide."""
    cluster, feasibility = evaluator.cluster, evaluator.feasibility(shape)
    if any(plugin.name not in (RESOURCES_FIT, NODE_PORTS) for plugin in feasibility.usage_filters):
        return None
    nodes = feasibility.node_ok.copy()
    if not feasibility.pods_filters:
        return CountableShape(cluster, shape, nodes)
    if any(plugin.name != INTER_POD_AFFINITY for plugin in feasibility.pods_filters):
        return None
    leaving = list(leaving)
    if not _only_affinity_to_others(shape.pod, leaving) or any(_repels(pod, shape.pod) for pod in leaving):
        return None
    for plugin in feasibility.pods_filters:
        nodes &= plugin.filter(shape, cluster, slice(0, cluster.size))
    return CountableShape(cluster, shape, nodes)


def _only_affinity_to_others(pod: Pod, leaving: Iterable[Pod]) -> bool:
    """Whether a pod has no required anti-affinity, and affinity only to pods that neither are like it nor may leave."""
    affinity = pod.spec.affinity or Affinity()
    near = _required(affinity.pod_affinity)
    return not _required(affinity.pod_anti_affinity) and not any(
        _selects(term, other) for term in near for other in (pod, *leaving)
    )


def _repels(other: Pod, pod: Pod) -> bool:
    """Whether the required anti-affinity of another pod selects a pod."""
    affinity = other.spec.affinity or Affinity()
    return any(_selects(term, pod) for term in _required(affinity.pod_anti_affinity))


def _required(side: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return tuple(side.required_during_scheduling_ignored_during_execution or ()) if side is not None else ()


def _selects(term: PodAffinityTerm, pod: Pod) -> bool:
    return selectors.matches(term.label_selector, pod.metadata.labels or {})


# --- supply ----------------------------------------------------------------------------------------


class NodeSupply:
    """What is free on every node in the rows that some shapes request, and what each victim would free.

    Victims are numbered in the order in which they are given, cheapest first. Tuples for one victim or one node are
    made when they are asked for, from columns over all pods of victims.
    """

    def __init__(
        self,
        cluster: Cluster,
        shapes: Sequence[CountableShape],
        victims: VictimTable,
        costs: SingleCosts,
        cost: EvictionCost,
    ) -> None:
        self.victims = victims
        self.costs = costs
        self.cost = cost
        rows = sorted({row for shape in shapes for row, _ in shape.requests})
        self._rows = np.array(rows, dtype=np.int64)
        at = {row: place for place, row in enumerate(rows)}
        with_ports = [shape for shape in shapes if shape.ports]
        self.requests: dict[int, RowRequests] = {
            shape.shape.id: tuple((at[row], request) for row, request in shape.requests)
            + tuple((len(rows) + place, 1) for place, other in enumerate(with_ports) if other is shape)
            for shape in shapes
        }
        self._with_ports = with_ports
        room = [(cluster.alloc - cluster.used)[self._rows]] + [shape.port_room(cluster)[None] for shape in with_ports]
        self.free: Ints = np.concatenate(room)  # [row, slot]
        self._index_parts(cluster.size)
        self._index_gangs()

    # --- what victims free -------------------------------------------------------------------------

    def _index_parts(self, size: int) -> None:
        """A part is what one victim frees on one slot: a row of `part_victim`, `part_slot` and `part_amounts`."""
        pods = self.victims.pods
        amounts = [self.amounts(footprint) for footprint in self.victims.footprints]
        width = len(self.free)
        freed: Ints = np.array(amounts, dtype=np.int64).reshape(len(amounts), width)[pods.footprint]
        self._amounts: list[Amounts]  # the same as plain values, for what is asked about by the thousand
        if (pods.victim[1:] > pods.victim[:-1]).all():  # one pod each
            self.part_victim, self.part_slot, self.part_amounts = pods.victim, pods.slot, freed
            self._amounts = list(map(amounts.__getitem__, pods.footprint.tolist()))
        else:
            self.part_victim, self.part_slot, self.part_amounts = _summed(pods, freed)
            self._amounts = self.part_amounts.tolist()
        self.parts_of = np.searchsorted(self.part_victim, np.arange(len(self.victims) + 1))  # first part of each
        self.by_slot: Ints = np.argsort(self.part_slot, kind="stable")  # parts, slot by slot, cheapest first
        self.first_on: Ints = np.searchsorted(self.part_slot[self.by_slot], np.arange(size + 1))
        self._first_part: list[int] = self.parts_of.tolist()
        self._slots: list[int] = self.part_slot.tolist()
        self._on_slot: dict[int, list[tuple[int, Amounts]]] = {}

    def freed_by(self, number: int) -> Iterable[tuple[int, Amounts]]:
        """What a victim frees on which slots."""
        parts = slice(self._first_part[number], self._first_part[number + 1])
        return zip(self._slots[parts], self._amounts[parts], strict=True)

    def parts_of_all(self, numbers: Ints) -> Ints:
        """The parts of several victims."""
        first = self.parts_of[numbers]
        sizes = self.parts_of[numbers + 1] - first
        return np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))

    def is_spread(self, number: int) -> bool:
        """Whether a victim has pods on several nodes."""
        return self._first_part[number + 1] - self._first_part[number] > 1

    def on_slot(self, slot: int) -> list[tuple[int, Amounts]]:
        """The victims on a slot and what each frees there, cheapest first."""
        found = self._on_slot.get(slot)
        if found is None:
            parts = self.by_slot[self.first_on[slot] : self.first_on[slot + 1]]
            found = list(zip(self.part_victim[parts].tolist(), self.part_amounts[parts].tolist(), strict=True))
            self._on_slot[slot] = found
        return found

    def seats_gained(self, shape: CountableShape, nodes: Bools, seats: Ints) -> Ints:
        """Per victim, the seats that appear on some nodes if it alone is evicted; `seats` are there now."""
        parts = nodes[self.part_slot]
        slots = self.part_slot[parts]
        room = np.full(len(slots), UNLIMITED, dtype=np.int64)
        for row, request in self.requests[shape.shape.id]:
            room = np.minimum(room, (self.free[row, slots] + self.part_amounts[parts, row]) // request)
        gained = np.zeros(len(self.victims), dtype=np.int64)
        np.add.at(gained, self.part_victim[parts], np.maximum(room, 0) - seats[slots])
        return gained

    def victims_on(self, nodes: Bools) -> int:
        """How many victims there are on some nodes; one on several nodes counts on each."""
        return int(np.diff(self.first_on)[nodes].sum())

    # --- gangs -------------------------------------------------------------------------------------

    def _index_gangs(self) -> None:
        """The PodGroups of which victims are single pods; marked ones cost their gang nothing more."""
        victims = self.victims
        gang = np.where(victims.marked, -1, victims.group_of)
        self._by_gang: Ints = np.argsort(gang, kind="stable")
        self._first_of_gang: Ints = np.searchsorted(gang[self._by_gang], np.arange(len(victims.groups) + 1))
        self.marked: list[bool] = victims.marked.tolist()
        self.gang_of: list[int] = gang.tolist()  # victim -> the gang of which it is a single pod, or -1
        self.slack: list[int] = [self.cost.slack(group.key) for group in victims.groups]  # `EvictionCost.slack`

    def members(self, gang: int) -> list[int]:
        """The victims that are single pods of a gang."""
        return self._by_gang[self._first_of_gang[gang] : self._first_of_gang[gang + 1]].tolist()

    # --- counting ----------------------------------------------------------------------------------

    def amounts(self, footprint: Footprint) -> Amounts:
        """What a pod takes of each row."""
        vector = footprint.vector
        sizes = [int(vector[row]) if row < len(vector) else 0 for row in self._rows.tolist()]
        return (*sizes, *(shape.conflicts(footprint) for shape in self._with_ports))

    def add(self, footprint: Footprint, slot: int, sign: int) -> None:
        """Add what another pod takes to a slot (+1), or take it away (-1), before victims are chosen."""
        self.free[:, slot] += sign * np.array(self.amounts(footprint), dtype=np.int64)

    def seats(self, shape: CountableShape, free: Ints | None = None) -> Ints:
        """Seats of a shape on every node, now or with so much free."""
        free = self.free if free is None else free
        room = np.full(free.shape[1], UNLIMITED, dtype=np.int64)
        for row, request in self.requests[shape.shape.id]:
            room = np.minimum(room, free[row] // request)
        return np.where(shape.nodes[: free.shape[1]], np.maximum(room, 0), 0)

    def free_without(self, numbers: Iterable[int]) -> Ints:
        """What is free once these victims are gone."""
        gone = np.zeros(len(self.victims), dtype=np.bool_)
        gone[np.fromiter(numbers, np.int64)] = True
        return self.add_freed(self.free.copy(), gone)

    def add_freed(self, free: Ints, gone: Bools) -> Ints:
        """`free` with what the victims of a mask free added to it."""
        parts = gone[self.part_victim]
        slots, amounts = self.part_slot[parts], self.part_amounts[parts]
        for place, row in enumerate(free):
            np.add.at(row, slots, amounts[:, place])
        return free


def _summed(pods: PodRows, freed: Ints) -> tuple[Ints, Ints, Ints]:
    """Victims, slots and what is freed there, with one row for all pods of a victim on a slot."""
    order = np.lexsort((pods.slot, pods.victim))
    victim, slot = pods.victim[order], pods.slot[order]
    starts = np.flatnonzero(np.append(True, (victim[1:] != victim[:-1]) | (slot[1:] != slot[:-1])))
    return victim[starts], slot[starts], np.add.reduceat(freed[order], starts, axis=0)
