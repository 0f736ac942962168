"""Seats and victims, chosen together.

First the question whether evicting can help at all, and how many members it can seat at most. Then
candidates: by counting where counts decide, by planning on the emptied cluster otherwise, at the lowest
priority that suffices. Every candidate is made irreducible, the cheapest wins, and with few units a
search over all cheaper sets proves that nothing cheaper exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from muster.api import types
from muster.scheduler.cluster import Cluster
from muster.scheduler.planning import plan
from muster.scheduler.planning.demand import Demand, GroupKey, Leaf, leaves
from muster.scheduler.planning.verdict import Budget, Placed, Undecided, Verdict
from muster.scheduler.preemption.counting import Choice, Ledger, countable
from muster.scheduler.preemption.plan import Eviction, NoHelp
from muster.scheduler.preemption.toll import Toll
from muster.scheduler.preemption.units import Unit
from muster.scheduler.shapes import Shape
from muster.scheduler.trial import Trial

MOST_REPLANNED = 64  # victims that are tried one by one with a new plan each
MOST_SEARCHED = 12  # units among which the choice is proven to be the cheapest

NO_VICTIMS = "No preemption victims found for incoming preemptor"


def choose(
    demand: Demand,
    cluster: Cluster,
    *,
    units: Sequence[Unit],
    quorums: Mapping[GroupKey, tuple[int, int]],
    budgets: Sequence[types.PodDisruptionBudget],
    held: Sequence[tuple[Shape, int]] = (),
    leaving: Collection[str] = (),
    budget: Budget,
) -> Eviction | NoHelp:
    """The cheapest eviction after which as many pending members as possible sit, and every minimum holds."""
    if not units:
        return NoHelp(True, NO_VICTIMS)
    toll = Toll(units, budgets, quorums, lambda uid: cluster.pods[uid].pod)
    return _Chooser(demand, cluster, list(units), toll, list(held), sorted(leaving), budget.limit).run()


class _Chooser:
    def __init__(
        self,
        demand: Demand,
        cluster: Cluster,
        units: list[Unit],
        toll: Toll,
        held: list[tuple[Shape, int]],
        leaving: list[str],
        steps: int,
    ) -> None:
        self.demand = demand
        self.cluster = cluster
        self.units = sorted(units, key=toll.alone)
        self.toll = toll
        self.held = held
        self.leaving = [uid for uid in leaving if uid in cluster.pods]
        self.steps = steps
        self.target = demand

    def run(self) -> Eviction | NoHelp:
        shape = self._counted_shape()
        victims = self._by_counting(shape) if shape is not None else self._by_planning()
        if isinstance(victims, NoHelp):
            return victims
        victims = self._irreducible(victims)
        victims = self._cheaper_set(victims) or victims
        verdict = self._plan_without(victims, self.demand, extras=True)
        if not isinstance(verdict, Placed):
            return NoHelp(False, "no plan was found after the evictions")
        return Eviction(verdict, tuple(sorted(victims, key=lambda unit: unit.key)), self.toll.violations(victims))

    # --- what-if -----------------------------------------------------------------------------------

    def _plan_without(self, victims: Sequence[Unit], demand: Demand, *, extras: bool = False) -> Verdict:
        with self._emptied(victims) as trial:
            return plan(demand, trial, Budget(self.steps), extras=extras)

    def _emptied(self, victims: Sequence[Unit]) -> _Emptied:
        return _Emptied(self.cluster, self.held, self.leaving, victims)

    def _suffices(self, victims: Sequence[Unit]) -> bool:
        return isinstance(self._plan_without(victims, self.target), Placed)

    # --- by counting -------------------------------------------------------------------------------

    def _counted_shape(self) -> Shape | None:
        demand = self.demand
        if not isinstance(demand, Leaf) or not demand.members:
            return None
        shape = demand.members[0].shape
        alike = all(member.shape is shape for member in demand.members)
        return shape if alike and countable(self.cluster, shape) else None

    def _by_counting(self, shape: Shape) -> list[Unit] | NoHelp:
        demand = self.demand
        assert isinstance(demand, Leaf)
        ledger = Ledger(self.cluster, shape, self.units, self.toll)
        for other, slot in self.held:
            ledger.shift(other.footprint.vector, slot, -1)
        for uid in self.leaving:
            entry = self.cluster.pods[uid]
            if entry.slot >= 0:
                ledger.shift(entry.footprint.vector, entry.slot, +1)
        most = ledger.everything_gone()
        scopes = [(min(len(demand.members), int(most[scope].sum())), scope) for scope in self._scopes(demand)]
        seated = max((count for count, _ in scopes), default=0)
        if seated < max(1, demand.need):
            return NoHelp(True, "not even without all pods of lower priority")
        self.target = replace(demand, minimum=demand.bound + seated)
        found = [Choice(ledger, scope).run(seated) for count, scope in scopes if count == seated]
        return min((victims for victims in found if victims is not None), key=self.toll.cost)

    def _scopes(self, demand: Leaf) -> Iterator[np.ndarray]:
        """The domains in which the group may lie, or all nodes."""
        if demand.topology is None:
            yield np.ones(self.cluster.size, dtype=np.bool_)
            return
        values = self.cluster.labels(demand.topology)
        if demand.domains:
            pinned = {self.cluster.label_id(demand.topology, domain) for domain in demand.domains}
            if len(pinned) == 1 and 0 not in pinned:
                yield values == pinned.pop()
            return
        for value in np.unique(values[values > 0]):
            yield values == value

    # --- by planning -------------------------------------------------------------------------------

    def _by_planning(self) -> list[Unit] | NoHelp:
        everyone = self._plan_without(self.units, self.demand, extras=True)
        if not isinstance(everyone, Placed):
            hopeless = not isinstance(everyone, Undecided)
            return NoHelp(hopeless, "not even without all pods of lower priority")
        self.target = _aim(self.demand, everyone)
        pools = [self.units]
        lowest = self._lowest_priority_that_suffices()
        if lowest is not None:
            pools.append(lowest)
        harmless = [unit for unit in (lowest or self.units) if not self.toll.violations([unit])]
        if len(harmless) < len(pools[-1]) and self._suffices(harmless):
            pools.append(harmless)
        return min((self._from_pool(pool) for pool in pools), key=self.toll.cost)

    def _lowest_priority_that_suffices(self) -> list[Unit] | None:
        levels = sorted({unit.priority for unit in self.units})
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._suffices([unit for unit in self.units if unit.priority <= levels[middle]]):
                high = middle
            else:
                low = middle + 1
        return [unit for unit in self.units if unit.priority <= levels[low]] if low < len(levels) - 1 else None

    def _from_pool(self, pool: list[Unit]) -> list[Unit]:
        """Plan on the cluster without the pool, then let everyone stay whom the seats do not touch."""
        if len(pool) <= MOST_REPLANNED:
            return pool
        verdict = self._plan_without(pool, self.target)
        if not isinstance(verdict, Placed):
            return pool
        with self._emptied(pool) as trial:
            shapes = {member.uid: member.shape for leaf in leaves(self.target) for member in leaf.members}
            for seat in verdict.seats:
                trial.place(shapes[seat.uid], seat.index)
            victims = [unit for unit in reversed(pool) if not self._can_stay(trial, unit)]
        return victims if self._suffices(victims) else pool

    def _can_stay(self, trial: Trial, unit: Unit) -> bool:
        """Put a unit back beside the seats; take it away again where a node then holds too much."""
        mark = trial.mark()
        slots = [self.cluster.pods[uid].slot for uid in unit.uids]
        for uid in unit.uids:
            trial.restore(uid)
        if (self.cluster.used[:, slots] > self.cluster.alloc[:, slots]).any():
            trial.undo(mark)
            return False
        return True

    # --- fewer, cheaper ----------------------------------------------------------------------------

    def _irreducible(self, victims: list[Unit]) -> list[Unit]:
        """Spare whoever can be spared with a new plan, dearest first."""
        if len(victims) > MOST_REPLANNED:
            return victims
        kept = sorted(victims, key=self.toll.alone)
        for unit in reversed(list(kept)):
            fewer = [other for other in kept if other is not unit]
            if self._suffices(fewer):
                kept = fewer
        return kept

    def _cheaper_set(self, victims: list[Unit]) -> list[Unit] | None:
        """With few units, look at every cheaper set in order of price: the first that suffices is the best there is."""
        if len(self.units) > MOST_SEARCHED:
            return None
        limit = self.toll.cost(victims)
        cheaper = [subset for subset in _subsets(self.units, len(self.units)) if self.toll.cost(subset) < limit]
        cheaper.sort(key=lambda subset: (self.toll.cost(subset), [unit.key for unit in subset]))
        failed: list[frozenset[GroupKey]] = []
        for subset in cheaper:
            keys = frozenset(unit.key for unit in subset)
            if any(keys <= known for known in failed):
                continue
            if self._suffices(subset):
                return subset
            failed.append(keys)
        return None


class _Emptied:
    """A trial without some pods: those that leave anyway and the victims; seats of others are taken."""

    def __init__(
        self, cluster: Cluster, held: list[tuple[Shape, int]], leaving: list[str], victims: Sequence[Unit]
    ) -> None:
        self._trial = cluster.trial()
        self._held, self._leaving, self._victims = held, leaving, victims

    def __enter__(self) -> Trial:
        trial = self._trial.__enter__()
        for shape, slot in self._held:
            trial.place(shape, slot)
        for uid in self._leaving:
            trial.evict(uid)
        for unit in self._victims:
            for uid in unit.uids:
                trial.evict(uid)
        return trial

    def __exit__(self, *error: object) -> None:
        self._trial.__exit__(None, None, None)


def _subsets(units: list[Unit], most: int) -> Iterator[list[Unit]]:
    for size in range(most + 1):
        for subset in combinations(units, size):
            yield list(subset)


def _aim(demand: Demand, placed: Placed) -> Demand:
    """The demand that asks for as many members of each leaf as could be seated at best."""
    homes = {member.uid: leaf.key for leaf in leaves(demand) for member in leaf.members}
    seated: dict[GroupKey, int] = {}
    for seat in placed.seats:
        seated[homes[seat.uid]] = seated.get(homes[seat.uid], 0) + 1
    return _raise(demand, seated, placed.placed_groups)


def _raise(demand: Demand, seated: Mapping[GroupKey, int], won: Collection[GroupKey]) -> Demand:
    if isinstance(demand, Leaf):
        count = seated.get(demand.key, 0)
        return replace(demand, minimum=demand.bound + count) if count else demand
    children = tuple(_raise(child, seated, won) for child in demand.children)
    return replace(demand, children=children, minimum=max(demand.minimum, sum(c.key in won for c in children)))
