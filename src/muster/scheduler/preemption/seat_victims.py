"""Victims by counting: no placement is tried.

A node's offer is its cheapest bundle, the units that must leave before it gains a seat; a unit that lies on
several nodes is an offer of its own. The best price per seat goes first, until enough seats are there; then every
unit that turns out to be unnecessary is spared, dearest first. Prices are those of the moment: a budget that is used
up makes its pods dear, a gang that is broken already makes its other members cheap.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.cost import NOTHING_EVICTED, SingleCost
from muster.scheduler.preemption.supply import UNLIMITED, Amounts, Asks, CountableShape, NodeSupply, Price
from muster.scheduler.preemption.victims import Victim


class VictimSelection:
    """The state of one choice: who is gone, what that freed, what it used up. `copy` branches off a variant."""

    def __init__(self, ledger: NodeSupply, *, flat: bool = False, barred: Collection[int] = ()) -> None:
        self.ledger = ledger
        self.flat = flat  # priorities were weighed already: look at the rest only
        self.barred = barred  # not for sale
        self.only: list[bool] | None = None  # the slots that matter, if not all do
        self.gone: set[int] = set()
        self.drawn: dict[int, int] = {}  # budget -> pods evicted from it
        self.lost: dict[EntityKey, int] = {}  # gang -> members evicted one by one
        self._columns: dict[int, list[int]] = {}  # slots that differ from the ledger

    def copy(self) -> VictimSelection:
        other = VictimSelection(self.ledger, flat=self.flat, barred=self.barred)
        other.only = self.only
        other.gone, other.drawn, other.lost = set(self.gone), dict(self.drawn), dict(self.lost)
        other._columns = {slot: list(column) for slot, column in self._columns.items()}
        return other

    def units(self) -> list[Victim]:
        return [self.ledger.victims[number] for number in sorted(self.gone)]

    def column(self, slot: int) -> list[int]:
        """What is free on a slot now."""
        found = self._columns.get(slot)
        if found is None:
            found = self._columns[slot] = self.ledger.free[:, slot].tolist()
        return found

    def seats(self, shape: CountableShape) -> Ints:
        seats = self.ledger.seats(shape)
        asks = self.ledger.asks[shape.shape.id]
        for slot, column in self._columns.items():
            seats[slot] = count(column, asks) if shape.open[slot] else 0
        return seats

    def evict(self, number: int, sign: int = 1) -> bool:
        """Let a unit go (or come back); says whether a gang broke by it."""
        ledger = self.ledger
        (self.gone.add if sign > 0 else self.gone.discard)(number)
        only = self.only
        for slot, amounts in ledger.gives[number]:
            if only is None or only[slot]:
                column = self.column(slot)
                for place, amount in enumerate(amounts):
                    column[place] += sign * amount
        unit = ledger.victims[number]
        if ledger.cost.allowed and not unit.marked:
            for budget, pods in ledger.cost.hits(unit).items():
                self.drawn[budget] = self.drawn.get(budget, 0) + sign * pods
        gang = ledger.gang[number]
        if gang is None:
            return False
        self.lost[gang] = self.lost.get(gang, 0) + sign
        return self.lost[gang] == ledger.slack[gang] + 1

    def price(self, number: int) -> SingleCost:
        """What a unit costs at this moment."""
        prices = self.ledger.costs[number]
        unit = self.ledger.victims[number]
        if unit.marked:
            return prices
        gang = self.ledger.gang[number]
        broken = prices[2] if gang is None else int(self.lost.get(gang, 0) == self.ledger.slack[gang])
        over = self._overdraws(unit) if self.ledger.cost.allowed else 0
        return (over, 0 if self.flat else prices[1], broken, prices[3], prices[4])

    def _overdraws(self, unit: Victim) -> int:
        toll = self.ledger.cost
        return sum(
            max(0, self.drawn.get(budget, 0) + pods - max(self.drawn.get(budget, 0), toll.allowed[budget]))
            for budget, pods in toll.hits(unit).items()
        )

    def sit(self, shape: CountableShape, scope: Bools, wanted: int) -> None:
        """Take the seats, on nodes that were emptied first."""
        seats = np.where(scope, self.seats(shape), 0)
        emptied = {slot for number in self.gone for slot, _ in self.ledger.gives[number]}
        amounts = self.ledger.amounts(shape.shape.footprint)
        for slot in sorted(np.flatnonzero(seats).tolist(), key=lambda slot: (slot not in emptied, seats[slot], slot)):
            taken = min(wanted, int(seats[slot]))
            column = self.column(slot)
            for place, amount in enumerate(amounts):
                column[place] -= taken * amount
            wanted -= taken
            if wanted <= 0:
                return


class SeatVictims:
    """Seats of one shape in one scope (a domain, or all nodes), bought on a market."""

    def __init__(self, market: VictimSelection, shape: CountableShape, scope: Bools) -> None:
        self.market = market
        self.ledger = market.ledger
        self.asks = self.ledger.asks[shape.shape.id]
        inside = scope & shape.open
        self.scope: list[bool] = inside.tolist()
        self._slots: list[int] = np.flatnonzero(inside).tolist()
        self.seats: list[int] = np.where(scope, market.seats(shape), 0).tolist()
        self.total = sum(self.seats)
        self._heap: list[tuple[Price, tuple[int, ...], int, int]] = []

    def run(self, wanted: int) -> bool:
        """Let units go until there are so many seats; False if all of them together do not suffice."""
        self.wanted = wanted
        if self.total >= wanted:
            return True
        started = set(self.market.gone)
        there = self._for_sale()
        if self._all_together(there) <= wanted:
            for number in there:
                self.market.evict(number)
            self._recount_all()
            self.spare(there)
            return self.total >= wanted
        self._open(there)
        while self.total < wanted:
            if not self._heap:
                return False
            _, _, slot, number = heapq.heappop(self._heap)
            offer = self._best(slot, number)
            if offer is None:
                continue
            if self._heap and offer > self._heap[0][:2]:
                heapq.heappush(self._heap, (*offer, slot, number))
                continue
            self._take(offer[1])
        self.spare(self.market.gone - started)
        return True

    def _for_sale(self) -> list[int]:
        """Units on the nodes of the scope."""
        market = self.market
        on_slot = self.ledger.on_slot
        there = {number for slot in self._slots if slot in on_slot for number, _ in on_slot[slot]}
        return sorted(there.difference(market.gone, market.barred))

    def _all_together(self, numbers: Collection[int]) -> int:
        """Seats if all of these left: where that is just enough, there is nothing to choose."""
        changed: dict[int, list[int]] = {}
        for number in numbers:
            for slot, amounts in self.ledger.gives[number]:
                if self.scope[slot]:
                    column = changed.get(slot)
                    if column is None:
                        column = changed[slot] = list(self.market.column(slot))
                    for place, amount in enumerate(amounts):
                        column[place] += amount
        return self.total + sum(count(column, self.asks) - self.seats[slot] for slot, column in changed.items())

    def _recount_all(self) -> None:
        for slot in self._slots:
            self._recount(slot)

    def _open(self, there: Collection[int]) -> None:
        for slot in self._slots:
            if slot in self.ledger.on_slot:
                self._offer(slot, -1)
        for number in there:
            if len(self.ledger.gives[number]) > 1:
                self._offer(-1, number)

    def _offer(self, slot: int, number: int) -> None:
        offer = self._best(slot, number)
        if offer is not None:
            heapq.heappush(self._heap, (*offer, slot, number))

    def _best(self, slot: int, number: int) -> tuple[Price, tuple[int, ...]] | None:
        """The cheapest bundle of a node, or one unit that lies on several, at the price of the moment."""
        market = self.market
        if slot < 0:
            gain = self._gain((number,)) if number not in market.gone and number not in market.barred else 0
            return (self._price((number,), gain), (number,)) if gain > 0 else None
        before, column = self.seats[slot], market.column(slot)
        free, bundle = list(column), list[tuple[int, Amounts]]()
        for unit, amounts in self._cheapest_first(slot):
            bundle.append((unit, amounts))
            for place, amount in enumerate(amounts):
                free[place] += amount
            if count(free, self.asks) > before:
                needed = self._needed(bundle, free, before)
                return self._price(needed, self._gain(needed)), needed
        return None

    def _cheapest_first(self, slot: int) -> list[tuple[int, Amounts]]:
        """The units on a node that can still go, at the prices of the moment."""
        market, ledger = self.market, self.ledger
        gone, barred = market.gone, market.barred
        there = [each for each in ledger.on_slot[slot] if each[0] not in gone and each[0] not in barred]
        if not market.lost and not market.drawn and not market.flat:
            return there
        return sorted(there, key=lambda each: (market.price(each[0]), each[0]))

    def _needed(self, bundle: list[tuple[int, Amounts]], free: list[int], before: int) -> tuple[int, ...]:
        """The bundle without the units whose leaving did not matter, dearest considered first."""
        kept = [unit for unit, _ in bundle]
        for unit, amounts in reversed(bundle[:-1]):
            fewer = [have - amount for have, amount in zip(free, amounts, strict=True)]
            if count(fewer, self.asks) > before:
                free = fewer
                kept.remove(unit)
        return tuple(kept)

    def _gain(self, bundle: Collection[int]) -> int:
        """Seats that appear in the scope if these units leave, not counting more than are wanted."""
        changed: dict[int, list[int]] = {}
        for number in bundle:
            for slot, amounts in self.ledger.gives[number]:
                if self.scope[slot]:
                    column = changed.setdefault(slot, list(self.market.column(slot)))
                    for place, amount in enumerate(amounts):
                        column[place] += amount
        gain = sum(count(column, self.asks) - self.seats[slot] for slot, column in changed.items())
        return min(gain, self.wanted - self.total)

    def _price(self, bundle: Collection[int], gain: int) -> Price:
        market = self.market
        paid = [(market.price(number), number) for number in bundle if not self.ledger.victims[number].marked]
        return (
            sum(price[0] for price, _ in paid) / gain,
            max((price[1] for price, _ in paid), default=NOTHING_EVICTED),
            sum(price[2] for price, _ in paid) / gain,
            len(paid) / gain,
            sum(price[3] for price, _ in paid) / gain,
            sum(price[4] for price, _ in paid) / gain,
        )

    def _take(self, bundle: Collection[int]) -> None:
        offers: set[tuple[int, int]] = set()
        for number in bundle:
            if self.market.evict(number):
                gang = self.ledger.gang[number]
                mates = self.ledger.mates[gang] if gang is not None else ()
                offers.update((slot, -1) for mate in mates for slot, _ in self.ledger.gives[mate])
            for slot, _ in self.ledger.gives[number]:
                self._recount(slot)
                offers.add((slot, -1))
        for slot, number in sorted(offers) if self.total < self.wanted else ():
            if self.scope[slot]:
                self._offer(slot, number)

    def _recount(self, slot: int) -> None:
        if self.scope[slot]:
            seats = count(self.market.column(slot), self.asks)
            self.total += seats - self.seats[slot]
            self.seats[slot] = seats

    def spare(self, numbers: Collection[int]) -> None:
        """Put back every one of these units that is not needed, dearest first."""
        prices = self.ledger.costs
        for number in sorted(numbers, key=lambda number: (prices[number][:2], number), reverse=True):
            if self.total - self._loss(number) >= self.wanted:
                self.market.evict(number, -1)
                for slot, _ in self.ledger.gives[number]:
                    self._recount(slot)

    def _loss(self, number: int) -> int:
        """Seats that vanish if a unit comes back."""
        lost = 0
        for slot, amounts in self.ledger.gives[number]:
            if self.scope[slot]:
                left = [have - amount for have, amount in zip(self.market.column(slot), amounts, strict=True)]
                lost += self.seats[slot] - count(left, self.asks)
        return lost


def count(column: Sequence[int], asks: Asks) -> int:
    """Seats in what is free on one node."""
    least = UNLIMITED
    for place, ask in asks:
        room = column[place] // ask
        if room <= 0:
            return 0
        if room < least:
            least = room
    return least
