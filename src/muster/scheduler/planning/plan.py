"""`plan`: from a request and a trial to a verdict.

First greedy placement by score; if that fails, the complete search; then extras in the same placement. The trial is
left as it was found. The same request, trial and budget give the same verdict.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget, run_slice, run_to_end
from muster.scheduler.placement.request import (
    CompositeRequest,
    GroupRequest,
    IdenticalPods,
    PodGroupRequest,
    groups,
    open_leaves,
    shapes_of,
)
from muster.scheduler.placement.verdict import (
    Assignment,
    DomainsEvaluated,
    Infeasible,
    Placed,
    Proof,
    SearchStats,
    Undecided,
    Verdict,
)
from muster.scheduler.planning.affinity_search import AffinitySearch
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.implied_topology import ImpliedTopology
from muster.scheduler.planning.node_matrix import Mask, NodeMatrix
from muster.scheduler.planning.packing_instance import PackedPods
from muster.scheduler.planning.partial_placement import PartialPlacement
from muster.scheduler.planning.paused_search import PausedSearch
from muster.scheduler.planning.seat_bounds import node_matrix_of
from muster.scheduler.planning.shared_claims import SharedClaims
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
    evaluated: DomainsEvaluated | None = None,
) -> Verdict:
    """Assignments for a request, or a proof that there are none, or what was tried.

    `extras`: pods beyond the minimum are placed as well. `evaluated` counts the domains that were compared.
    """
    planned = _plan(request, trial, budget, evaluated, extras=extras)
    assert isinstance(planned, Placed | Infeasible | Undecided), "a plan without slices has a verdict"
    return planned


def plan_first_slice(
    request: GroupRequest,
    trial: Trial,
    budget: Budget,
    *,
    search: bool = True,
    evaluated: DomainsEvaluated | None = None,
) -> Verdict | PausedSearch | None:
    """The same, for as long as one slice of the budget lasts; None if greedy placement fails and no search is wanted.

    The search for the minimum of pods that depend on nodes only can be paused. Any other search is limited to a slice.
    """
    return _plan(request, trial, budget, evaluated, search=search, pausing=True)


def plan_greedily(request: GroupRequest, trial: Trial, budget: Budget) -> Placed | None:
    """The minimum of a request by greedy placement alone; None says nothing about whether a placement exists."""
    found = _plan(request, trial, budget, None, extras=False, search=False)
    return found if isinstance(found, Placed) else None


def resumed_verdict(paused: PausedSearch, answer: Found | NotFound, trial: Trial) -> Verdict | None:
    """The verdict of a search that has ended, on the cluster as it is now; None if what it found is not there any more.

    Whether an infeasibility still holds is for the caller to decide.
    """
    start = trial.mark()
    try:
        planner = _Planner(paused.request, PartialPlacement(trial), paused.budget, None)
        if isinstance(answer, NotFound):
            return planner.not_placed(paused.request, answer)
        return planner.resume(paused, answer)
    finally:
        trial.undo(start)


def _plan(
    request: GroupRequest,
    trial: Trial,
    budget: Budget,
    evaluated: DomainsEvaluated | None,
    *,
    extras: bool = True,
    search: bool = True,
    pausing: bool = False,
) -> Verdict | PausedSearch | None:
    placed = _one_pod(request, trial)
    if placed is not None:
        return placed
    start = trial.mark()
    try:
        return _Planner(request, PartialPlacement(trial), budget, evaluated, pausing=pausing).run(extras, search)
    finally:
        trial.undo(start)


def _one_pod(request: GroupRequest, trial: Trial) -> Placed | None:
    """A single pending pod without a topology constraint: the best node, without placing anything on the trial."""
    if not isinstance(request, PodGroupRequest) or len(request.members) != 1 or request.topology or request.need > 1:
        return None
    member = request.members[0]
    slot = trial.best(member.shape)
    if slot < 0:
        return None
    return Placed((Assignment(member.uid, trial.cluster.names[slot], slot),), frozenset({request.key}))


class _Planner:
    """One call of `plan`."""

    def __init__(
        self,
        request: GroupRequest,
        placement: PartialPlacement,
        budget: Budget,
        evaluated: DomainsEvaluated | None,
        *,
        pausing: bool = False,
    ) -> None:
        self.request = request
        self.placement = placement
        self.budget = budget
        self.greedy = Greedy(placement, budget, evaluated)
        self.shortages = ShortageFinder(self.greedy)
        self._shapes: list[Shape] | None = None
        self._failed: dict[object, NotFound] = {}
        self._last: NotFound = NotFound(True)
        self._pausing = pausing
        self._paused: PausedSearch | None = None
        self._incomplete = False  # some search left something out

    def run(self, extras: bool, search: bool = True) -> Verdict | PausedSearch | None:
        request = self.request
        if request.satisfied:
            return self._place_extras() if extras else self._place_one_more()
        if not request.admissible:
            return Infeasible(self.shortages.inadmissible(request), self.budget.spent)
        claims = SharedClaims(
            self.placement, self.budget, shapes_of(request).values(), sum(leaf.need for leaf in open_leaves(request))
        )
        if claims:
            self._pausing = False
            placed = claims.place(lambda: self._place_minimum(request, search))
            if claims.tried:
                self._last = NotFound(complete=claims.complete and not self._incomplete)
        else:
            placed = self._place_minimum(request, search)
        if not placed:
            return (self._paused or self.not_placed(request, self._last)) if search else None
        if extras:
            self._add_extras()
        return self._placed()

    def _place_minimum(self, request: GroupRequest, search: bool) -> bool:
        """By score if that does, else by the complete search."""
        self._failed.clear()
        if self.greedy.place_minimum(request, None):
            return True
        if not search:
            return False
        found = self._search(request, None)
        self._incomplete = self._incomplete or not (found or self._last.complete)
        return found

    def resume(self, paused: PausedSearch, found: Found) -> Placed | None:
        """The placement that a paused search found, with extras, if it is still there."""
        if not paused.apply(found, self.placement):
            return None
        self._add_extras()
        return self._placed()

    def _add_extras(self) -> None:
        self.greedy.add_children(self.request, None, self._search)
        self.greedy.add_extras(self.request, None)

    def _placed(self) -> Placed:
        label = self.placement.cluster.label_value
        domains = tuple((group.key, label(group.topology, value)) for group, value in self.placement.domains)
        satisfied = frozenset(group.key for group in self.placement.satisfied)
        return Placed(
            self.placement.assignments(), satisfied | _satisfied_before(self.request), domains, self.budget.spent
        )

    # --- a request that is satisfied already -----------------------------------------------------

    def _place_extras(self) -> Verdict:
        """All minima hold: success means at least one more pod."""
        self.placement.mark_satisfied(self.request)
        self._add_extras()
        return self._placed() if self.placement.count else self._place_one_more()

    def _place_one_more(self) -> Verdict:
        """Each single way to add something, requested by itself; infeasible when all of them are."""
        proofs: list[Proof] = []
        undecided: Undecided | None = None
        for way in _ways_to_grow(self.request):
            if self.greedy.place_minimum(way, None) or self._search(way, None):
                return self._placed()
            verdict = self.not_placed(way, self._last)
            if isinstance(verdict, Undecided):
                undecided = undecided or verdict
            else:
                proofs.append(verdict.proof)
        if undecided is not None:
            return undecided
        proof = self.shortages.nothing_new(self.request, proofs)
        return Infeasible(proof, self.budget.spent)

    # --- when greedy placement fails -------------------------------------------------------------

    def _search(self, request: GroupRequest, nodes: Mask | None) -> bool:
        """The complete search for the minimum of one group, beside what is placed already."""
        placement = self.placement
        if self.budget.exhausted:
            self._last = NotFound(complete=False)
            return False
        key = (request.signature, None if nodes is None else nodes.tobytes(), placement.count)
        if key in self._failed:
            self._last = self._failed[key]
            return False
        shapes = {pods.shape: None for leaf in open_leaves(request) for pods in leaf.identical}
        if self._shapes is None:
            self._shapes = _shapes_in_order(self.request)
        matrix = node_matrix_of(placement.trial, self._shapes, _keys(request))
        dependent = not matrix.exact or any(not placement.trial.countable(shape) for shape in shapes)
        satisfied = self._search_counts(matrix, request, nodes, dependent)
        if not satisfied and dependent and not self._last.complete:
            search = AffinitySearch(self.greedy, self._slice())
            satisfied = search.place_minimum(request, nodes)
            complete = search.counted or not placement.trial.counts_on_devices_beyond_nodes(shapes)
            self._last = NotFound(search.complete and complete, search.counted, orders=search.orders)
        if satisfied:
            placement.mark_satisfied(request)
            return True
        if self._last.complete and placement.trial.device_search_gave_up(shapes):
            self._last = replace(self._last, complete=False)
        self._failed[key] = self._last
        return False

    def _search_counts(self, matrix: NodeMatrix, request: GroupRequest, nodes: Mask | None, dependent: bool) -> bool:
        """Counts decide for pods that depend on nodes only. For others they are worth a first try."""
        if dependent:
            found = self._search_implied(matrix, request, nodes)
        elif self._pausing and request is self.request and not self.placement.count:
            found = self._search_until_pause(matrix, request)
        else:
            found = run_to_end(TreeSearch(matrix, self._slice()).solve(request, matrix.everywhere(nodes)))
        if isinstance(found, NotFound):
            self._last = found
            return False
        mark = self.placement.mark()
        if self._apply(found, dependent):
            return True
        self.placement.undo(mark)
        self._last = NotFound(complete=False)
        return False

    def _search_until_pause(self, matrix: NodeMatrix, request: GroupRequest) -> Found | NotFound:
        """The tree search until it ends or its slice does."""
        self.budget.shorten_slice(self.greedy.work)
        search = TreeSearch(matrix, self.budget).solve(request, matrix.everywhere())
        found = run_slice(search)
        if found is None:
            self._paused = PausedSearch(request, search, self.budget, self.placement.cluster.names)
            return NotFound(complete=False)
        return found

    def _slice(self, parts: int = 1) -> Budget:
        """What a search that cannot be paused may spend: the steps that are left, and no more than a slice of them."""
        left = self.budget.left
        return self.budget.part((min(left, self.budget.slice_steps) if self._pausing else left) // parts)

    def _search_implied(self, matrix: NodeMatrix, request: GroupRequest, nodes: Mask | None) -> Found | NotFound:
        """The tree search for dependent pods, with the constraints that affinity implies.

        The matrix allows at least what their rules allow.
        """
        implied = ImpliedTopology(self.placement, request)
        matrix.columns.update({key: self.placement.cluster.labels(key) for key in _keys(implied.request)})
        budget = self._slice(2)
        found = run_to_end(TreeSearch(matrix, budget).solve(implied.request, matrix.everywhere(nodes)))
        if isinstance(found, NotFound):
            return replace(found, counted=found.counted and not implied.found, certificate=None)
        satisfied = [implied.original(group) for group in found.satisfied]
        domains = [(implied.original(group), value) for group, value in found.domains]
        return Found(
            found.packed,
            [(group, value) for group, value in domains if group is not None],
            [group for group in satisfied if group is not None],
        )

    def _apply(self, found: Found, dependent: bool) -> bool:
        """Place the pods that were found; pods that depend on each other only as the plugins allow."""
        if dependent and not self._place_feasible(found.packed):
            return False
        for packed in () if dependent else found.packed:
            self.placement.place_counts(packed.pods, packed.nodes, packed.counts)
        for group, value in found.domains:
            self.placement.choose_domain(group, value)
        for group in found.satisfied:
            self.placement.mark_satisfied(group)
        return True

    def _place_feasible(self, found: list[PackedPods]) -> bool:
        """Repeat while a pod is feasible on the node that the counts give it."""
        trial = self.placement.trial
        waiting = [(packed.pods, slot) for packed in found for slot in np.repeat(packed.nodes, packed.counts).tolist()]
        while waiting:
            left: list[tuple[IdenticalPods, int]] = []
            for pods, slot in waiting:
                if trial.feasible(pods.shape)[slot]:
                    self.placement.place_on(pods, slot)
                else:
                    left.append((pods, slot))
            if len(left) == len(waiting) or not self.budget.spend(len(waiting)):
                return False
            waiting = left
        return True

    def not_placed(self, request: GroupRequest, last: NotFound) -> Infeasible | Undecided:
        self.greedy.evaluated = None  # the shortages look again at domains that were counted
        left_out = tuple(short for group in groups(self.request) for short in excluded(group))
        shortages = self.shortages.shortages(request, None) + left_out
        if not last.complete:
            return Undecided(SearchStats(self.budget.spent, last.orders, last.tried_domains, shortages))
        proof = self.shortages.proof(request, None, last, shortages, self.budget.spent)
        return Infeasible(proof, self.budget.spent)


def _ways_to_grow(request: GroupRequest) -> list[GroupRequest]:
    """For a satisfied group: itself, asked for one thing that could be added."""
    if isinstance(request, PodGroupRequest):
        return [request.with_need(1)] if request.identical else []
    ways = list(request.open)
    ways += [way for child in request.done for way in _ways_to_grow(child)]
    return [request.with_need(1, (way,)) for way in ways]


def _satisfied_before(request: GroupRequest) -> frozenset[EntityKey]:
    """Groups whose minimum holds without any new pod."""
    return frozenset(group.key for group in groups(request) if group.satisfied)


def _shapes_in_order(request: GroupRequest) -> list[Shape]:
    """The distinct shapes of all pods that may be placed, satisfied groups first: the order of the node matrix."""
    found: dict[Shape, None] = {}
    waiting = [request]
    while waiting:
        group = waiting.pop()
        if isinstance(group, PodGroupRequest):
            found.update(dict.fromkeys(pods.shape for pods in group.identical))
        else:
            waiting += reversed((*group.done, *group.open))
    return list(found)


def _keys(request: GroupRequest) -> set[str]:
    """The label keys of the constraints of a group and its open children."""
    keys = {request.topology} if request.topology else set[str]()
    for child in request.open if isinstance(request, CompositeRequest) else ():
        keys |= _keys(child)
    return keys
