"""`select_victims`: the cheapest victims for a request, and the placement that is possible without them.

First whether evicting can help at all, and how many pods it can place at most. Then candidate sets: chosen by
counting where counts decide; the shortest sufficient prefix of the victims by cost; all victims, less those that can
be reprieved. Every candidate set is made irreducible, the cheapest is chosen. If that violates a budget, victims that
violate nothing are tried as well; with few victims a search over all cheaper sets proves that no cheaper one suffices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from muster.api import selectors, types
from muster.scheduler.cache.arrays import Bools
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, leaves, rebuilt, shapes_of
from muster.scheduler.placement.verdict import Placed, Undecided
from muster.scheduler.preemption.budget_choices import choices_within_budgets
from muster.scheduler.preemption.cheapest_set import SufficiencyCache, cheapest_sufficient
from muster.scheduler.preemption.cost import EvictionCost
from muster.scheduler.preemption.group_victims import GroupVictims, SeatsWanted
from muster.scheduler.preemption.result import NoCandidates, PreemptionPlan
from muster.scheduler.preemption.seat_victims import SeatVictims
from muster.scheduler.preemption.supply import CountableShape, NodeSupply, countable
from muster.scheduler.preemption.victim_selection import VictimSelection
from muster.scheduler.preemption.victim_table import Victim, VictimTable
from muster.scheduler.preemption.victims import Quorum
from muster.scheduler.preemption.what_if import EvictionTrial
from muster.scheduler.runtime.evaluator import Evaluator

MOST_REPLANNED = 64  # victims that are reprieved one by one with a new plan each


MANY_VICTIMS = 1000  # beyond this number a plan without all of them is too much work to be repeated


FEW_VICTIMS = 200  # up to this number a counted set is compared with what remains after reprieving as well


MOST_SEARCHED = 12  # victims among which the chosen set is proven to be the cheapest


NO_VICTIMS = "No preemption victims found for incoming preemptor"


NO_PLAN = "no plan was found after the evictions"


NOT_EVEN_ALL = NoCandidates(True, "not even without all pods of lower priority")


def select_victims(
    request: GroupRequest,
    evaluator: Evaluator,
    *,
    victims: VictimTable,
    quorums: Mapping[EntityKey, Quorum],
    budgets: Sequence[types.PodDisruptionBudget],
    nominated: Sequence[tuple[Shape, int]] = (),
    leaving: Collection[str] = (),
    budget: Budget,
) -> PreemptionPlan | NoCandidates:
    """The cheapest victims without which as many pending pods as possible are placed, and every minimum holds."""
    if not victims:
        return NoCandidates(True, NO_VICTIMS)
    cost = EvictionCost(victims, budgets, quorums, lambda uid: evaluator.cluster.pods[uid].pod)
    what_if = EvictionTrial(evaluator, nominated, sorted(leaving), budget.limit)
    return _Selector(request, what_if, victims, cost).run()


class _Selector:
    """One call of `select_victims`."""

    def __init__(self, request: GroupRequest, what_if: EvictionTrial, victims: VictimTable, cost: EvictionCost) -> None:
        self.request = request
        self.what_if = what_if
        self.cluster = what_if.cluster
        self.victims, self.costs = cost.cheapest_first(victims)
        self.cost = cost
        self.target = request  # the request for as many pods as can be placed at best
        self.pool: Sequence[Victim] = self.victims
        self._suffices: Callable[[Sequence[Victim]], bool] = lambda victims: False
        self.shapes = self._countable_shapes()
        self.supply = self._supply() if self.shapes else None

    def run(self) -> PreemptionPlan | NoCandidates:
        shape = self._only_countable()
        victims = self._by_counting(shape) if shape is not None else self._by_planning()
        if isinstance(victims, NoCandidates):
            return victims
        verdict = self.what_if.plan(self.target, victims, extras=True)
        if not isinstance(verdict, Placed):
            return NoCandidates(False, NO_PLAN)
        ordered = tuple(sorted(victims, key=lambda victim: victim.key))
        return PreemptionPlan(verdict, ordered, self.cost.violations(victims))

    def _countable_shapes(self) -> dict[int, CountableShape]:
        """Every shape of the request as one that can be counted; none if one of them cannot."""
        shapes = shapes_of(self.request)
        # One of each kind among the victims, and all that leave anyway.
        pods = [footprint.pod for footprint in self.victims.footprints]
        pods += [self.cluster.pods[uid].footprint.pod for uid in self.what_if.leaving]
        found: dict[int, CountableShape] = {}
        for number, shape in shapes.items():
            one = countable(self.what_if.evaluator, shape, pods)
            if one is None:
                return {}
            found[number] = one
        return found

    def _supply(self) -> NodeSupply:
        supply = NodeSupply(self.cluster, list(self.shapes.values()), self.victims, self.costs, self.cost)
        for shape, slot in self.what_if.nominated:
            supply.add(shape.footprint, slot, -1)
        for uid in self.what_if.leaving:
            entry = self.cluster.pods[uid]
            if entry.slot >= 0:
                supply.add(entry.footprint, entry.slot, +1)
        return supply

    # --- by counting: one PodGroup of one shape ----------------------------------------------------

    def _only_countable(self) -> CountableShape | None:
        """The shape of a request for which the counts are exact."""
        exact = isinstance(self.request, PodGroupRequest) and len(self.shapes) == 1
        return next(iter(self.shapes.values())) if exact else None

    def _by_counting(self, shape: CountableShape) -> list[Victim] | NoCandidates:
        request, supply = self.request, self.supply
        assert isinstance(request, PodGroupRequest)
        assert supply is not None
        groups = GroupVictims(self.cluster, supply, self.shapes, {request.key: {shape.shape.id: 1}})
        domains = list(groups.domains(request, groups.everywhere()))
        most = supply.seats(shape, supply.add_freed(supply.free.copy(), np.ones(len(self.victims), dtype=np.bool_)))
        count = max((min(len(request.members), int(most[domain].sum())) for domain in domains), default=0)
        if count < max(1, request.need):
            return NOT_EVEN_ALL
        self.target = request.with_minimum(request.bound + count)

        def suffices(victims: Sequence[Victim]) -> bool:
            seats = supply.seats(shape, supply.free_without(self._numbers[victim.key] for victim in victims))
            return any(int(seats[domain].sum()) >= count for domain in domains)

        self._suffices = suffices
        found = self._selections({request.key: {shape.shape.id: count}})
        assert found, "without any of the victims there is room"
        sets = [selection.victims() for selection in found]
        if len(self.victims) <= FEW_VICTIMS:
            sets += map(self._irreducible, self._after_reprieve(list(self.victims)))
        if len(domains) > 1:
            sets += [fewer for selection in found for fewer in self._elsewhere(selection, shape, count, domains)]
        best = min(sets, key=self._cost) if len(sets) > 1 else sets[0]
        if len(self.victims) <= MOST_SEARCHED:
            return cheapest_sufficient(self.victims, self.cost, suffices, below=best, monotone=True) or best
        wanted = {request.key: {shape.shape.id: count}}
        return self._within_budgets(best, lambda pool: self._counted_among(pool, wanted))

    def _counted_among(self, pool: list[Victim], wanted: SeatsWanted) -> Iterator[list[Victim]]:
        allowed = {victim.key for victim in pool}
        excluded = {number for number, victim in enumerate(self.victims) if victim.key not in allowed}
        return (selection.victims() for selection in self._selections(wanted, excluded))

    def _within_budgets(
        self, best: list[Victim], among: Callable[[list[Victim]], Iterator[list[Victim]]]
    ) -> list[Victim]:
        """The best of some victims that violate no budget, if there are any; only asked if `best` violates one."""
        if self.cost.violations(best):
            for pool in choices_within_budgets(self.pool, self.cost):
                if self._suffices(pool):
                    return min([best, *map(self._irreducible, among(pool))], key=self._cost)
        return best

    @cached_property
    def _numbers(self) -> dict[EntityKey, int]:
        return {victim.key: number for number, victim in enumerate(self.victims)}

    def _cost(self, victims: Sequence[Victim]) -> tuple[object, ...]:
        return (*self.cost.cost(victims), [victim.key for victim in victims])

    def _selections(self, wanted: SeatsWanted, excluded: Collection[int] = frozenset()) -> list[VictimSelection]:
        """Victims by counting: by priority, and, where several priorities are hit, ignoring those up to the highest."""
        if self.supply is None:
            return []
        groups = GroupVictims(self.cluster, self.supply, self.shapes, wanted)
        start = VictimSelection(self.supply, excluded=excluded)
        first = groups.select(self.request, start, groups.everywhere())
        if first is None:
            return []
        hit = {victim.priority for victim in first.victims() if not victim.marked}
        if len(hit) < 2:
            return [first]
        above = set(np.flatnonzero(self.victims.priority > max(hit)).tolist()).union(excluded)
        start = VictimSelection(self.supply, ignore_priority=True, excluded=above)
        second = groups.select(self.request, start, groups.everywhere())
        return [first] if second is None else [first, second]

    def _elsewhere(
        self, selection: VictimSelection, shape: CountableShape, count: int, domains: list[Bools]
    ) -> Iterator[list[Victim]]:
        """The victims needed in each domain that has enough seats with a selection, even one made for another."""
        assert self.supply is not None
        chosen = sorted(selection.chosen)
        seats = self.supply.seats(shape, self.supply.free_without(chosen))
        for domain in domains:
            if int(seats[domain].sum()) >= count:
                other = VictimSelection(self.supply)
                other.evict_all(np.array(chosen, dtype=np.int64))
                seat_victims = SeatVictims(other, shape, domain)
                seat_victims.select(count)
                seat_victims.reprieve(chosen)
                yield other.victims()

    # --- by planning -------------------------------------------------------------------------------

    def _by_planning(self) -> list[Victim] | NoCandidates:
        most: Placed | None = None
        hopeless = True
        for pool in self._pools():
            verdict = self.what_if.plan(self.request, pool, extras=True)
            hopeless = hopeless and not isinstance(verdict, Undecided)
            if isinstance(verdict, Placed):
                most, self.pool = verdict, pool
                break
        if most is None:
            return NoCandidates(hopeless, NOT_EVEN_ALL.reason)
        self.target = _raised(self.request, most)
        monotone = self._monotone()
        self._suffices = SufficiencyCache(self.what_if, self.target, self.supply, self.shapes, monotone=monotone)
        found = {frozenset(victim.key for victim in one): one for one in self._candidates(most)}
        if not found:
            return NoCandidates(False, NO_PLAN)
        best = min(map(self._irreducible, found.values()), key=self._cost)
        if len(self.victims) <= MOST_SEARCHED:
            return cheapest_sufficient(self.victims, self.cost, self._suffices, below=best, monotone=monotone) or best
        return self._within_budgets(best, self._planned_among)

    def _pools(self) -> Iterator[list[Victim]]:
        """All victims; first without those that the required affinity of the request selects."""
        terms = [term for shape in shapes_of(self.request).values() for term in _required_affinity(shape.pod)]
        if terms:
            yield [victim for victim in self.victims if not self._selected(victim, terms)]
        yield list(self.victims)

    def _selected(self, victim: Victim, terms: list[types.PodAffinityTerm]) -> bool:
        labels = [self.cluster.pods[uid].pod.metadata.labels for uid in victim.uids]
        return any(selectors.matches(term.label_selector, one) for term in terms for one in labels)

    def _candidates(self, most: Placed) -> Iterator[list[Victim]]:
        """Sets that suffice. Where there are very many victims, the first that is found has to do."""
        pool, few, counted = list(self.pool), len(self.pool) <= MANY_VICTIMS, False
        for selection in self._selections(_seats_wanted(self.request, most)):
            if self._suffices(selection.victims()):
                counted = True
                yield selection.victims()
        if few:
            prefix = self._shortest_prefix(pool)
            yield prefix
            yield from self._after_reprieve(prefix)
        if few or not counted:
            yield from self._after_reprieve(pool)

    def _planned_among(self, pool: list[Victim]) -> Iterator[list[Victim]]:
        """Sets out of a pool that suffices."""
        yield self._shortest_prefix(pool)
        yield from self._after_reprieve(pool)

    def _after_reprieve(self, pool: list[Victim]) -> Iterator[list[Victim]]:
        for order in (list(reversed(pool)), sorted(pool, key=_importance)):
            remaining = self.what_if.victims_after_reprieve(self.target, pool, order)
            if remaining is not None and self._suffices(remaining):
                yield remaining

    def _shortest_prefix(self, pool: list[Victim]) -> list[Victim]:
        """The cheapest victims, as many of them as it takes."""
        low, high = 0, len(pool)
        while low < high:
            middle = (low + high) // 2
            if self._suffices(pool[:middle]):
                high = middle
            else:
                low = middle + 1
        return pool[:low]

    def _monotone(self) -> bool:
        """Whether one more eviction never hurts. It can where pods require affinity or are spread over others."""
        pods = [shape.pod for shape in shapes_of(self.request).values()]
        return not any(_required_affinity(pod) or pod.spec.topology_spread_constraints for pod in pods)

    def _irreducible(self, victims: list[Victim]) -> list[Victim]:
        """The victims less every one that the rest suffices without: those over a budget first, then the dearest."""
        if len(victims) > MOST_REPLANNED:
            return victims
        kept, untried = list(victims), sorted(victims, key=self.cost.single)
        while untried:
            victim = untried[-1]
            if self.cost.allowed:
                victim = max(reversed(untried), key=lambda one: self._violations(one, kept))
            untried.remove(victim)
            fewer = [other for other in kept if other is not victim]
            if self._suffices(fewer):
                kept = fewer
        return kept

    def _violations(self, victim: Victim, kept: list[Victim]) -> int:
        """Budget violations that a victim adds to those of the others."""
        return self.cost.violations(kept) - self.cost.violations([other for other in kept if other is not victim])


def _importance(victim: Victim) -> tuple[int, int, int, str]:
    """Most important first: priority, composite before group before pod, more pods, longest running."""
    rank = {"CompositePodGroup": 0, "PodGroup": 1}.get(victim.key.kind, 1 if victim.losses else 2)
    return (-victim.priority, rank, -len(victim.uids), min(victim.starts, default=""))


def _required_affinity(pod: types.Pod) -> tuple[types.PodAffinityTerm, ...]:
    near = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
    return (near.required_during_scheduling_ignored_during_execution or ()) if near is not None else ()


def _seats_wanted(request: GroupRequest, placed: Placed) -> SeatsWanted:
    """How many pods of which shape are placed in each PodGroup."""
    group_of = {member.uid: (leaf.key, member.shape.id) for leaf in leaves(request) for member in leaf.members}
    wanted: dict[EntityKey, Counter[int]] = {}
    for assignment in placed.assignments:
        key, shape = group_of[assignment.uid]
        wanted.setdefault(key, Counter())[shape] += 1
    return wanted


def _raised(request: GroupRequest, placed: Placed) -> GroupRequest:
    """The request with the minimums raised to what a placement reaches."""
    counts = {key: sum(shapes.values()) for key, shapes in _seats_wanted(request, placed).items()}

    def raised(group: GroupRequest) -> GroupRequest:
        if isinstance(group, PodGroupRequest):
            count = counts.get(group.key, 0)
            return group.with_minimum(group.bound + count) if count else group
        satisfied = sum(child.key in placed.placed_groups for child in group.children)
        return group.with_minimum(max(group.minimum, satisfied))

    return rebuilt(request, raised)
