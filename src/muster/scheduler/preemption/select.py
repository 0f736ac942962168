"""Seats and victims, chosen together.

First the question whether evicting can help at all, and how many members it can seat at most. Then
candidates: bought by counting where counts decide; the smallest sufficient stretch of the cheapest units; seats on
the emptied cluster with everyone let back who has room. Every candidate is made irreducible, the cheapest wins, and
with few units a search over all cheaper sets proves that nothing cheaper exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from muster.api import selectors, types
from muster.scheduler.cache.arrays import Bools
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, leaves, rebuilt, shapes_of
from muster.scheduler.placement.verdict import Budget, Placed, Undecided
from muster.scheduler.preemption.cheapest_set import SufficiencyCache, cheapest_sufficient
from muster.scheduler.preemption.cost import EvictionCost
from muster.scheduler.preemption.group_victims import GroupVictims, Lots
from muster.scheduler.preemption.result import NoCandidates, PreemptionPlan
from muster.scheduler.preemption.seat_victims import SeatVictims, VictimSelection
from muster.scheduler.preemption.supply import CountableShape, NodeSupply, counted
from muster.scheduler.preemption.victims import Quorum, Victim
from muster.scheduler.preemption.what_if import EvictionTrial
from muster.scheduler.runtime.evaluator import Evaluator

MOST_REPLANNED = 64  # victims that are tried one by one with a new plan each


MANY_UNITS = 1000  # beyond, taking everyone away in thought is too much work to do it often


FEW_UNITS = 200  # up to here a counted choice is held against that of seats on the emptied cluster as well


MOST_SEARCHED = 12  # units among which the choice is proven to be the cheapest


NO_VICTIMS = "No preemption victims found for incoming preemptor"


NO_PLAN = "no plan was found after the evictions"


NOT_EVEN = NoCandidates(True, "not even without all pods of lower priority")


def select_victims(
    request: GroupRequest,
    evaluator: Evaluator,
    *,
    units: Sequence[Victim],
    quorums: Mapping[EntityKey, Quorum],
    budgets: Sequence[types.PodDisruptionBudget],
    held: Sequence[tuple[Shape, int]] = (),
    leaving: Collection[str] = (),
    budget: Budget,
) -> PreemptionPlan | NoCandidates:
    """The cheapest eviction after which as many pending members as possible sit, and every minimum holds."""
    if not units:
        return NoCandidates(True, NO_VICTIMS)
    toll = EvictionCost(units, budgets, quorums, lambda uid: evaluator.cluster.pods[uid].pod)
    what_if = EvictionTrial(evaluator, held, sorted(leaving), budget.limit)
    return _Chooser(request, what_if, units, toll).run()


class _Chooser:
    def __init__(
        self, request: GroupRequest, what_if: EvictionTrial, units: Sequence[Victim], toll: EvictionCost
    ) -> None:
        self.request = request
        self.what_if = what_if
        self.cluster = what_if.cluster
        prices = list(map(toll.alone, units))
        order = sorted(range(len(units)), key=prices.__getitem__)
        self.victims = [units[at] for at in order]  # cheapest first
        self.prices = [prices[at] for at in order]
        self.cost = toll
        self.target = request
        self.pool = self.victims
        self._suffices: Callable[[Sequence[Victim]], bool] = lambda victims: False
        self.shapes = self._counted_shapes()
        self.supply = self._open_ledger() if self.shapes else None

    def run(self) -> PreemptionPlan | NoCandidates:
        exact = self._one_counted()
        victims = self._by_counting(exact) if exact is not None else self._by_planning()
        if isinstance(victims, NoCandidates):
            return victims
        verdict = self.what_if.plan(self.target, victims, extras=True)
        if not isinstance(verdict, Placed):
            return NoCandidates(False, NO_PLAN)
        return PreemptionPlan(verdict, tuple(sorted(victims, key=lambda unit: unit.key)), self.cost.violations(victims))

    def _counted_shapes(self) -> dict[int, CountableShape]:
        """Every shape of the demand in the terms of counting; none if one of them cannot be counted."""
        wanted = shapes_of(self.request)
        found: dict[int, CountableShape] = {}
        company: dict[int, types.Pod] = {}
        if any(shape.pod.spec.affinity is not None for shape in wanted.values()):
            pods = self.cluster.pods
            company = {id(pods[uid].footprint): pods[uid].pod for unit in self.victims for uid in unit.uids}
        for number, shape in wanted.items():
            one = counted(self.what_if.evaluator, shape, company.values())
            if one is None:
                return {}
            found[number] = one
        return found

    def _open_ledger(self) -> NodeSupply:
        ledger = NodeSupply(self.cluster, list(self.shapes.values()), self.victims, self.prices, self.cost)
        for shape, slot in self.what_if.held:
            ledger.shift(shape.footprint, slot, -1)
        for uid in self.what_if.leaving:
            entry = self.cluster.pods[uid]
            if entry.slot >= 0:
                ledger.shift(entry.footprint, entry.slot, +1)
        return ledger

    # --- by counting: one leaf of one shape --------------------------------------------------------

    def _one_counted(self) -> CountableShape | None:
        return (
            next(iter(self.shapes.values()))
            if isinstance(self.request, PodGroupRequest) and len(self.shapes) == 1
            else None
        )

    def _by_counting(self, shape: CountableShape) -> list[Victim] | NoCandidates:
        request, ledger = self.request, self.supply
        assert isinstance(request, PodGroupRequest)
        assert ledger is not None
        buyer = GroupVictims(self.cluster, ledger, self.shapes, {request.key: {shape.shape.id: 1}})
        domains = list(buyer.domains(request, buyer.everywhere()))
        most = ledger.seats(shape, ledger.without(range(len(self.victims))))
        seated = max((min(len(request.members), int(most[domain].sum())) for domain in domains), default=0)
        if seated < max(1, request.need):
            return NOT_EVEN
        self.target = request.with_minimum(request.bound + seated)

        def suffices(victims: Sequence[Victim]) -> bool:
            at = {unit.key: number for number, unit in enumerate(self.victims)}
            seats = ledger.seats(shape, ledger.without(at[unit.key] for unit in victims))
            return any(int(seats[domain].sum()) >= seated for domain in domains)

        self._suffices = suffices
        found = self._bought({request.key: {shape.shape.id: seated}})
        assert found, "without everyone there is room"
        bought = [market.units() for market in found]
        if len(self.victims) <= FEW_UNITS:
            bought += map(self._irreducible, self._reprieved(self.victims))
        if len(domains) > 1:
            bought += [fewer for market in found for fewer in self._elsewhere(market, shape, seated, domains)]
        best = min(bought, key=self._cost) if len(bought) > 1 else bought[0]
        if len(self.victims) <= MOST_SEARCHED:
            best = cheapest_sufficient(self.victims, self.cost, suffices, below=best, monotone=True) or best
        return best

    def _cost(self, victims: Sequence[Victim]) -> tuple[object, ...]:
        return (*self.cost.cost(victims), [unit.key for unit in victims])

    def _bought(self, lots: Lots) -> list[VictimSelection]:
        """Purchases: by priority, and, where several priorities are hit, as if all up to the highest were alike."""
        if self.supply is None:
            return []
        buyer = GroupVictims(self.cluster, self.supply, self.shapes, lots)
        first = buyer.buy(self.request, VictimSelection(self.supply), buyer.everywhere())
        if first is None:
            return []
        hit = {unit.priority for unit in first.units() if not unit.marked}
        if len(hit) < 2:
            return [first]
        dear = {number for number, unit in enumerate(self.victims) if unit.priority > max(hit)}
        flat = buyer.buy(self.request, VictimSelection(self.supply, flat=True, barred=dear), buyer.everywhere())
        return [first] if flat is None else [first, flat]

    def _elsewhere(
        self, market: VictimSelection, shape: CountableShape, seated: int, domains: list[Bools]
    ) -> Iterator[list[Victim]]:
        """What must go in each domain that has enough seats after a purchase, be it made for another one."""
        assert self.supply is not None
        gone = sorted(market.gone)
        seats = self.supply.seats(shape, self.supply.without(gone))
        for domain in domains:
            if int(seats[domain].sum()) >= seated:
                other = VictimSelection(self.supply)
                for number in gone:
                    other.evict(number)
                choice = SeatVictims(other, shape, domain)
                choice.run(seated)
                choice.spare(gone)
                yield other.units()

    # --- by planning -------------------------------------------------------------------------------

    def _by_planning(self) -> list[Victim] | NoCandidates:
        everyone: Placed | None = None
        hopeless = True
        for pool in self._pools():
            verdict = self.what_if.plan(self.request, pool, extras=True)
            hopeless = hopeless and not isinstance(verdict, Undecided)
            if isinstance(verdict, Placed):
                everyone, self.pool = verdict, pool
                break
        if everyone is None:
            return NoCandidates(hopeless, NOT_EVEN.reason)
        self.target = _aim(self.request, everyone)
        monotone = self._monotone()
        self._suffices = SufficiencyCache(self.what_if, self.target, self.supply, self.shapes, monotone=monotone)
        found = {frozenset(unit.key for unit in one): one for one in self._candidates(everyone)}
        if not found:
            return NoCandidates(False, NO_PLAN)
        best = min(map(self._irreducible, found.values()), key=self._cost)
        if len(self.victims) <= MOST_SEARCHED:
            best = cheapest_sufficient(self.victims, self.cost, self._suffices, below=best, monotone=monotone) or best
        return best

    def _pools(self) -> Iterator[list[Victim]]:
        """Everyone who could go; first without those whom the members need near them."""
        terms = [term for shape in shapes_of(self.request).values() for term in _wanted_company(shape.pod)]
        if terms:
            yield [unit for unit in self.victims if not self._liked(unit, terms)]
        yield self.victims

    def _liked(self, unit: Victim, terms: list[types.PodAffinityTerm]) -> bool:
        labels = [self.cluster.pods[uid].pod.metadata.labels for uid in unit.uids]
        return any(selectors.matches(term.label_selector, one) for term in terms for one in labels)

    def _candidates(self, everyone: Placed) -> Iterator[list[Victim]]:
        """Sets that suffice. Where there are very many units, the first that is found has to do."""
        pool, few, bought = self.pool, len(self.pool) <= MANY_UNITS, False
        for market in self._bought(_lots(self.request, everyone)):
            if self._suffices(market.units()):
                bought = True
                yield market.units()
        if few:
            stretch = self._shortest_stretch(pool)
            yield stretch
            yield from self._reprieved(stretch)
        if few or not bought:
            yield from self._reprieved(pool)

    def _reprieved(self, pool: list[Victim]) -> Iterator[list[Victim]]:
        for order in (list(reversed(pool)), sorted(pool, key=_importance)):
            refused = self.what_if.reprieved(self.target, pool, order)
            if refused is not None and self._suffices(refused):
                yield refused

    def _shortest_stretch(self, pool: list[Victim]) -> list[Victim]:
        """The cheapest units, as many of them as it takes."""
        low, high = 0, len(pool)
        while low < high:
            middle = (low + high) // 2
            if self._suffices(pool[:middle]):
                high = middle
            else:
                low = middle + 1
        return pool[:low]

    def _monotone(self) -> bool:
        """Does one more eviction never hurt? It can where members want company, or are spread over others."""
        pods = [shape.pod for shape in shapes_of(self.request).values()]
        return not any(_wanted_company(pod) or pod.spec.topology_spread_constraints for pod in pods)

    def _irreducible(self, victims: list[Victim]) -> list[Victim]:
        """Spare whoever can be spared with a new plan: first who overdraws a budget, then the dearest."""
        if len(victims) > MOST_REPLANNED:
            return victims
        kept, untried = list(victims), sorted(victims, key=self.cost.alone)
        while untried:
            unit = (
                max(reversed(untried), key=lambda one: self._overdraft(one, kept)) if self.cost.allowed else untried[-1]
            )
            untried.remove(unit)
            fewer = [other for other in kept if other is not unit]
            if self._suffices(fewer):
                kept = fewer
        return kept

    def _overdraft(self, unit: Victim, kept: list[Victim]) -> int:
        return self.cost.violations(kept) - self.cost.violations([other for other in kept if other is not unit])


def _importance(unit: Victim) -> tuple[int, int, int, str]:
    """Most important first: priority, composite before group before pod, more pods, longest running."""
    rank = {"CompositePodGroup": 0, "PodGroup": 1}.get(unit.key.kind, 1 if unit.losses else 2)
    return (-unit.priority, rank, -len(unit.uids), min(unit.starts, default=""))


def _wanted_company(pod: types.Pod) -> tuple[types.PodAffinityTerm, ...]:
    near = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
    return (near.required_during_scheduling_ignored_during_execution or ()) if near is not None else ()


def _lots(request: GroupRequest, placed: Placed) -> Lots:
    """How many members of which shape are to be seated in each leaf."""
    homes = {member.uid: (leaf.key, member.shape.id) for leaf in leaves(request) for member in leaf.members}
    lots: dict[EntityKey, Counter[int]] = {}
    for seat in placed.assignments:
        key, shape = homes[seat.uid]
        lots.setdefault(key, Counter())[shape] += 1
    return lots


def _aim(request: GroupRequest, placed: Placed) -> GroupRequest:
    """The demand that asks for as many members of each leaf as could be seated at best."""
    seated = {key: sum(shapes.values()) for key, shapes in _lots(request, placed).items()}

    def raised(group: GroupRequest) -> GroupRequest:
        if isinstance(group, PodGroupRequest):
            count = seated.get(group.key, 0)
            return group.with_minimum(group.bound + count) if count else group
        satisfied = sum(child.key in placed.placed_groups for child in group.children)
        return group.with_minimum(max(group.minimum, satisfied))

    return rebuilt(request, raised)
