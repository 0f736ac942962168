"""Members that depend on each other: affinity, anti-affinity, spreading, ports, exclusive claims.

Which node is allowed changes with every pod, so these are placed on the trial, pod by pod. For each
way to choose children and domains: first the members around an anchor, one try per distinct domain
that the anchor could open; then, where that fails, every order and every node, each state once. A
state is what sits where, not how it came about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from muster.scheduler.placement.verdict import Budget
from muster.scheduler.planning.domains import TopologyDomains, potential_of_members, ranked
from muster.scheduler.planning.goal import Goal, LeafGoal, open_leaves
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.planning.partial_placement import narrowed
from muster.scheduler.planning.seat_bounds import affinity_keys, most, room_only_shrinks

ANCHORS = 24


DEEPEST = 200


MOST_LEAVES = 100


STEP_COST = 4  # one state looks at whole columns: as much work as a few steps of the search over counts


@dataclass(slots=True)
class Alternative:
    """One choice of children and domains: the leaves to seat, and where."""

    loads: list[tuple[LeafGoal, Mask | None]]
    choices: list[tuple[Goal, int]]
    held: list[Goal]


class AffinitySearch:
    def __init__(self, greedy: Greedy, budget: Budget) -> None:
        self.greedy = greedy
        self.placement = greedy.placement
        self.budget = budget
        self.complete = True
        self.counted = True  # no way got past counting
        self.orders = 0
        self._seen: set[object] = set()

    def secure(self, goal: Goal, mask: Mask | None) -> bool:
        """Seat the minimum of a group; what holds is noted in the seating."""
        if len(list(open_leaves(goal))) > MOST_LEAVES:
            self.complete = False
            return False
        for way in self._ways(goal, mask):
            if not self.budget.spend(STEP_COST):
                self.complete = False
                return False
            if self._hopeless(way):
                continue
            self.counted = False
            mark = self.placement.mark()
            if self._anchored(way) or self._everything(way):
                for chosen, value in way.choices:
                    self.placement.choose(chosen, value)
                for held in way.held:
                    self.placement.mark_satisfied(held)
                return True
            self.placement.undo(mark)
        return False

    # --- children and domains --------------------------------------------------------------------

    def _ways(self, goal: Goal, mask: Mask | None) -> Iterator[Alternative]:
        if not goal.topology:
            yield from self._inside(goal, mask)
            return
        domains = TopologyDomains.of(self.placement, goal.topology, mask)
        for _, value in ranked(self.placement, goal, domains, potential_of_members(goal, domains)):
            for way in self._inside(goal, narrowed(mask, domains.ids, value)):
                yield Alternative(way.loads, [(goal, value), *way.choices], way.held)

    def _inside(self, goal: Goal, mask: Mask | None) -> Iterator[Alternative]:
        if isinstance(goal, LeafGoal):
            yield Alternative([(goal, mask)], [], [goal])
            return
        children = sorted(goal.open, key=self.greedy.burden)
        for chosen in combinations(children, goal.need):
            for way in self._product(chosen, mask):
                yield Alternative(way.loads, way.choices, [*way.held, goal])

    def _product(self, goals: tuple[Goal, ...], mask: Mask | None) -> Iterator[Alternative]:
        if not goals:
            yield Alternative([], [], [])
            return
        for first in self._ways(goals[0], mask):
            for rest in self._product(goals[1:], mask):
                yield Alternative(first.loads + rest.loads, first.choices + rest.choices, first.held + rest.held)

    def _hopeless(self, way: Alternative) -> bool:
        """A leaf that counting rules out by itself."""
        for leaf, mask in way.loads:
            room = (
                min(lot.count, most(self.placement.trial, self.placement.shapes[lot.shape], mask)) for lot in leaf.lots
            )
            if sum(room) < leaf.need:
                return True
        return False

    # --- around an anchor ------------------------------------------------------------------------

    def _anchored(self, way: Alternative) -> bool:
        """Seat one pod in each domain that could matter, and let the score place the rest around it."""
        seating = self.placement
        tries = 0
        for leaf, at, mask in self._anchors(way):
            for slot in self._openings(way, leaf, at, mask):
                tries += 1
                if tries > ANCHORS or not self.budget.spend(STEP_COST):
                    return False
                self.orders += 1
                mark = seating.mark()
                seating.put(leaf, at, slot)
                if self._rest(way):
                    return True
                self.budget.spend(STEP_COST * len(seating.since(mark)))
                seating.undo(mark)
        return False

    def _anchors(self, way: Alternative) -> Iterator[tuple[LeafGoal, int, Mask | None]]:
        """Who goes first: those that need nobody, the largest of them first."""
        found = [(leaf, at, mask) for leaf, mask in way.loads for at in range(len(leaf.lots))]
        pods = self.placement.shapes
        found.sort(
            key=lambda f: (
                not room_only_shrinks(pods[f[0].lots[f[1]].shape].pod),
                -self.greedy.share(f[0].lots[f[1]].shape),
            )
        )
        yield from found

    def _openings(self, way: Alternative, leaf: LeafGoal, at: int, mask: Mask | None) -> list[int]:
        """The best allowed node of every distinct domain, by the keys that any member looks at."""
        trial, shapes = self.placement.trial, self.placement.shapes
        shape = shapes[leaf.lots[at].shape]
        allowed = trial.feasible(shape)
        slots = np.flatnonzero(allowed if mask is None else allowed & mask)
        if not len(slots):
            return []
        order = slots[np.lexsort((-self.placement.cluster.rank[slots], -trial.score(shape, slots)))]
        keys = sorted({k for other, _ in way.loads for lot in other.lots for k in affinity_keys(shapes[lot.shape].pod)})
        if not keys:
            return order[:2].tolist()
        views = zip(*(self.placement.cluster.labels(key)[order].tolist() for key in keys), strict=True)
        first: dict[tuple[int, ...], int] = {}
        for view, slot in zip(views, order.tolist(), strict=True):
            first.setdefault(view, slot)
        return list(first.values())

    def _rest(self, way: Alternative) -> bool:
        """Go round over all leaves while somebody finds a seat."""
        missing = [leaf.need - self._seated(leaf) for leaf, _ in way.loads]
        moved = True
        while moved and any(left > 0 for left in missing):
            moved = False
            for index, (leaf, mask) in enumerate(way.loads):
                left = self.greedy.seat_lots(leaf, missing[index], mask)
                moved = moved or left < missing[index]
                missing[index] = left
        return not any(left > 0 for left in missing)

    def _seated(self, leaf: LeafGoal) -> int:
        return sum(self.placement.seated(leaf, at) for at in range(len(leaf.lots)))

    # --- every order, every node -----------------------------------------------------------------

    def _everything(self, way: Alternative) -> bool:
        """Complete search: each reachable set of seats is looked at once."""
        self._seen.clear()
        if sum(leaf.need for leaf, _ in way.loads) > DEEPEST:
            self.complete = False
            return False
        one_kind = all(
            room_only_shrinks(self.placement.shapes[lot.shape].pod) for leaf, _ in way.loads for lot in leaf.lots
        )
        return self._step(way, frozenset(), one_kind)

    def _step(self, way: Alternative, state: frozenset[tuple[int, int, int, int]], one_kind: bool) -> bool:
        if all(self._seated(leaf) >= leaf.need for leaf, _ in way.loads):
            return True
        if state in self._seen:
            return False
        if not self.budget.spend(STEP_COST):
            self.complete = False
            return False
        self._seen.add(state)
        options = self._options(way)
        if one_kind:
            # Room only shrinks, so a pod that must be seated may as well be seated now.
            must = [option for option in options if option[4]]
            options = must[:1] if must else options
        for index, leaf, at, slots, _ in options:
            for slot in slots:
                mark = self.placement.mark()
                self.placement.put(leaf, at, slot)
                if self._step(way, _with(state, index, at, slot), one_kind):
                    return True
                self.placement.undo(mark)
                if not self.complete:
                    return False
        return False

    def _options(self, way: Alternative) -> list[tuple[int, LeafGoal, int, list[int], bool]]:
        """Every lot that still has members to seat, with its nodes; the fewest nodes first."""
        found: list[tuple[int, LeafGoal, int, list[int], bool]] = []
        trial = self.placement.trial
        for index, (leaf, mask) in enumerate(way.loads):
            if self._seated(leaf) >= leaf.need:
                continue
            for at, lot in enumerate(leaf.lots):
                if self.placement.seated(leaf, at) >= lot.count:
                    continue
                shape = self.placement.shapes[lot.shape]
                allowed = trial.feasible(shape)
                slots = np.flatnonzero(allowed if mask is None else allowed & mask)
                must = len(leaf.lots) == 1 or leaf.need == leaf.pending
                if len(slots):
                    slots = slots[np.lexsort((-self.placement.cluster.rank[slots], -trial.score(shape, slots)))]
                found.append((index, leaf, at, slots.tolist(), must))
        return sorted(found, key=lambda option: len(option[3]))


def _with(
    state: frozenset[tuple[int, int, int, int]], leaf: int, lot: int, slot: int
) -> frozenset[tuple[int, int, int, int]]:
    """The state with one more pod of a lot on a slot."""
    count = next((entry[3] for entry in state if entry[:3] == (leaf, lot, slot)), 0)
    return (state - {(leaf, lot, slot, count)}) | {(leaf, lot, slot, count + 1)}
