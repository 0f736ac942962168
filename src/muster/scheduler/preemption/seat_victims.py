"""Victims for seats of one shape, by counting: no placement is tried.

The candidate of a node is the cheapest set of victims whose eviction gives it one more seat; a victim that has pods on
several nodes is a candidate of its own. Candidates are taken in the order of their cost per seat until there are enough
seats; then every victim that turns out to be unnecessary is reprieved, the most expensive first. Costs are those of the
moment: once a budget is used up its pods cost more, once a gang is broken its other members cost less.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.preemption.cost import NOTHING_EVICTED
from muster.scheduler.preemption.supply import UNLIMITED, Amounts, CountableShape, RowRequests
from muster.scheduler.preemption.victim_selection import VictimSelection

MANY_VICTIMS = 32  # from which on what each of them is needed for is computed for all at once


CostPerSeat = tuple[float, int, float, float, float, float]


class SeatVictims:
    """Chooses victims for seats of one shape on some nodes (a domain, or all of them)."""

    def __init__(self, selection: VictimSelection, shape: CountableShape, nodes: Bools) -> None:
        self.selection = selection
        self.supply = selection.supply
        self.requests = self.supply.requests[shape.shape.id]
        self._shape = shape
        self._nodes: Bools = nodes & shape.nodes
        self.usable: list[bool] = self._nodes.tolist()
        self._slots: list[int] = np.flatnonzero(self._nodes).tolist()
        self.seats: list[int] = np.where(nodes, selection.seats(shape), 0).tolist()
        self.total = sum(self.seats)
        self._heap: list[tuple[CostPerSeat, tuple[int, ...], int, int, int]] = []
        self._changes = [0] * len(self.usable)  # per slot, how often its candidate has changed
        self._largest_gain = 1  # seats that one candidate gives

    def select(self, wanted: int) -> bool:
        """Choose victims until there are so many seats; False if all of them together do not suffice."""
        self.wanted = wanted
        if self.total >= wanted:
            return True
        before = set(self.selection.chosen)
        available = self._available()
        if self._seats_without(available) <= wanted:  # there is nothing to choose
            numbers = np.flatnonzero(available)
            self.selection.evict_all(numbers)
            for slot in self._slots:
                self._recount(slot)
            self.reprieve(numbers.tolist())
            return self.total >= wanted
        self._push_all(available)
        while self.total < wanted:
            if not self._heap:
                return False
            _, victims, slot, number, changes = heapq.heappop(self._heap)
            if slot >= 0 and changes != self._changes[slot]:
                continue  # there is a newer candidate of this slot
            if slot >= 0 and self._is_unchanged(victims):
                self._evict(victims)
                continue
            candidate = self._candidate(slot, number)
            if candidate is None:
                continue
            if self._heap and candidate > self._heap[0][:2]:
                heapq.heappush(self._heap, (*candidate, slot, number, self._changes[slot]))
                continue
            self._evict(candidate[1])
        self.reprieve(self.selection.chosen - before)
        return True

    def _is_unchanged(self, victims: Collection[int]) -> bool:
        """Whether a candidate of a slot on which nothing changed costs what it did when it was found.

        It may not where others use up budgets, have pods on several nodes, or leave fewer seats to be wanted.
        """
        supply = self.supply
        if supply.cost.allowed or self.wanted - self.total < self._largest_gain:
            return False
        return not any(supply.is_spread(number) for number in victims)

    def _available(self) -> Bools:
        """Per victim, whether it is on a usable node and not chosen yet."""
        supply, selection = self.supply, self.selection
        available = np.zeros(len(supply.victims), dtype=np.bool_)
        available[supply.part_victim[self._nodes[supply.part_slot]]] = True
        for kept in (selection.chosen, selection.excluded):
            available[np.fromiter(kept, np.int64, len(kept))] = False
        return available

    def _seats_without(self, numbers: Bools) -> int:
        """All seats there are once these victims are gone as well."""
        free = self.supply.add_freed(self.selection.all_free(), numbers)
        return int(self.supply.seats(self._shape, free)[self._nodes].sum())

    def _seats_freed(self, numbers: Collection[int]) -> int:
        """Seats that appear on the usable nodes if these victims are evicted."""
        changed: dict[int, list[int]] = {}
        for number in numbers:
            for slot, amounts in self.supply.freed_by(number):
                if self.usable[slot]:
                    free = changed.get(slot)
                    if free is None:
                        free = changed[slot] = list(self.selection.free(slot))
                    for row, amount in enumerate(amounts):
                        free[row] += amount
        return sum(count(free, self.requests) - self.seats[slot] for slot, free in changed.items())

    # --- candidates --------------------------------------------------------------------------------

    def _push_all(self, available: Bools) -> None:
        supply = self.supply
        pushed = self._push_first_victims(available)
        for slot in np.flatnonzero(self._nodes & (np.diff(supply.first_on) > 0) & ~pushed).tolist():
            self._push(slot, -1)
        heapq.heapify(self._heap)

    def _push_first_victims(self, available: Bools) -> Bools:
        """The candidates of one victim, all at once: those on several nodes, and the cheapest of each slot where it is
        enough alone. Returns the slots whose candidate is among them."""
        supply = self.supply
        done = np.zeros(len(self._nodes), dtype=np.bool_)
        plain = self._costs_are_single and not self.selection.chosen and not self.selection.excluded
        if plain:
            gained = supply.seats_gained(self._shape, self._nodes, np.array(self.seats, dtype=np.int64))
            self._push_gains(np.flatnonzero(available & (gained > 0) & (np.diff(supply.parts_of) > 1)), gained, None)
            slots = np.flatnonzero(self._nodes & (np.diff(supply.first_on) > 0))
            parts = supply.by_slot[supply.first_on[slots]]
            free = supply.free.copy()
            free[:, slots] += supply.part_amounts[parts].T
            alone = supply.seats(self._shape, free)[slots] > np.array(self.seats, dtype=np.int64)[slots]
            self._push_gains(supply.part_victim[parts[alone]], gained, slots[alone])
            done[slots[alone]] = True
        else:
            for number in np.flatnonzero(available & (np.diff(supply.parts_of) > 1)).tolist():
                self._push(-1, number)
        return done

    def _push_gains(self, victims: Ints, gained: Ints, slots: Ints | None) -> None:
        """Candidates of one victim each, without restoring the heap; for a slot, or for the victim by itself."""
        numbers: list[int] = victims.tolist()
        gains: list[int] = np.minimum(gained[victims], self.wanted - self.total).tolist()
        self._largest_gain = max(self._largest_gain, int(gained[victims].max(initial=0)))
        where: list[int] = [-1] * len(numbers) if slots is None else slots.tolist()
        for number, gain, slot in zip(numbers, gains, where, strict=True):
            self._heap.append((self._cost_per_seat((number,), gain), (number,), slot, number if slot < 0 else -1, 0))

    @property
    def _costs_are_single(self) -> bool:
        """Whether every victim costs what it costs by itself, so that the order of the supply is that of the cost."""
        selection = self.selection
        return not selection.lost and not selection.disrupted and not selection.ignore_priority

    def _push(self, slot: int, number: int) -> None:
        candidate = self._candidate(slot, number)
        if candidate is not None:
            heapq.heappush(self._heap, (*candidate, slot, number, self._changes[slot]))

    def _candidate(self, slot: int, number: int) -> tuple[CostPerSeat, tuple[int, ...]] | None:
        """The cheapest set of victims for one more seat on a slot, or (slot -1) one victim with pods on several."""
        selection = self.selection
        if slot < 0:
            excluded = number in selection.chosen or number in selection.excluded
            gain = 0 if excluded else self._gain(self._seats_freed((number,)))
            return (self._cost_per_seat((number,), gain), (number,)) if gain > 0 else None
        before, free = self.seats[slot], list(selection.free(slot))
        victims: list[tuple[int, Amounts]] = []
        for victim, amounts in self._cheapest_first(slot):
            victims.append((victim, amounts))
            for row, amount in enumerate(amounts):
                free[row] += amount
            if count(free, self.requests) > before:
                needed, seats = self._needed(victims, free, before)
                if any(map(self.supply.is_spread, needed)):
                    seats = self._seats_freed(needed)
                return self._cost_per_seat(needed, self._gain(seats)), needed
        return None

    def _cheapest_first(self, slot: int) -> Iterable[tuple[int, Amounts]]:
        """The victims on a node that can still be chosen, by what they cost at the moment."""
        selection = self.selection
        chosen, excluded = selection.chosen, selection.excluded
        there = [each for each in self.supply.on_slot(slot) if each[0] not in chosen and each[0] not in excluded]
        if self._costs_are_single:
            return there
        if selection.disrupted or selection.ignore_priority:
            return sorted(there, key=lambda each: (selection.cost(each[0]), each[0]))
        gang_of, lost = self.supply.gang_of, selection.lost
        changed = [each for each in there if gang_of[each[0]] in lost]  # the others are in order
        return self._merged([each for each in there if gang_of[each[0]] not in lost], changed) if changed else there

    def _merged(
        self, ordered: list[tuple[int, Amounts]], changed: list[tuple[int, Amounts]]
    ) -> Iterator[tuple[int, Amounts]]:
        """Victims in the order of cost: some that cost what they cost by themselves, some that cost something else."""
        costs, cost = self.supply.costs, self.selection.cost
        following = iter(ordered)
        one = next(following, None)
        for now, number, each in sorted((cost(each[0]), each[0], each) for each in changed):
            while one is not None and (costs[one[0]], one[0]) < (now, number):
                yield one
                one = next(following, None)
            yield each
        if one is not None:
            yield one
            yield from following

    def _needed(self, victims: list[tuple[int, Amounts]], free: list[int], before: int) -> tuple[tuple[int, ...], int]:
        """These victims without those whose eviction makes no difference, the most expensive considered first; and the
        seats that appear on their slot."""
        kept = [victim for victim, _ in victims]
        for victim, amounts in reversed(victims[:-1]):
            fewer = [have - amount for have, amount in zip(free, amounts, strict=True)]
            if count(fewer, self.requests) > before:
                free = fewer
                kept.remove(victim)
        return tuple(kept), count(free, self.requests) - before

    def _gain(self, seats: int) -> int:
        """Of the seats that appear, not more than are wanted."""
        self._largest_gain = max(self._largest_gain, seats)
        return min(seats, self.wanted - self.total)

    def _cost_per_seat(self, numbers: Sequence[int], gain: int) -> CostPerSeat:
        if len(numbers) == 1 and not self.supply.marked[numbers[0]]:
            violations, priority, broken, pods, lost = self.selection.cost(numbers[0])
            return (violations / gain, priority, broken / gain, 1 / gain, pods / gain, lost / gain)
        costs = [self.selection.cost(number) for number in numbers if not self.supply.marked[number]]
        return (
            sum(cost[0] for cost in costs) / gain,
            max((cost[1] for cost in costs), default=NOTHING_EVICTED),
            sum(cost[2] for cost in costs) / gain,
            len(costs) / gain,
            sum(cost[3] for cost in costs) / gain,
            sum(cost[4] for cost in costs) / gain,
        )

    # --- changes -----------------------------------------------------------------------------------

    def _evict(self, numbers: Collection[int]) -> None:
        """Choose victims, and compute the candidates again whose cost or seats change by that."""
        changed: set[int] = set()
        for number in numbers:
            if self.selection.evict(number):
                members = self.supply.members(self.supply.gang_of[number])
                changed.update(slot for member in members for slot, _ in self.supply.freed_by(member))
            for slot, _ in self.supply.freed_by(number):
                self._recount(slot)
                changed.add(slot)
        for slot in sorted(changed) if self.total < self.wanted else ():
            self._changes[slot] += 1
            if self.usable[slot]:
                self._push(slot, -1)

    def _recount(self, slot: int) -> None:
        if self.usable[slot]:
            seats = count(self.selection.free(slot), self.requests)
            self.total += seats - self.seats[slot]
            self.seats[slot] = seats

    def reprieve(self, numbers: Collection[int]) -> None:
        """Take back the choice of every one of these victims that is not needed, the most expensive first."""
        costs = self.supply.costs
        ordered = sorted(numbers, key=lambda number: (costs[number][:2], number), reverse=True)
        lost = self._seats_lost_by_all(ordered) if len(ordered) >= MANY_VICTIMS else None
        for at, number in enumerate(ordered):
            if self.total - (self._seats_lost(number) if lost is None else lost[at]) >= self.wanted:
                self.selection.reprieve(number)
                lost = None  # the others may lose more or less beside it
                for slot, _ in self.supply.freed_by(number):
                    self._recount(slot)

    def _seats_lost_by_all(self, numbers: Sequence[int]) -> list[int]:
        """`_seats_lost` of several victims, each by itself."""
        supply, victims = self.supply, np.array(numbers, dtype=np.int64)
        parts = supply.parts_of_all(victims)
        sizes = supply.parts_of[victims + 1] - supply.parts_of[victims]
        slots, free = supply.part_slot[parts], self.selection.all_free()
        room = np.full(len(parts), UNLIMITED, dtype=np.int64)
        for row, request in self.requests:
            room = np.minimum(room, (free[row, slots] - supply.part_amounts[parts, row]) // request)
        lost = np.where(self._nodes[slots], np.array(self.seats, dtype=np.int64)[slots] - np.maximum(room, 0), 0)
        return np.bincount(np.repeat(np.arange(len(victims)), sizes), lost, len(victims)).astype(np.int64).tolist()

    def _seats_lost(self, number: int) -> int:
        """Seats that vanish if a victim is reprieved."""
        lost = 0
        for slot, amounts in self.supply.freed_by(number):
            if self.usable[slot]:
                left = [have - amount for have, amount in zip(self.selection.free(slot), amounts, strict=True)]
                lost += self.seats[slot] - count(left, self.requests)
        return lost


def count(free: Sequence[int], requests: RowRequests) -> int:
    """Seats in what is free on one node."""
    least = UNLIMITED
    for row, request in requests:
        room = free[row] // request
        if room <= 0:
            return 0
        if room < least:
            least = room
    return least
