"""Greedy placement: nodes by score, hardest child first, domains by score, then extras.

`place_minimum` places minima only. It places nothing where counting already shows that there is no room, and undoes
what it placed when it fails; a failure here proves nothing. `add_children` then places further children of composites
whose minimum holds, and `add_extras` the remaining members of satisfied groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest, admissible_leaves
from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.planning.domains import (
    DomainCapacity,
    TopologyDomains,
    capacity_of,
    feasible_domains,
    ranked,
    score,
)
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.planning.partial_placement import Mark, PartialPlacement, narrowed
from muster.scheduler.planning.seat_bounds import most

MOST_DOMAINS_COMPARED = 8


MOST_DOMAINS_TRIED = 64  # the tree search, which comes next, tries domains that are alike only once


WORTH_COUNTING = 16  # members from which on counting costs less than placing them in vain


PODS_PER_STEP = 16


STEPS_PER_BATCH = 8  # for placing pods of one shape in one domain


STEPS_PER_CALL = 5  # for placing pods of one shape, or looking at all domains


NODES_PER_STEP = 250


MOST_IN_VAIN = 400  # steps for pods that are placed and taken back, before the search takes over


Search = Callable[[GroupRequest, "Mask | None"], bool]


class Greedy:
    """Places requests on a partial placement by score."""

    def __init__(self, placement: PartialPlacement, budget: Budget, evaluated: DomainsEvaluated | None = None) -> None:
        self.placement = placement
        self.budget = budget
        self.evaluated = evaluated
        self._minimum_shares: dict[GroupRequest, float] = {}
        self._shares: dict[Shape, float] = {}
        self._in_vain = 0  # steps for pods that were placed and taken back
        self.work = 0  # roughly, in steps, whether they were spent or not

    # --- minima ----------------------------------------------------------------------------------

    def place_minimum(self, request: GroupRequest, nodes: Mask | None) -> bool:
        """Place what the minimum of a group needs; all of it or nothing."""
        mark = self.placement.mark()
        satisfied = self._in_some_domain(request, nodes) if request.topology else self._inside(request, nodes)
        if satisfied:
            self.placement.mark_satisfied(request)
        else:
            self.placement.undo(mark)
        return satisfied

    def _inside(self, request: GroupRequest, nodes: Mask | None) -> bool:
        if isinstance(request, PodGroupRequest):
            return self._place_leaf(request, nodes)
        if request.need == 0:
            return True
        return self._place_children(request.need, self.ordered_children(request), nodes)

    def ordered_children(self, request: CompositeRequest) -> list[GroupRequest]:
        """If all open children are needed the hardest first, else those of high priority and then the easiest."""
        if request.need == len(request.open):
            return sorted(request.open, key=self.minimum_share, reverse=True)
        return sorted(request.open, key=self._priority_then_share)

    def _priority_then_share(self, request: GroupRequest) -> tuple[int, float]:
        return -highest_priority(request), self.minimum_share(request)

    def _place_children(self, need: int, children: Sequence[GroupRequest], nodes: Mask | None) -> bool:
        """Repeat until enough are satisfied or a round changes nothing: one child may require another's pods."""
        waiting = list(children)
        while need > 0:
            left: list[GroupRequest] = []
            for at, child in enumerate(waiting):
                if need > 0 and self.place_minimum(child, nodes):
                    need -= 1
                    continue
                left.append(child)
                if need > len(waiting) - at - 1 and not self._depend_on_pods(waiting):
                    return False  # too few are left to try
            if need <= 0:
                return True
            if len(left) == len(waiting) or not self._depend_on_pods(left):
                return False
            waiting = left
        return True

    def _depend_on_pods(self, requests: Sequence[GroupRequest]) -> bool:
        return any(
            not self.placement.trial.countable(pods.shape)
            for request in requests
            for leaf in admissible_leaves(request)
            for pods in leaf.identical
        )

    def _place_leaf(self, leaf: PodGroupRequest, nodes: Mask | None) -> bool:
        if len(leaf.identical) == 1:
            (pods,) = leaf.identical
            return self._enough_seats(leaf, nodes) and self.placement.place_best(pods, leaf.need, nodes) == leaf.need
        return self.place_members(leaf, leaf.need, nodes) == 0

    def place_members(self, leaf: PodGroupRequest, missing: int, nodes: Mask | None) -> int:
        """Place up to `missing` more members, the preferred ones if possible; how many could not be placed."""
        order = sorted(range(len(leaf.identical)), key=lambda at: -self.dominant_share(leaf.identical[at].shape))
        for limits in ([pods.preferred for pods in leaf.identical], [pods.count for pods in leaf.identical]):
            missing = self._place_up_to(leaf, order, limits, missing, nodes)
        return missing

    def _enough_seats(self, leaf: PodGroupRequest, nodes: Mask | None) -> bool:
        """Counting first: a large gang that cannot fit is not placed pod by pod to find out."""
        if leaf.need < WORTH_COUNTING:
            return True
        return most(self.placement.trial, leaf.identical[0].shape, nodes) >= leaf.need

    def _place_up_to(
        self, leaf: PodGroupRequest, order: Sequence[int], limits: Sequence[int], missing: int, nodes: Mask | None
    ) -> int:
        """Repeat while pods are placed: pods of one shape may require those of another to be there first."""
        moved = True
        while moved and missing:
            moved = False
            for at in order:
                pods = leaf.identical[at]
                wanted = min(limits[at] - self.placement.placed(pods), missing)
                count = self.placement.place_best(pods, wanted, nodes) if wanted > 0 else 0
                self.work += STEPS_PER_CALL if wanted > 0 else 0
                missing -= count
                moved = moved or count > 0
        return missing

    # --- domains ---------------------------------------------------------------------------------

    def _in_some_domain(self, request: GroupRequest, nodes: Mask | None) -> bool:
        """Place the minimum in the domain of the best score in which it holds."""
        domains = TopologyDomains.of(self.placement, request.topology, nodes)
        capacity = capacity_of(self.placement, request, domains)
        self.work += STEPS_PER_CALL * (1 + len(domains.ids) // NODES_PER_STEP)
        exact = isinstance(request, PodGroupRequest) and self._counts_are_exact(request)
        if self.evaluated is not None and isinstance(request, PodGroupRequest):
            self.evaluated.domains += 1 if request.pin is not None else domains.count
            self.evaluated.feasible += len(feasible_domains(self.placement, request, domains, capacity))
        order = ranked(self.placement, request, domains, capacity, only_best=exact)
        order = order[:1] if exact else order
        best: tuple[int, int] | None = None
        compared = 0
        for tried, (_, value) in enumerate(order[:MOST_DOMAINS_TRIED]):
            # What succeeds at once costs nothing, however large the tree.
            if tried and (not self.budget.spend() or self._tried_enough(request)):
                break
            outcome = self._try_domain(request, value, domains, capacity, last=len(order) == 1)
            if outcome is None:
                continue
            if outcome < 0:
                return True
            compared += 1
            if best is None or outcome > best[0]:
                best = outcome, value
            if compared >= MOST_DOMAINS_COMPARED:
                break
        return best is not None and self._place_in_domain(request, best[1], domains)

    def _tried_enough(self, request: GroupRequest) -> bool:
        """Whether so much was placed in vain that the search, which counts first, is the better way."""
        return self._in_vain > MOST_IN_VAIN and not self._depend_on_pods([request])

    def _counts_are_exact(self, leaf: PodGroupRequest) -> bool:
        return len(leaf.identical) == 1 and self.placement.trial.countable(leaf.identical[0].shape)

    def _place_in_domain(self, request: GroupRequest, value: int, domains: TopologyDomains) -> bool:
        self.placement.choose_domain(request, value)
        return self._inside(request, narrowed(domains.nodes, domains.ids, value))

    def _try_domain(
        self, request: GroupRequest, value: int, domains: TopologyDomains, capacity: DomainCapacity, *, last: bool
    ) -> int | None:
        """None if the minimum does not hold there; -1 if it holds and nothing can be better (the pods stay placed);
        else the score of the domain with extras, and everything is undone."""
        placement = self.placement
        mark = placement.mark()
        if not self._place_in_domain(request, value, domains):
            cost = STEPS_PER_BATCH * placement.batches_since(mark) + placement.placed_since(mark) // PODS_PER_STEP
            self.budget.spend(cost)
            self._in_vain += cost
            placement.undo(mark)
            return None
        if last or placement.placed_since(mark) >= capacity.pods[value]:
            return -1
        minimum = placement.mark()
        self._add_extras_inside(request, narrowed(domains.nodes, domains.ids, value))
        if placement.placed_since(mark) >= capacity.pods[value]:
            placement.undo(minimum)
            return -1
        reached = self._domain_score(request, value, domains, mark)
        placement.undo(mark)
        return reached

    def _domain_score(self, request: GroupRequest, value: int, domains: TopologyDomains, mark: Mark) -> int:
        """The score of a domain with the pods that are placed there now, relative to all pending pods.

        The pods are on the trial, so they are part of the usage already.
        """
        placed, pending = self.placement.placed_since(mark), float(pending_below(request))
        pods = np.array([request.bound + placed, request.bound + pending])
        values = np.array([value, value])
        return int(score(self.placement, domains, values, pods, np.zeros((2, 2)))[0])

    # --- extras ----------------------------------------------------------------------------------

    def nodes_for_extras(self, request: GroupRequest, nodes: Mask | None) -> Mask | None:
        """The nodes that further members of a satisfied group may use."""
        if not request.topology:
            return nodes
        ids = self.placement.cluster.labels(request.topology)
        value = self.placement.domain_of(request)
        if value is None and request.pin is not None:
            value = self.placement.cluster.label_id(request.topology, request.pin) if request.pin else 0
        if value is None:
            value = self._best_domain(request, nodes)
        return narrowed(nodes, ids, value) if value else np.zeros(len(ids), dtype=bool)

    def _best_domain(self, request: GroupRequest, nodes: Mask | None) -> int:
        """A domain for a group that is satisfied without any running member: the best that takes at least one pod."""
        domains = TopologyDomains.of(self.placement, request.topology, nodes)
        order = ranked(self.placement, request, domains, capacity_of(self.placement, request, domains))
        if not order:
            return 0
        self.placement.choose_domain(request, order[0][1])
        return order[0][1]

    def add_children(self, request: GroupRequest, nodes: Mask | None, search: Search) -> None:
        """Further children of satisfied composites, the easiest first; `search` where greedy placement fails."""
        if isinstance(request, PodGroupRequest):
            return
        nodes = self.nodes_for_extras(request, nodes)
        for child in sorted(request.open, key=self._priority_then_share):
            if not self.placement.is_satisfied(child) and not self.place_minimum(child, nodes):
                search(child, nodes)
        for child in request.open:
            if self.placement.is_satisfied(child):
                self.add_children(child, nodes, search)
        for child in request.done:
            self.add_children(child, nodes, search)

    def add_extras(self, request: GroupRequest, nodes: Mask | None) -> None:
        """The remaining members of satisfied groups."""
        nodes = self.nodes_for_extras(request, nodes)
        if isinstance(request, PodGroupRequest):
            self._add_members(request, nodes)
            return
        self._add_extras_of_children(request, nodes)

    def _add_extras_of_children(self, request: CompositeRequest, nodes: Mask | None) -> None:
        satisfied = [child for child in request.open if self.placement.is_satisfied(child)]
        for child in sorted([*satisfied, *request.done], key=lambda child: -highest_priority(child)):
            self.add_extras(child, nodes)

    def _add_members(self, leaf: PodGroupRequest, nodes: Mask | None) -> None:
        """The members that are not placed yet, in order of preference."""
        if len(leaf.identical) == 1:
            (pods,) = leaf.identical
            rest = pods.count - self.placement.placed(pods)
            if rest:
                self.placement.place_best(pods, rest, nodes)
            return
        pods_of = {member.uid: pods for pods in leaf.identical for member in pods.members}
        waiting = [member for pods in leaf.identical for member in pods.members[self.placement.placed(pods) :]]
        order = {member.uid: index for index, member in enumerate(leaf.members)}
        waiting.sort(key=lambda member: order[member.uid])
        for pods, run in groupby(waiting, key=lambda member: pods_of[member.uid]):
            self.placement.place_best(pods, len(list(run)), nodes)

    def _add_extras_inside(self, request: GroupRequest, nodes: Mask) -> None:
        """Extras of a group whose minimum was just placed in one domain."""
        if isinstance(request, CompositeRequest):
            for child in sorted(request.open, key=self._priority_then_share):
                if not self.placement.is_satisfied(child):
                    self.place_minimum(child, nodes)
            self._add_extras_of_children(request, nodes)
        else:
            self._add_members(request, nodes)

    # --- sizes -----------------------------------------------------------------------------------

    def minimum_share(self, request: GroupRequest) -> float:
        """The share of the cluster that the minimum of a group takes at least."""
        known = self._minimum_shares.get(request)
        if known is None:
            if isinstance(request, PodGroupRequest):
                known = sum(self.dominant_share(pods.shape) * pods.preferred for pods in request.identical)
            else:
                known = sum(sorted(self.minimum_share(child) for child in request.open)[: request.need])
            self._minimum_shares[request] = known
        return known

    def dominant_share(self, shape: Shape) -> float:
        """The largest share of any resource of the cluster that one pod takes."""
        known = self._shares.get(shape)
        if known is None:
            alloc = self.placement.cluster.alloc
            requests = shape.request_vector(self.placement.cluster)
            known = self._shares[shape] = float((requests / np.maximum(alloc.sum(axis=1), 1)).max())
        return known


def pending_below(request: GroupRequest) -> int:
    """All pods below a group that may be placed."""
    return sum(leaf.pending for leaf in admissible_leaves(request))


def highest_priority(request: GroupRequest) -> int:
    """The highest priority of any pod that may be placed; members come in the order of priority."""
    return max((leaf.members[0].priority for leaf in admissible_leaves(request) if leaf.identical), default=0)
