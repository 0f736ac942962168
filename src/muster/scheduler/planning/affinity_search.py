"""The search for pods that depend on each other: affinity, anti-affinity, spreading, ports, exclusive claims.

Which node is feasible changes with every pod, so these are placed on the trial, pod by pod. For each alternative of
children and domains: first around an anchor pod, one attempt for each distinct domain that the anchor could be placed
in; then, where that fails, every order and every node, each state once. A state is which pods are on which nodes, not
how they got there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, IdenticalPods, PodGroupRequest, open_leaves
from muster.scheduler.planning.domains import TopologyDomains, ranked, unbounded_capacity
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.planning.partial_placement import narrowed
from muster.scheduler.planning.seat_bounds import affinity_keys, most, room_only_shrinks

MOST_ANCHORS = 24  # attempts around an anchor for one alternative


DEEPEST = 200  # pods beyond which the complete search is not begun


MOST_LEAVES = 100


STEP_COST = 4  # one state evaluates whole columns: as much work as a few steps of the search over counts


Placed = tuple[int, int, int, int]  # PodGroup and shape by their position, slot, count


@dataclass(slots=True)
class Alternative:
    """One choice of children and domains: the PodGroups to place, and where."""

    leaves: list[tuple[PodGroupRequest, Mask | None]]
    domains: list[tuple[GroupRequest, int]]
    satisfied: list[GroupRequest]


@dataclass(slots=True)
class _Option:
    """Pods of one shape of which more are to be placed, and the nodes that are feasible now, best first."""

    leaf: int
    shape: int
    pods: IdenticalPods
    slots: list[int]
    required: bool  # every placement contains one more of them


class AffinitySearch:
    """One search on the placement of a greedy planner. `complete` is False once anything was left out."""

    def __init__(self, greedy: Greedy, budget: Budget) -> None:
        self.greedy = greedy
        self.placement = greedy.placement
        self.budget = budget
        self.complete = True
        self.counted = True  # counting ruled out every alternative
        self.orders = 0
        self._seen: set[object] = set()

    def place_minimum(self, request: GroupRequest, nodes: Mask | None) -> bool:
        """Place the minimum of a group, with its domains and satisfied groups recorded in the placement."""
        if len(list(open_leaves(request))) > MOST_LEAVES:
            self.complete = False
            return False
        for alternative in self._alternatives(request, nodes):
            if not self.budget.spend(STEP_COST):
                self.complete = False
                return False
            if self._ruled_out(alternative):
                continue
            self.counted = False
            mark = self.placement.mark()
            if self._around_anchor(alternative) or self._every_order(alternative):
                for group, value in alternative.domains:
                    self.placement.choose_domain(group, value)
                for group in alternative.satisfied:
                    self.placement.mark_satisfied(group)
                return True
            self.placement.undo(mark)
        return False

    # --- children and domains --------------------------------------------------------------------

    def _alternatives(self, request: GroupRequest, nodes: Mask | None) -> Iterator[Alternative]:
        if not request.topology:
            yield from self._inside(request, nodes)
            return
        domains = TopologyDomains.of(self.placement, request.topology, nodes)
        for _, value in ranked(self.placement, request, domains, unbounded_capacity(domains)):
            for inner in self._inside(request, narrowed(nodes, domains.ids, value)):
                yield Alternative(inner.leaves, [(request, value), *inner.domains], inner.satisfied)

    def _inside(self, request: GroupRequest, nodes: Mask | None) -> Iterator[Alternative]:
        if isinstance(request, PodGroupRequest):
            yield Alternative([(request, nodes)], [], [request])
            return
        children = sorted(request.open, key=self.greedy.minimum_share)
        for chosen in combinations(children, request.need):
            for inner in self._product(chosen, nodes):
                yield Alternative(inner.leaves, inner.domains, [*inner.satisfied, request])

    def _product(self, requests: tuple[GroupRequest, ...], nodes: Mask | None) -> Iterator[Alternative]:
        if not requests:
            yield Alternative([], [], [])
            return
        for first in self._alternatives(requests[0], nodes):
            for rest in self._product(requests[1:], nodes):
                yield Alternative(
                    first.leaves + rest.leaves, first.domains + rest.domains, first.satisfied + rest.satisfied
                )

    def _ruled_out(self, alternative: Alternative) -> bool:
        """Whether counting rules out one of the PodGroups by itself."""
        for leaf, nodes in alternative.leaves:
            room = (min(pods.count, most(self.placement.trial, pods.shape, nodes)) for pods in leaf.identical)
            if sum(room) < leaf.need:
                return True
        return False

    # --- around an anchor ------------------------------------------------------------------------

    def _around_anchor(self, alternative: Alternative) -> bool:
        """Place one pod in each domain that could matter, and the rest around it by score."""
        placement = self.placement
        tries = 0
        for pods, nodes in self._anchors(alternative):
            for slot in self._anchor_slots(alternative, pods.shape, nodes):
                tries += 1
                if tries > MOST_ANCHORS or not self.budget.spend(STEP_COST):
                    return False
                self.orders += 1
                mark = placement.mark()
                placement.place_on(pods, slot)
                if self._place_rest(alternative):
                    return True
                self.budget.spend(STEP_COST * placement.batches_since(mark))
                placement.undo(mark)
        return False

    def _anchors(self, alternative: Alternative) -> list[tuple[IdenticalPods, Mask | None]]:
        """The pods to begin with: those that require no other pod first, the largest of them first."""
        found = [(pods, nodes) for leaf, nodes in alternative.leaves for pods in leaf.identical]
        return sorted(
            found,
            key=lambda item: (not room_only_shrinks(item[0].shape.pod), -self.greedy.dominant_share(item[0].shape)),
        )

    def _anchor_slots(self, alternative: Alternative, shape: Shape, nodes: Mask | None) -> list[int]:
        """The best feasible node of every distinct domain, by the topology keys of all pods."""
        order = self._feasible_slots(shape, nodes)
        if not len(order):
            return []
        keys = sorted(
            {key for leaf, _ in alternative.leaves for pods in leaf.identical for key in affinity_keys(pods.shape.pod)}
        )
        if not keys:
            return order[:2].tolist()
        labels = zip(*(self.placement.cluster.labels(key)[order].tolist() for key in keys), strict=True)
        first: dict[tuple[int, ...], int] = {}
        for values, slot in zip(labels, order.tolist(), strict=True):
            first.setdefault(values, slot)
        return list(first.values())

    def _feasible_slots(self, shape: Shape, nodes: Mask | None) -> np.ndarray:
        """The feasible nodes, best score first."""
        trial = self.placement.trial
        feasible = trial.feasible(shape)
        slots = np.flatnonzero(feasible if nodes is None else feasible & nodes)
        if not len(slots):
            return slots
        return slots[np.lexsort((-self.placement.cluster.rank[slots], -trial.score(shape, slots)))]

    def _place_rest(self, alternative: Alternative) -> bool:
        """Repeat over all PodGroups while pods are placed."""
        missing = [leaf.need - self._placed(leaf) for leaf, _ in alternative.leaves]
        moved = True
        while moved and any(left > 0 for left in missing):
            moved = False
            for index, (leaf, nodes) in enumerate(alternative.leaves):
                left = self.greedy.place_members(leaf, missing[index], nodes)
                moved = moved or left < missing[index]
                missing[index] = left
        return not any(left > 0 for left in missing)

    def _placed(self, leaf: PodGroupRequest) -> int:
        return sum(self.placement.placed(pods) for pods in leaf.identical)

    # --- every order, every node -----------------------------------------------------------------

    def _every_order(self, alternative: Alternative) -> bool:
        """Complete search: each reachable set of placed pods is tried once."""
        self._seen.clear()
        if sum(leaf.need for leaf, _ in alternative.leaves) > DEEPEST:
            self.complete = False
            return False
        shrinking = all(room_only_shrinks(pods.shape.pod) for leaf, _ in alternative.leaves for pods in leaf.identical)
        return self._step(alternative, frozenset(), shrinking)

    def _step(self, alternative: Alternative, state: frozenset[Placed], shrinking: bool) -> bool:
        if all(self._placed(leaf) >= leaf.need for leaf, _ in alternative.leaves):
            return True
        if state in self._seen:
            return False
        if not self.budget.spend(STEP_COST):
            self.complete = False
            return False
        self._seen.add(state)
        options = self._options(alternative)
        if shrinking:
            # Room only shrinks, so a pod that is in every placement may as well be placed now.
            required = [option for option in options if option.required]
            options = required[:1] if required else options
        for option in options:
            for slot in option.slots:
                mark = self.placement.mark()
                self.placement.place_on(option.pods, slot)
                if self._step(alternative, _with(state, option.leaf, option.shape, slot), shrinking):
                    return True
                self.placement.undo(mark)
                if not self.complete:
                    return False
        return False

    def _options(self, alternative: Alternative) -> list[_Option]:
        """The pods that can still be placed, those with the fewest feasible nodes first."""
        found: list[_Option] = []
        for index, (leaf, nodes) in enumerate(alternative.leaves):
            if self._placed(leaf) >= leaf.need:
                continue
            required = len(leaf.identical) == 1 or leaf.need == leaf.pending
            for at, pods in enumerate(leaf.identical):
                if self.placement.placed(pods) < pods.count:
                    slots: list[int] = self._feasible_slots(pods.shape, nodes).tolist()
                    found.append(_Option(index, at, pods, slots, required))
        return sorted(found, key=lambda option: len(option.slots))


def _with(state: frozenset[Placed], leaf: int, shape: int, slot: int) -> frozenset[Placed]:
    """The state with one more pod of a shape on a slot."""
    count = next((entry[3] for entry in state if entry[:3] == (leaf, shape, slot)), 0)
    return (state - {(leaf, shape, slot, count)}) | {(leaf, shape, slot, count + 1)}
