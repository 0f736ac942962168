"""The supply of seats by counting: which shapes can be counted, what is free, and what each victim would free.

The seats of a countable shape on a node follow from the node alone: what is free in each row that the shape requests,
where its host ports are one more row of which a node has one. Required affinity restricts the nodes as long as no pod
that could be evicted matches its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api import selectors
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import Footprint, HostPort
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.cost import EvictionCost, SingleCost
from muster.scheduler.preemption.victims import Victim
from muster.scheduler.runtime.evaluator import Evaluator

RESOURCES_FIT, NODE_PORTS, INTER_POD_AFFINITY = "NodeResourcesFit", "NodePorts", "InterPodAffinity"


UNLIMITED = 1 << 40


Amounts = tuple[int, ...]  # per row


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


def countable(evaluator: Evaluator, shape: Shape, victims: Iterable[Pod]) -> CountableShape | None:
    """The shape as one that can be counted, or None where only a plan can decide."""
    cluster, feasibility = evaluator.cluster, evaluator.feasibility(shape)
    if any(plugin.name not in (RESOURCES_FIT, NODE_PORTS) for plugin in feasibility.usage_filters):
        return None
    nodes = feasibility.node_ok.copy()
    if not feasibility.pods_filters:
        return CountableShape(cluster, shape, nodes)
    if any(plugin.name != INTER_POD_AFFINITY for plugin in feasibility.pods_filters):
        return None
    if not _only_affinity_to_others(shape.pod, victims):
        return None
    for plugin in feasibility.pods_filters:
        nodes &= plugin.filter(shape, cluster, slice(0, cluster.size))
    return CountableShape(cluster, shape, nodes)


def _only_affinity_to_others(pod: Pod, victims: Iterable[Pod]) -> bool:
    """Whether a pod has no required anti-affinity, and affinity only to pods that are neither like it nor victims."""
    affinity = pod.spec.affinity
    if affinity is None:
        return True
    apart = affinity.pod_anti_affinity
    if apart is not None and apart.required_during_scheduling_ignored_during_execution:
        return False
    near = affinity.pod_affinity
    terms = (near.required_during_scheduling_ignored_during_execution or ()) if near is not None else ()
    return not any(_selects(term, other) for term in terms for other in (pod, *victims))


def _selects(term: PodAffinityTerm, pod: Pod) -> bool:
    return selectors.matches(term.label_selector, pod.metadata.labels or {})


# --- supply ----------------------------------------------------------------------------------------


class NodeSupply:
    """What is free on every node in the rows that some shapes request, and what each victim would free.

    Victims are numbered in the order in which they are given, cheapest first.
    """

    def __init__(
        self,
        cluster: Cluster,
        shapes: Sequence[CountableShape],
        victims: Sequence[Victim],
        costs: Sequence[SingleCost],
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
        self._known: dict[int, Amounts] = {}
        self.freed_by: list[tuple[tuple[int, Amounts], ...]] = []  # victim -> what it frees on which slot
        self.on_slot: dict[int, list[tuple[int, Amounts]]] = {}  # slot -> victims on it, cheapest first
        for number, victim in enumerate(victims):
            freed = self._freed(cluster, victim)
            self.freed_by.append(freed)
            for slot, amounts in freed:
                self.on_slot.setdefault(slot, []).append((number, amounts))
        self.gang_of: list[EntityKey | None] = []  # victim -> the PodGroup of which it is a single pod
        self.members: dict[EntityKey, list[int]] = {}  # PodGroup -> victims that are single pods of it
        self._index_gangs()

    def _index_gangs(self) -> None:
        for number, victim in enumerate(self.victims):
            gang = victim.losses[0][0] if len(victim.uids) == 1 and victim.losses and not victim.marked else None
            self.gang_of.append(gang)
            if gang is not None:
                self.members.setdefault(gang, []).append(number)
        self.slack = {key: self.cost.slack(key) for key in self.members}

    def _freed(self, cluster: Cluster, victim: Victim) -> tuple[tuple[int, Amounts], ...]:
        if len(victim.uids) == 1:
            entry = cluster.pods[victim.uids[0]]
            return ((entry.slot, self.amounts(entry.footprint)),)
        sums: dict[int, Amounts] = {}
        for uid in victim.uids:
            entry = cluster.pods[uid]
            if entry.slot >= 0:
                amounts = self.amounts(entry.footprint)
                sums[entry.slot] = _plus(sums[entry.slot], amounts) if entry.slot in sums else amounts
        return tuple(sorted(sums.items()))

    def amounts(self, footprint: Footprint) -> Amounts:
        """What a pod takes of each row."""
        known = self._known.get(id(footprint))
        if known is None:
            vector = footprint.vector
            sizes = [int(vector[row]) if row < len(vector) else 0 for row in self._rows.tolist()]
            known = (*sizes, *(shape.conflicts(footprint) for shape in self._with_ports))
            self._known[id(footprint)] = known
        return known

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
        gone = [(slot, amounts) for number in numbers for slot, amounts in self.freed_by[number]]
        free = self.free.copy()
        if gone:
            slots = np.array([slot for slot, _ in gone], dtype=np.int64)
            amounts = np.array([amounts for _, amounts in gone], dtype=np.int64)
            for place, row in enumerate(free):
                np.add.at(row, slots, amounts[:, place])
        return free


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return tuple(a + b for a, b in zip(one, other, strict=True))
