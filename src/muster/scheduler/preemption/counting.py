"""Victims for a leaf of one independent shape, by counting: no placement is tried.

Every node is asked for its cheapest bundle, the units that have to leave before it gains a seat. The
bundle with the lowest price per seat goes first until enough seats are there; then every unit that turns out
to be unnecessary is spared, dearest first. A unit on several nodes frees room on all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

import numpy as np

from muster.scheduler.arrays import Bools, Ints
from muster.scheduler.cluster import Cluster
from muster.scheduler.preemption.toll import NOTHING_EVICTED, Toll
from muster.scheduler.preemption.units import Unit
from muster.scheduler.shapes import Shape

UNLIMITED = 1 << 40
Price = tuple[float, int, float, float, float, float]


def countable(cluster: Cluster, shape: Shape) -> bool:
    """Is room the only thing that decides whether one more pod of this shape fits a node?"""
    standing = cluster.standing(shape)
    return standing.independent and all(rule.name == "NodeResourcesFit" for rule in standing.load_filters)


class Ledger:
    """Room per node for one shape, and what each unit would give back."""

    def __init__(self, cluster: Cluster, shape: Shape, units: Sequence[Unit], toll: Toll) -> None:
        requests = shape.request_vector(cluster)
        self.rows = np.flatnonzero(requests)
        self.asks = requests[self.rows]
        self.open: Bools = cluster.standing(shape).node_ok.copy()
        self.free: Ints = (cluster.alloc - cluster.used)[self.rows]
        self.units = sorted(units, key=toll.alone)
        self.toll = toll
        self.gives: list[list[tuple[int, Ints]]] = []  # unit -> what it frees on which slot
        self.on_slot: dict[int, list[int]] = {}  # slot -> units on it, cheapest first
        for number, unit in enumerate(self.units):
            self.gives.append(self._gives(cluster, unit))
            for slot, _ in self.gives[-1]:
                self.on_slot.setdefault(slot, []).append(number)
        self.seats: Ints = self.count(self.free)

    def _gives(self, cluster: Cluster, unit: Unit) -> list[tuple[int, Ints]]:
        sums: dict[int, Ints] = {}
        for uid in unit.uids:
            entry = cluster.pods[uid]
            vector = entry.footprint.vector
            amount = np.zeros(len(self.rows), dtype=np.int64)
            inside = self.rows < len(vector)
            amount[inside] = vector[self.rows[inside]]
            sums[entry.slot] = sums[entry.slot] + amount if entry.slot in sums else amount
        return sorted(sums.items())

    def shift(self, vector: Ints, slot: int, sign: int) -> None:
        """Count pods of others in or out on a slot before the choice begins."""
        inside = self.rows < len(vector)
        self.free[inside, slot] += sign * vector[self.rows[inside]]
        self.seats[slot] = self.count_at(self.free[:, slot], slot)

    def count(self, free: Ints) -> Ints:
        """Seats on every node."""
        room = np.full(free.shape[1], UNLIMITED, dtype=np.int64)
        for index, ask in enumerate(self.asks):
            room = np.minimum(room, free[index] // ask)
        return np.where(self.open[: free.shape[1]], np.maximum(room, 0), 0)

    def count_at(self, free: Ints, slot: int) -> int:
        if not self.open[slot]:
            return 0
        return max(0, int((free // self.asks).min()))

    def everything_gone(self) -> Ints:
        """Seats if every unit left."""
        free = self.free.copy()
        for gives in self.gives:
            for slot, amount in gives:
                free[:, slot] += amount
        return self.count(free)


class Choice:
    """One run over one scope (a domain, or all nodes)."""

    def __init__(self, ledger: Ledger, scope: Bools) -> None:
        self.ledger = ledger
        self.scope = scope
        self.free = ledger.free.copy()
        self.seats = np.where(scope, ledger.seats, 0)
        self.total = int(self.seats.sum())
        self.gone: set[int] = set()
        self.drawn: dict[int, int] = {}  # budget -> pods evicted from it
        self._version: dict[int, int] = {}

    def run(self, wanted: int) -> list[Unit] | None:
        """Units whose leaving gives so many seats, or None if all of them together do not."""
        heap: list[tuple[Price, int, int, tuple[int, ...]]] = []
        for slot in self.ledger.on_slot:
            if self.scope[slot] and self.ledger.open[slot]:
                self._offer(heap, slot)
        while self.total < wanted:
            if not heap:
                return None
            _, slot, version, bundle = heapq.heappop(heap)
            if self._version.get(slot, 0) != version or not self.gone.isdisjoint(bundle):
                self._offer(heap, slot)
                continue
            for slot_changed in self._evict(bundle):
                if self.scope[slot_changed]:
                    self._offer(heap, slot_changed)
        self._spare(wanted)
        return [self.ledger.units[number] for number in sorted(self.gone)]

    def _offer(self, heap: list[tuple[Price, int, int, tuple[int, ...]]], slot: int) -> None:
        """Put a node's cheapest bundle on the market."""
        ledger = self.ledger
        free = self.free[:, slot].copy()
        before = self.seats.item(slot)
        bundle: list[int] = []
        for number in self._cheapest_first(slot):
            if number in self.gone:
                continue
            bundle.append(number)
            free += next(amount for where, amount in ledger.gives[number] if where == slot)
            gain = ledger.count_at(free, slot) - before
            if gain > 0:
                needed = self._needed(slot, bundle, free, before)
                version = self._version.get(slot, 0)
                heapq.heappush(heap, (self._price(needed, gain), slot, version, tuple(needed)))
                return

    def _cheapest_first(self, slot: int) -> list[int]:
        """Units on a slot; those whose budgets are used up by now go last."""
        on_slot = self.ledger.on_slot[slot]
        if not self.ledger.toll.allowed:
            return on_slot
        return sorted(on_slot, key=lambda number: (self._overdraws(number), number))

    def _overdraws(self, number: int) -> int:
        toll, unit = self.ledger.toll, self.ledger.units[number]
        if unit.marked:
            return 0
        return sum(
            max(0, self.drawn.get(budget, 0) + count - toll.allowed[budget])
            for budget, count in toll.hits(unit).items()
        )

    def _needed(self, slot: int, bundle: list[int], free: Ints, before: int) -> list[int]:
        """The bundle without the units whose leaving did not matter, dearest considered first."""
        ledger, kept = self.ledger, list(bundle)
        for number in reversed(bundle[:-1]):
            amount = next(amount for where, amount in ledger.gives[number] if where == slot)
            if ledger.count_at(free - amount, slot) > before:
                free = free - amount
                kept.remove(number)
        return kept

    def _price(self, bundle: Collection[int], gain: int) -> Price:
        toll = self.ledger.toll
        units = [self.ledger.units[number] for number in bundle if not self.ledger.units[number].marked]
        return (
            sum(self._overdraws(number) for number in bundle) / gain,
            max((unit.priority for unit in units), default=NOTHING_EVICTED),
            toll.broken(units) / gain,
            len(units) / gain,
            sum(len(unit.uids) for unit in units) / gain,
            toll.cost(units)[5] / gain,
        )

    def _evict(self, bundle: Collection[int]) -> list[int]:
        touched: list[int] = []
        for number in bundle:
            self.gone.add(number)
            self._draw(number, +1)
            for slot, amount in self.ledger.gives[number]:
                self._change(slot, amount)
                touched.append(slot)
        return touched

    def _draw(self, number: int, sign: int) -> None:
        unit = self.ledger.units[number]
        if not unit.marked:
            for budget, count in self.ledger.toll.hits(unit).items():
                self.drawn[budget] = self.drawn.get(budget, 0) + sign * count

    def _change(self, slot: int, amount: Ints) -> None:
        self.free[:, slot] += amount
        self._version[slot] = self._version.get(slot, 0) + 1
        if self.scope[slot]:
            seats = self.ledger.count_at(self.free[:, slot], slot)
            self.total += seats - self.seats.item(slot)
            self.seats[slot] = seats

    def _spare(self, wanted: int) -> None:
        """Put back every unit that is not needed, dearest first."""
        ledger = self.ledger
        for number in sorted(self.gone, key=lambda n: ledger.toll.alone(ledger.units[n]), reverse=True):
            lost = 0
            for slot, amount in ledger.gives[number]:
                if self.scope[slot]:
                    lost += self.seats.item(slot) - ledger.count_at(self.free[:, slot] - amount, slot)
            if self.total - lost >= wanted:
                self.gone.discard(number)
                self._draw(number, -1)
                for slot, amount in ledger.gives[number]:
                    self._change(slot, -amount)
