"""For which shapes counting decides: room, ports, and company that no victim provides.

The seats of such a shape on a node follow from the node alone: what is free in each row that it asks for,
where its host ports are one more row of which a node has one. Required affinity narrows the nodes as
long as nobody who could be evicted is the company it needs.
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

ROOM, PORTS, COMPANY = "NodeResourcesFit", "NodePorts", "InterPodAffinity"


class CountableShape:
    """A shape whose seats can be counted: where it may go, and how much of which row it asks for."""

    def __init__(self, cluster: Cluster, shape: Shape, open_: Bools) -> None:
        self.shape = shape
        self.open = open_
        self.ports: tuple[HostPort, ...] = tuple(shape.footprint.requirements.ports)
        requests = shape.request_vector(cluster)
        self.rows: tuple[tuple[int, int], ...] = tuple(
            (int(row), int(requests[row])) for row in np.flatnonzero(requests)
        )

    def clashes(self, footprint: Footprint) -> int:
        """How many ports of a pod stand in the way."""
        return sum(any(port.conflicts(mine) for mine in self.ports) for port in footprint.requirements.ports)

    def port_room(self, cluster: Cluster) -> Ints:
        """One port per node, less those that clash."""
        room = np.ones(cluster.size, dtype=np.int64)
        for what, tally in cluster.pod_counts.carried():
            if isinstance(what, HostPort) and any(what.conflicts(mine) for mine in self.ports):
                room -= tally.column[: cluster.size]
        return room


def counted(evaluator: Evaluator, shape: Shape, victims: Iterable[Pod]) -> CountableShape | None:
    """The shape in the terms of counting, or None where only a plan can tell."""
    cluster, standing = evaluator.cluster, evaluator.feasibility(shape)
    if any(rule.name not in (ROOM, PORTS) for rule in standing.usage_filters):
        return None
    open_ = standing.node_ok.copy()
    if not standing.pods_filters:
        return CountableShape(cluster, shape, open_)
    if any(rule.name != COMPANY for rule in standing.pods_filters) or not _only_company(shape.pod, victims):
        return None
    for rule in standing.pods_filters:
        open_ &= rule.filter(shape, cluster, slice(0, cluster.size))
    return CountableShape(cluster, shape, open_)


def _only_company(pod: Pod, victims: Iterable[Pod]) -> bool:
    """Does the pod only want to be near pods that stay, and is it not its own company?"""
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


UNLIMITED = 1 << 40


Amounts = tuple[int, ...]


Asks = tuple[tuple[int, int], ...]  # place in a column, how much of it


Price = tuple[float, int, float, float, float, float]


class NodeSupply:
    """Room on every node in the rows that some shapes ask for, and what each unit would give back."""

    def __init__(
        self,
        cluster: Cluster,
        shapes: Sequence[CountableShape],
        units: Sequence[Victim],
        prices: Sequence[SingleCost],
        toll: EvictionCost,
    ) -> None:
        self.victims = units  # cheapest first
        self.costs = prices
        self.cost = toll
        self._shapes = shapes
        rows = sorted({row for shape in shapes for row, _ in shape.rows})
        self._rows = np.array(rows, dtype=np.int64)
        at = {row: place for place, row in enumerate(rows)}
        with_ports = [shape for shape in shapes if shape.ports]
        self.asks: dict[int, Asks] = {
            shape.shape.id: tuple((at[row], ask) for row, ask in shape.rows)
            + tuple((len(rows) + place, 1) for place, other in enumerate(with_ports) if other is shape)
            for shape in shapes
        }
        self._with_ports = with_ports
        room = [(cluster.alloc - cluster.used)[self._rows]] + [shape.port_room(cluster)[None] for shape in with_ports]
        self.free: Ints = np.concatenate(room)
        self._known: dict[int, Amounts] = {}
        self.gives: list[tuple[tuple[int, Amounts], ...]] = []  # unit -> what it frees on which slot
        self.on_slot: dict[int, list[tuple[int, Amounts]]] = {}  # slot -> units on it, cheapest first
        for number, unit in enumerate(units):
            gives = self._gives(cluster, unit)
            self.gives.append(gives)
            for slot, amounts in gives:
                self.on_slot.setdefault(slot, []).append((number, amounts))
        self.mates: dict[EntityKey, list[int]] = {}  # gang -> units that are one pod of it
        self._follow_gangs()

    def _follow_gangs(self) -> None:
        self.gang: list[EntityKey | None] = []
        for number, unit in enumerate(self.victims):
            single = unit.losses[0][0] if len(unit.uids) == 1 and unit.losses and not unit.marked else None
            self.gang.append(single)
            if single is not None:
                self.mates.setdefault(single, []).append(number)
        self.slack = {key: self.cost.slack(key) for key in self.mates}

    def _gives(self, cluster: Cluster, unit: Victim) -> tuple[tuple[int, Amounts], ...]:
        if len(unit.uids) == 1:
            entry = cluster.pods[unit.uids[0]]
            return ((entry.slot, self.amounts(entry.footprint)),)
        sums: dict[int, Amounts] = {}
        for uid in unit.uids:
            entry = cluster.pods[uid]
            if entry.slot >= 0:
                amounts = self.amounts(entry.footprint)
                sums[entry.slot] = _plus(sums[entry.slot], amounts) if entry.slot in sums else amounts
        return tuple(sorted(sums.items()))

    def amounts(self, footprint: Footprint) -> Amounts:
        """What a pod takes in the rows of this ledger."""
        known = self._known.get(id(footprint))
        if known is None:
            vector = footprint.vector
            sizes = [int(vector[row]) if row < len(vector) else 0 for row in self._rows.tolist()]
            known = (*sizes, *(shape.clashes(footprint) for shape in self._with_ports))
            self._known[id(footprint)] = known
        return known

    def shift(self, footprint: Footprint, slot: int, sign: int) -> None:
        """Count pods of others in or out on a slot before the choice begins."""
        self.free[:, slot] += sign * np.array(self.amounts(footprint), dtype=np.int64)

    def seats(self, shape: CountableShape, free: Ints | None = None) -> Ints:
        """Seats of a shape on every node."""
        free = self.free if free is None else free
        room = np.full(free.shape[1], UNLIMITED, dtype=np.int64)
        for place, ask in self.asks[shape.shape.id]:
            room = np.minimum(room, free[place] // ask)
        return np.where(shape.open[: free.shape[1]], np.maximum(room, 0), 0)

    def without(self, numbers: Iterable[int]) -> Ints:
        """What is free once these units are gone."""
        gone = [(slot, amounts) for number in numbers for slot, amounts in self.gives[number]]
        free = self.free.copy()
        if gone:
            slots = np.array([slot for slot, _ in gone], dtype=np.int64)
            amounts = np.array([amounts for _, amounts in gone], dtype=np.int64)
            for place, row in enumerate(free):
                np.add.at(row, slots, amounts[:, place])
        return free


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return tuple(a + b for a, b in zip(one, other, strict=True))
