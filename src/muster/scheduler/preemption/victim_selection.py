"""Victims chosen so far, what they free, and what that costs budgets and gangs."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.preemption.cost import SingleCost
from muster.scheduler.preemption.supply import CountableShape, NodeSupply
from muster.scheduler.preemption.victim_table import Victim


class VictimSelection:
    """The victims, numbered as in the supply. `copy` starts a variant."""

    def __init__(self, supply: NodeSupply, *, ignore_priority: bool = False, excluded: Collection[int] = ()) -> None:
        self.supply = supply
        self.ignore_priority = ignore_priority
        self.excluded = excluded  # victims that may not be chosen
        self.slots: list[bool] | None = None  # the slots that matter, if not all do
        self.chosen: set[int] = set()
        self.disrupted: dict[int, int] = {}  # budget -> pods evicted from it
        self.lost: dict[int, int] = {}  # gang -> members evicted one by one
        self._free: dict[int, list[int]] = {}  # slots that differ from the supply

    def copy(self) -> VictimSelection:
        other = VictimSelection(self.supply, ignore_priority=self.ignore_priority, excluded=self.excluded)
        other.slots = self.slots
        other.chosen, other.disrupted, other.lost = set(self.chosen), dict(self.disrupted), dict(self.lost)
        other._free = {slot: list(free) for slot, free in self._free.items()}
        return other

    def victims(self) -> list[Victim]:
        return [self.supply.victims[number] for number in sorted(self.chosen)]

    def free(self, slot: int) -> list[int]:
        """What is free on a slot, row by row, once the chosen victims are gone."""
        found = self._free.get(slot)
        if found is None:
            found = self._free[slot] = self.supply.free[:, slot].tolist()
        return found

    def all_free(self) -> Ints:
        """`free` of all slots, as a new array."""
        free = self.supply.free.copy()
        for slot, there in self._free.items():
            free[:, slot] = there
        return free

    def seats(self, shape: CountableShape) -> Ints:
        """Seats of a shape on every node once the chosen victims are gone."""
        return self.supply.seats(shape, self.all_free())

    def evict(self, number: int) -> bool:
        """Choose a victim; whether its gang's other members cost something else from now on."""
        return self._change(number, 1)

    def evict_all(self, numbers: Ints) -> None:
        """Choose several victims that are not chosen yet."""
        supply, chosen = self.supply, list[int](numbers.tolist())
        self.chosen.update(chosen)
        parts = supply.parts_of_all(numbers)
        if self.slots is not None:
            parts = parts[np.asarray(self.slots)[supply.part_slot[parts]]]
        freed = np.zeros_like(supply.free)
        np.add.at(freed.T, supply.part_slot[parts], supply.part_amounts[parts])
        for slot in np.flatnonzero(np.bincount(supply.part_slot[parts])).tolist():
            self._free[slot] = [
                have + more for have, more in zip(self.free(slot), freed[:, slot].tolist(), strict=True)
            ]
        for number in chosen if supply.cost.allowed else ():
            if not supply.marked[number]:
                for budget, pods in supply.cost.disruptions(supply.victims[number]).items():
                    self.disrupted[budget] = self.disrupted.get(budget, 0) + pods
        for gang in (gang for gang in map(supply.gang_of.__getitem__, chosen) if gang >= 0):
            self.lost[gang] = self.lost.get(gang, 0) + 1

    def reprieve(self, number: int) -> None:
        """Take back the choice of a victim."""
        self._change(number, -1)

    def _change(self, number: int, sign: int) -> bool:
        supply = self.supply
        (self.chosen.add if sign > 0 else self.chosen.discard)(number)
        slots = self.slots
        for slot, amounts in supply.freed_by(number):
            if slots is None or slots[slot]:
                free = self.free(slot)
                for row, amount in enumerate(amounts):
                    free[row] += sign * amount
        if supply.cost.allowed and not supply.marked[number]:
            for budget, pods in supply.cost.disruptions(supply.victims[number]).items():
                self.disrupted[budget] = self.disrupted.get(budget, 0) + sign * pods
        gang = supply.gang_of[number]
        if gang < 0:
            return False
        self.lost[gang] = self.lost.get(gang, 0) + sign
        return supply.slack[gang] >= 0 and self.lost[gang] - supply.slack[gang] in (0, 1)  # it breaks next, or just now

    def cost(self, number: int) -> SingleCost:
        """What a further victim costs beside those chosen already."""
        supply = self.supply
        costs = supply.costs[number]
        if supply.marked[number]:
            return costs
        gang = supply.gang_of[number]
        broken = costs[2] if gang < 0 else int(self.lost.get(gang, 0) == supply.slack[gang])
        violations = self._violations(supply.victims[number]) if supply.cost.allowed else 0
        return (violations, 0 if self.ignore_priority else costs[1], broken, costs[3], costs[4])

    def _violations(self, victim: Victim) -> int:
        cost = self.supply.cost
        return sum(
            max(0, self.disrupted.get(budget, 0) + pods - max(self.disrupted.get(budget, 0), cost.allowed[budget]))
            for budget, pods in cost.disruptions(victim).items()
        )

    def place(self, shape: CountableShape, nodes: Bools, wanted: int) -> None:
        """Take seats for pods of a shape, on nodes of chosen victims first."""
        seats = np.where(nodes, self.seats(shape), 0)
        emptied = {slot for number in self.chosen for slot, _ in self.supply.freed_by(number)}
        amounts = self.supply.amounts(shape.shape.footprint)
        for slot in sorted(np.flatnonzero(seats).tolist(), key=lambda slot: (slot not in emptied, seats[slot], slot)):
            taken = min(wanted, int(seats[slot]))
            free = self.free(slot)
            for row, amount in enumerate(amounts):
                free[row] -= taken * amount
            wanted -= taken
            if wanted <= 0:
                return
