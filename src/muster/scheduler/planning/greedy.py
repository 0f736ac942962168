"""The quick way to a plan: seats by score, hardest child first, domains by score, then extras.

`secure` places minima only. It places nothing where counting already says no, and takes back what it
placed when it fails; a failure here proves nothing. `complete` then adds further children of branches
whose minimum holds, and `fill` the remaining members of groups that run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from muster.scheduler.placement.verdict import Budget, DomainsEvaluated
from muster.scheduler.planning.domains import DomainCapacity, TopologyDomains, able_domains, potential, ranked, score
from muster.scheduler.planning.goal import BranchGoal, Goal, LeafGoal, all_leaves
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.planning.partial_placement import Mark, PartialPlacement, narrowed
from muster.scheduler.planning.seat_bounds import most

MOST_DOMAINS_COMPARED = 8


MOST_DOMAINS_TRIED = 64  # the search after this one knows which domains are alike


WORTH_COUNTING = 16


PODS_PER_STEP = 16


Rescue = Callable[[Goal, "Mask | None"], bool]


class Greedy:
    def __init__(self, seating: PartialPlacement, budget: Budget, judging: DomainsEvaluated | None = None) -> None:
        self.placement = seating
        self.budget = budget
        self.judging = judging
        self._burdens: dict[int, float] = {}

    # --- minima ----------------------------------------------------------------------------------

    def place_minimum(self, goal: Goal, mask: Mask | None) -> bool:
        """Seat what the minimum of a group needs; all of it or nothing."""
        mark = self.placement.mark()
        held = self._in_some_domain(goal, mask) if goal.topology else self._inside(goal, mask)
        if held:
            self.placement.mark_satisfied(goal)
        else:
            self.placement.undo(mark)
        return held

    def _inside(self, goal: Goal, mask: Mask | None) -> bool:
        if isinstance(goal, LeafGoal):
            return self._leaf(goal, mask)
        if goal.need == 0:
            return True
        return self._children(goal.need, self.in_order(goal), mask)

    def in_order(self, goal: BranchGoal) -> list[Goal]:
        """If all children are needed the hardest goes first, else those of high priority and then the easiest."""
        if goal.need == len(goal.open):
            return sorted(goal.open, key=self.burden, reverse=True)
        return sorted(goal.open, key=self._eagerness)

    def _eagerness(self, goal: Goal) -> tuple[int, float]:
        return -top_priority(goal), self.burden(goal)

    def _children(self, need: int, children: Sequence[Goal], mask: Mask | None) -> bool:
        """Go round until enough hold or a round changes nothing: one child may wait for another's pods."""
        waiting = list(children)
        while need > 0:
            left: list[Goal] = []
            for child in waiting:
                if need > 0 and self.place_minimum(child, mask):
                    need -= 1
                else:
                    left.append(child)
            if need <= 0:
                return True
            if len(left) == len(waiting) or not self._dependent(left):
                return False
            waiting = left
        return True

    def _dependent(self, goals: Sequence[Goal]) -> bool:
        shapes = self.placement.shapes
        return any(
            not self.placement.trial.independent(shapes[lot.shape])
            for goal in goals
            for leaf in all_leaves(goal)
            for lot in leaf.lots
        )

    def _leaf(self, leaf: LeafGoal, mask: Mask | None) -> bool:
        if len(leaf.lots) == 1:
            return self._enough_seats(leaf, mask) and self.placement.take(leaf, 0, leaf.need, mask) == leaf.need
        return self.seat_lots(leaf, leaf.need, mask) == 0

    def seat_lots(self, leaf: LeafGoal, missing: int, mask: Mask | None) -> int:
        """Seat up to `missing` more members, those that come first if possible; how many found no seat."""
        order = sorted(range(len(leaf.lots)), key=lambda at: -self.share(leaf.lots[at].shape))
        for wish in ([lot.preferred for lot in leaf.lots], [lot.count for lot in leaf.lots]):
            missing = self._lots(leaf, order, wish, missing, mask)
        return missing

    def _enough_seats(self, leaf: LeafGoal, mask: Mask | None) -> bool:
        """Counting first: a large gang that cannot fit is not placed pod by pod to find out."""
        if leaf.need < WORTH_COUNTING:
            return True
        return most(self.placement.trial, self.placement.shapes[leaf.lots[0].shape], mask) >= leaf.need

    def _lots(self, leaf: LeafGoal, order: Sequence[int], wish: Sequence[int], missing: int, mask: Mask | None) -> int:
        """Go round while it helps: a lot may need the pods of another to be there first."""
        moved = True
        while moved and missing:
            moved = False
            for at in order:
                want = min(wish[at] - self.placement.seated(leaf, at), missing)
                got = self.placement.take(leaf, at, want, mask) if want > 0 else 0
                missing -= got
                moved = moved or got > 0
        return missing

    # --- domains ---------------------------------------------------------------------------------

    def _in_some_domain(self, goal: Goal, mask: Mask | None) -> bool:
        """The domain of the best score in which the minimum holds."""
        domains = TopologyDomains.of(self.placement, goal.topology, mask)
        found = potential(self.placement, goal, domains)
        exact = isinstance(goal, LeafGoal) and len(goal.lots) == 1 and self._counts_are_exact(goal)
        if self.judging is not None and isinstance(goal, LeafGoal):
            self.judging.domains += 1 if goal.pin is not None else domains.count
            self.judging.feasible += len(able_domains(self.placement, goal, domains, found))
        order = ranked(self.placement, goal, domains, found, only_best=exact)
        order = order[:1] if exact else order
        best: tuple[int, int] | None = None
        compared = 0
        for tried, (_, value) in enumerate(order[:MOST_DOMAINS_TRIED]):
            if tried and not self.budget.spend():  # what succeeds at once costs nothing, however large the tree
                break
            outcome = self._try_domain(goal, value, domains, found, last=len(order) == 1)
            if outcome is None:
                continue
            if outcome < 0:
                return True
            compared += 1
            if best is None or outcome > best[0]:
                best = outcome, value
            if compared >= MOST_DOMAINS_COMPARED:
                break
        return best is not None and self._settle(goal, best[1], domains)

    def _counts_are_exact(self, leaf: LeafGoal) -> bool:
        return self.placement.trial.independent(self.placement.shapes[leaf.lots[0].shape])

    def _settle(self, goal: Goal, value: int, domains: TopologyDomains) -> bool:
        self.placement.choose(goal, value)
        return self._inside(goal, narrowed(domains.inside, domains.ids, value))

    def _try_domain(
        self, goal: Goal, value: int, domains: TopologyDomains, found: DomainCapacity, *, last: bool
    ) -> int | None:
        """None if the minimum does not hold there; -1 if it holds and nothing can be better (it stays seated);
        else the score of the domain with extras, and nothing stays."""
        seating = self.placement
        mark = seating.mark()
        if not self._settle(goal, value, domains):
            self.budget.spend(self._placed(mark) // PODS_PER_STEP)
            seating.undo(mark)
            return None
        if last or self._placed(mark) >= found.pods[value]:
            return -1
        minimum = seating.mark()
        inside = narrowed(domains.inside, domains.ids, value)
        self._extras_inside(goal, inside)
        placed = self._placed(mark)
        if placed >= found.pods[value]:
            seating.undo(minimum)
            return -1
        reached = self._score(goal, value, domains, mark)
        seating.undo(mark)
        return reached

    def _placed(self, mark: Mark) -> int:
        return sum(len(slots) for _, _, slots in self.placement.since(mark))

    def _score(self, goal: Goal, value: int, domains: TopologyDomains, mark: Mark) -> int:
        """The seats are on the trial, so they are part of the usage already; pods are scaled to the largest hope."""
        pods = np.array([goal.bound + self._placed(mark), goal.bound + float(goal_size(goal))])
        values = np.array([value, value])
        return int(score(self.placement, domains, values, pods, np.zeros((2, 2)))[0])

    # --- extras ----------------------------------------------------------------------------------

    def scope_of(self, goal: Goal, mask: Mask | None) -> Mask | None:
        """The nodes that later members of a group may use."""
        if not goal.topology:
            return mask
        ids = self.placement.cluster.labels(goal.topology)
        value = self.placement.domain_of(goal)
        if value is None and goal.pin is not None:
            value = self.placement.cluster.label_id(goal.topology, goal.pin) if goal.pin else 0
        if value is None:
            value = self._free_domain(goal, mask)
        return narrowed(mask, ids, value) if value else np.zeros(len(ids), dtype=bool)

    def _free_domain(self, goal: Goal, mask: Mask | None) -> int:
        """A domain for a group that holds without any running member: the best that takes at least one pod."""
        domains = TopologyDomains.of(self.placement, goal.topology, mask)
        order = ranked(self.placement, goal, domains, potential(self.placement, goal, domains))
        if not order:
            return 0
        self.placement.choose(goal, order[0][1])
        return order[0][1]

    def add_children(self, goal: Goal, mask: Mask | None, rescue: Rescue) -> None:
        """Further children of branches that hold, the easiest first."""
        if isinstance(goal, LeafGoal):
            return
        mask = self.scope_of(goal, mask)
        for child in sorted(goal.open, key=self._eagerness):
            if not self.placement.won(child) and not self.place_minimum(child, mask):
                rescue(child, mask)
        for child in goal.open:
            if self.placement.won(child):
                self.add_children(child, mask, rescue)
        for child in goal.done:
            self.add_children(child, mask, rescue)

    def add_extras(self, goal: Goal, mask: Mask | None) -> None:
        """The remaining members of groups that hold."""
        mask = self.scope_of(goal, mask)
        if isinstance(goal, LeafGoal):
            self._fill_leaf(goal, mask)
            return
        self._fill_children(goal, mask)

    def _fill_children(self, goal: BranchGoal, mask: Mask | None) -> None:
        running = [child for child in goal.open if self.placement.won(child)]
        for child in sorted([*running, *goal.done], key=lambda child: -top_priority(child)):
            self.add_extras(child, mask)

    def _fill_leaf(self, leaf: LeafGoal, mask: Mask | None) -> None:
        if len(leaf.lots) == 1:
            rest = leaf.lots[0].count - self.placement.seated(leaf, 0)
            if rest:
                self.placement.take(leaf, 0, rest, mask)
            return
        at_of = {leaf.lots[at].members[k].uid: at for at in range(len(leaf.lots)) for k in range(leaf.lots[at].count)}
        waiting = [
            member for at, lot in enumerate(leaf.lots) for member in lot.members[self.placement.seated(leaf, at) :]
        ]
        order = {member.uid: index for index, member in enumerate(leaf.members)}
        waiting.sort(key=lambda member: order[member.uid])
        for at, run in groupby(waiting, key=lambda member: at_of[member.uid]):
            self.placement.take(leaf, at, len(list(run)), mask)

    def _extras_inside(self, goal: Goal, inside: Mask) -> None:
        """Extras of a group whose domain was just settled."""
        if isinstance(goal, BranchGoal):
            for child in sorted(goal.open, key=self._eagerness):
                if not self.placement.won(child):
                    self.place_minimum(child, inside)
            self._fill_children(goal, inside)
        else:
            self._fill_leaf(goal, inside)

    # --- sizes -----------------------------------------------------------------------------------

    def burden(self, goal: Goal) -> float:
        """The share of the cluster that the minimum of a group takes at least."""
        known = self._burdens.get(id(goal))
        if known is None:
            if isinstance(goal, LeafGoal):
                known = sum(self.share(lot.shape) * lot.preferred for lot in goal.lots)
            else:
                known = sum(sorted(self.burden(child) for child in goal.open)[: goal.need])
            self._burdens[id(goal)] = known
        return known

    def share(self, shape: int) -> float:
        """The largest share of any resource that one pod takes of the cluster."""
        known = self._burdens.get(-1 - shape)
        if known is None:
            alloc = self.placement.cluster.alloc
            wanted = self.placement.shapes[shape].request_vector(self.placement.cluster)
            known = float((wanted / np.maximum(alloc.sum(axis=1), 1)).max())
            self._burdens[-1 - shape] = known
        return known


def goal_size(goal: Goal) -> int:
    """All pending members below a group."""
    return sum(leaf.pending for leaf in all_leaves(goal))


def top_priority(goal: Goal) -> int:
    """The highest priority of any pending member; members come in the order of priority."""
    return max((leaf.members[0].priority for leaf in all_leaves(goal) if leaf.members), default=0)
