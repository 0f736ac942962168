"""`plan`: from a demand and a trial to a verdict.

First the quick way by score; if that fails, the search that misses nothing; then extras in the same
placement. The trial is left as it was found. The same demand, snapshot and budget give the same
verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import (
    Assignment,
    Budget,
    DomainsEvaluated,
    Infeasible,
    Placed,
    Proof,
    SearchStats,
    Undecided,
    Verdict,
)
from muster.scheduler.planning.affinity_search import AffinitySearch
from muster.scheduler.planning.goal import BranchGoal, Goal, GoalBuilder, LeafGoal, admissible, open_leaves, satisfied
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.implied_topology import ImpliedTopology
from muster.scheduler.planning.node_matrix import Mask, NodeMatrix
from muster.scheduler.planning.partial_placement import PartialPlacement
from muster.scheduler.planning.seat_bounds import node_matrix_of
from muster.scheduler.planning.shortages import ShortageFinder, excluded
from muster.scheduler.planning.tree_search import Found, NotFound, TreeSearch
from muster.scheduler.runtime.trial import Trial

# About 100 ms of search on one core.
DEFAULT_STEPS = 2500


def plan(
    request: GroupRequest,
    trial: Trial,
    budget: Budget,
    *,
    extras: bool = True,
    scope: Mask | None = None,
    judging: DomainsEvaluated | None = None,
) -> Verdict:
    """Seats for a demand, or a proof that there are none, or what was tried."""
    alone = _one_pod(request, trial, scope)
    if alone is not None:
        return alone
    builder = GoalBuilder()
    goal = builder.build(request)
    start = trial.mark()
    try:
        planner = _Planner(request, goal, PartialPlacement(trial, builder.shapes), budget, scope, judging)
        return planner.run(extras)
    finally:
        trial.undo(start)


def _one_pod(request: GroupRequest, trial: Trial, scope: Mask | None) -> Placed | None:
    """A single member that needs no company: the best node, without trying anything out."""
    if not isinstance(request, PodGroupRequest) or len(request.members) != 1 or request.topology or request.need > 1:
        return None
    member = request.members[0]
    slot = trial.best(member.shape, scope)
    if slot < 0:
        return None
    return Placed((Assignment(member.uid, trial.cluster.names[slot], slot),), frozenset({request.key}))


class _Planner:
    def __init__(
        self,
        request: GroupRequest,
        goal: Goal,
        seating: PartialPlacement,
        budget: Budget,
        mask: Mask | None,
        judging: DomainsEvaluated | None,
    ) -> None:
        self.demand = request
        self.goal = goal
        self.seating = seating
        self.budget = budget
        self.mask = mask
        self.greedy = Greedy(seating, budget, judging)
        self.diagnosis = ShortageFinder(self.greedy)
        self._lost: dict[object, NotFound] = {}
        self._last: NotFound = NotFound(True)

    def run(self, extras: bool) -> Verdict:
        if satisfied(self.demand):
            return self._more() if extras else self._nothing_new()
        if not admissible(self.demand):
            return Infeasible(self.diagnosis.inadmissible(self.demand), self.budget.spent)
        if not self.greedy.place_minimum(self.goal, self.mask) and not self._rescue(self.goal, self.mask):
            return self._failed(self.goal, self._last)
        if extras:
            self._add_extras()
        return self._placed()

    def _add_extras(self) -> None:
        self.greedy.add_children(self.goal, self.mask, self._rescue)
        self.greedy.add_extras(self.goal, self.mask)

    def _placed(self) -> Placed:
        label = self.seating.cluster.label_value
        domains = tuple((goal.key, label(goal.topology, value)) for goal, value in self.seating.domains)
        won = frozenset(goal.key for goal in self.seating.winners)
        return Placed(self.seating.seats(), won | _holding(self.demand), domains, self.budget.spent)

    # --- a root that holds already ---------------------------------------------------------------

    def _more(self) -> Verdict:
        """All minima hold: success means at least one more pod."""
        self.seating.mark_satisfied(self.goal)
        self._add_extras()
        return self._placed() if self.seating.count else self._nothing_new()

    def _nothing_new(self) -> Verdict:
        """Each single way to add something, asked for by itself; infeasible when all of them are."""
        proofs: list[Proof] = []
        undecided: Undecided | None = None
        for chain in _ways_to_grow(self.goal):
            if self.greedy.place_minimum(chain, self.mask) or self._rescue(chain, self.mask):
                return self._placed()
            verdict = self._failed(chain, self._last)
            if isinstance(verdict, Undecided):
                undecided = undecided or verdict
            else:
                proofs.append(verdict.proof)
        if undecided is not None:
            return undecided
        proof = self.diagnosis.nothing_new(self.demand, proofs)
        return Infeasible(proof, self.budget.spent)

    # --- when the quick way fails ----------------------------------------------------------------

    def _rescue(self, goal: Goal, mask: Mask | None) -> bool:
        """The search that misses nothing, for one group beside what is seated already."""
        seating = self.seating
        if self.budget.exhausted:
            self._last = NotFound(complete=False)
            return False
        shapes = sorted({lot.shape for leaf in open_leaves(goal) for lot in leaf.lots})
        key = (goal.signature, None if mask is None else mask.tobytes(), seating.count)
        if key in self._lost:
            self._last = self._lost[key]
            return False
        dependent = any(not seating.trial.independent(seating.shapes[shape]) for shape in shapes)
        held = self._search(goal, mask, dependent)
        if not held and dependent and not self._last.complete:
            search = AffinitySearch(self.greedy, self.budget)
            held = search.secure(goal, mask)
            self._last = NotFound(search.complete, search.counted, orders=search.orders)
        if held:
            seating.mark_satisfied(goal)
        else:
            self._lost[key] = self._last
        return held

    def _search(self, goal: Goal, mask: Mask | None, dependent: bool) -> bool:
        board: NodeMatrix = node_matrix_of(self.seating.trial, self.seating.shapes, _keys(goal))
        # Counts decide for members that depend on nodes only. For others they are worth a first try.
        if not dependent:
            found = TreeSearch(board, self.budget).solve(goal, board.everywhere(mask))
        else:
            found = self._search_loosely(board, goal, mask)
        if isinstance(found, NotFound):
            self._last = found
            return False
        mark = self.seating.mark()
        if self._apply(found, dependent):
            return True
        self.seating.undo(mark)
        self._last = NotFound(complete=False)
        return False

    def _search_loosely(self, board: NodeMatrix, goal: Goal, mask: Mask | None) -> Found | NotFound:
        """The board allows at least what the rules allow; domains that affinity implies are respected."""
        implied = ImpliedTopology(self.seating, goal)
        board.columns.update({key: self.seating.cluster.labels(key) for key in _keys(implied.goal)})
        budget = Budget((self.budget.limit - self.budget.spent) // 2)
        found = TreeSearch(board, budget).solve(implied.goal, board.everywhere(mask))
        self.budget.spend(budget.spent)
        if isinstance(found, NotFound):
            return replace(found, counted=found.counted and not implied.found, weighed=None)
        held = [implied.origin[id(goal)] for goal in found.held]
        domains = [(implied.origin[id(goal)], value) for goal, value in found.domains]
        return Found(
            found.seated,
            [(goal, value) for goal, value in domains if goal is not None],
            [goal for goal in held if goal is not None],
        )

    def _apply(self, found: Found, dependent: bool) -> bool:
        """Take the seats that were found; members that depend on each other only as the rules allow."""
        wishes = [
            (seated.leaf, seated.lot, slot, count)
            for seated in found.seated
            for slot, count in zip(seated.nodes.tolist(), seated.counts.tolist(), strict=True)
        ]
        if dependent and not self._seat_by_rule(wishes):
            return False
        for leaf, lot, slot, count in () if dependent else wishes:
            self.seating.put(leaf, lot, slot, count)
        for goal, value in found.domains:
            self.seating.choose(goal, value)
        for goal in found.held:
            self.seating.mark_satisfied(goal)
        return True

    def _seat_by_rule(self, wishes: list[tuple[LeafGoal, int, int, int]]) -> bool:
        """Go round while somebody can sit down where the counts put them."""
        trial, shapes = self.seating.trial, self.seating.shapes
        waiting = [wish[:3] for wish in wishes for _ in range(wish[3])]
        while waiting:
            left: list[tuple[LeafGoal, int, int]] = []
            for leaf, lot, slot in waiting:
                if trial.feasible(shapes[leaf.lots[lot].shape])[slot]:
                    self.seating.put(leaf, lot, slot)
                else:
                    left.append((leaf, lot, slot))
            if len(left) == len(waiting) or not self.budget.spend(len(waiting)):
                return False
            waiting = left
        return True

    def _failed(self, goal: Goal, last: NotFound) -> Infeasible | Undecided:
        self.greedy.judging = None  # the diagnosis looks again at what was judged
        left_out = tuple(short for child in _all(self.demand) for short in excluded(child))
        shortages = self.diagnosis.shortages(goal, self.mask) + left_out
        if not last.complete:
            record = SearchStats(self.budget.spent, last.orders, last.tried_domains, shortages)
            return Undecided(record)
        return Infeasible(self.diagnosis.proof(goal, self.mask, last, shortages, self.budget.spent), self.budget.spent)


def _ways_to_grow(goal: Goal) -> list[Goal]:
    """For a group that holds: itself, narrowed to one thing that could be added."""
    if isinstance(goal, LeafGoal):
        if not goal.lots:
            return []
        lots = tuple(replace(lot, preferred=1 if at == 0 else 0) for at, lot in enumerate(goal.lots))
        return [replace(goal, need=1, lots=lots, signature=("grow", goal.signature))]
    ways = list(goal.open)
    ways += [way for child in goal.done for way in _ways_to_grow(child)]
    return [
        replace(goal, need=1, open=(way,), done=(), signature=("grow", goal.signature, way.signature)) for way in ways
    ]


def _holding(request: GroupRequest) -> frozenset[EntityKey]:
    """Groups whose minimum held before."""
    found = {request.key} if satisfied(request) else set[EntityKey]()
    if isinstance(request, CompositeRequest):
        for child in request.children:
            found |= _holding(child)
    return frozenset(found)


def _all(request: GroupRequest) -> Iterator[GroupRequest]:
    yield request
    for child in request.children if isinstance(request, CompositeRequest) else ():
        yield from _all(child)


def _keys(goal: Goal) -> set[str]:
    keys = {goal.topology} if goal.topology else set[str]()
    for child in goal.open if isinstance(goal, BranchGoal) else ():
        keys |= _keys(child)
    return keys
