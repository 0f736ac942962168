"""Why there is no placement: proofs for the checker, and for people the domain that came nearest.

A proof names the group and what is short at its level. Where counting alone decided, the proof says so
level by level; else it is the weighing or the exhaustive search that decided. Shortages always describe
a real attempt: siblings are seated first, so a group is told what is left for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import CountingProof, ExhaustionProof, Proof, Shortage, WeightProof
from muster.scheduler.planning.domains import TopologyDomains, domain_rank, potential
from muster.scheduler.planning.goal import BranchGoal, Goal, LeafGoal, admissible, open_leaves
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.partial_placement import narrowed
from muster.scheduler.planning.seat_bounds import most
from muster.scheduler.planning.tree_search import NotFound

NEAREST = 5


MOST_CHILDREN = 16


MOST_SEATED = 200


class ShortageFinder:
    def __init__(self, greedy: Greedy) -> None:
        self.greedy = greedy
        self.placement = greedy.placement
        self._within = ("", "")  # the enclosing domain that is being looked at

    # --- what is short ---------------------------------------------------------------------------

    def shortages(self, goal: Goal, mask: Mask | None) -> tuple[Shortage, ...]:
        """What a group lacks, the deepest cause first and the nearest domain before others."""
        mark = self.placement.mark()
        found = self._leaf(goal, mask) if isinstance(goal, LeafGoal) else self._branch(goal, mask)
        self.placement.undo(mark)
        return tuple(found)

    def _leaf(self, leaf: LeafGoal, mask: Mask | None) -> list[Shortage]:
        if not leaf.topology:
            return [self._shortage(leaf, "", "", mask)]
        places = self._nearest(leaf, mask)
        if not places:
            lacking = ((f"nodes with the label {leaf.topology}", 0),)
            return [Shortage(leaf.key, leaf.topology, leaf.pin or "", 0, leaf.need, lacking)]
        return [self._shortage(leaf, leaf.topology, name, inside) for name, inside in places]

    def _shortage(self, leaf: LeafGoal, key: str, domain: str, mask: Mask | None) -> Shortage:
        """Seat as many as possible; what the scope then lacks for the next one."""
        if not leaf.lots:
            return Shortage(leaf.key, key, domain, 0, max(1, leaf.need), (("pending members", 0),), within=self._within)
        room = [most(self.placement.trial, self.placement.shapes[lot.shape], mask) for lot in leaf.lots]
        counted = min(leaf.need, sum(min(lot.count, have) for lot, have in zip(leaf.lots, room, strict=True)))
        independent = all(self.placement.trial.independent(self.placement.shapes[lot.shape]) for lot in leaf.lots)
        if independent and len(leaf.lots) == 1:
            return self._one_kind(leaf, key, domain, mask, counted)
        if not independent and leaf.need > MOST_SEATED:  # one by one this would take too long
            return Shortage(leaf.key, key, domain, counted, leaf.need, within=self._within)
        worst = max(range(len(room)), key=lambda at: leaf.lots[at].preferred - room[at])
        empty = dict(self._short_of(leaf.lots[worst].shape, mask))
        mark = self.placement.mark()
        missing = self.greedy.seat_lots(leaf, leaf.need, mask)
        unseated = [at for at, lot in enumerate(leaf.lots) if self.placement.seated(leaf, at) < lot.preferred]
        worst = worst if not unseated or worst in unseated else unseated[0]
        lacking = self._lacking(leaf.lots[worst].shape, missing, mask) if missing else ()
        self.placement.undo(mark)
        nodes = empty.get(lacking[0][0], 0) if lacking else 0
        return Shortage(leaf.key, key, domain, leaf.need - missing, leaf.need, lacking, nodes, self._within)

    def _one_kind(self, leaf: LeafGoal, key: str, domain: str, mask: Mask | None, seats: int) -> Shortage:
        """The same for members that are all alike, by arithmetic."""
        missing, index = leaf.need - seats, leaf.lots[0].shape
        taken = self.placement.trial.seats(self.placement.shapes[index])
        lacking = self._lacking(index, missing, mask, taken) if missing else ()
        nodes = dict(self._short_of(index, mask)).get(lacking[0][0], 0) if lacking else 0
        return Shortage(leaf.key, key, domain, seats, leaf.need, lacking, nodes, self._within)

    def _short_of(self, index: int, mask: Mask | None, taken: Ints | None = None) -> list[tuple[str, int]]:
        """The resources that nodes of the scope have too little of for one more pod, and how many nodes do.

        `taken` pods of the shape are taken to be on each node already.
        """
        cluster, shape = self.placement.cluster, self.placement.shapes[index]
        wanted = shape.request_vector(cluster)
        open_to_it = (
            cluster.alive & self.placement.trial.feasibility(shape).node_ok
        )  # elsewhere it is not room that is missing
        inside = open_to_it if mask is None else open_to_it & mask
        found: list[tuple[str, int]] = []
        for row in np.flatnonzero(wanted):
            left = cluster.alloc[row] - cluster.used[row]
            if taken is not None:
                left = left - taken * wanted[row]
            nodes = int((inside & (left < wanted[row])).sum())
            if nodes:
                found.append((cluster.resources[row], nodes))
        return sorted(found, key=lambda item: (-item[1], item[0]))

    def _lacking(
        self, index: int, missing: int, mask: Mask | None, taken: Ints | None = None
    ) -> tuple[tuple[str, int], ...]:
        """The scarcest resources and by how much they are short, or else the rules that keep nodes away."""
        cluster, shape = self.placement.cluster, self.placement.shapes[index]
        short = self._short_of(index, mask, taken)
        if short:
            wanted = shape.request_vector(cluster)
            top = [name for name, nodes in short if nodes == short[0][1]]
            return tuple((name, missing * int(wanted[cluster.row[name]])) for name in top)
        refusals = self.placement.trial.diagnose(shape, mask)
        return tuple(sorted(refusals.counts.items(), key=lambda item: (-item[1], item[0]))[:2])

    def _nearest(self, goal: Goal, mask: Mask | None) -> list[tuple[str, Mask]]:
        """The domains with the most room for a group."""
        cluster = self.placement.cluster
        domains = TopologyDomains.of(self.placement, goal.topology, mask)
        pods = potential(self.placement, goal, domains).pods
        values = np.flatnonzero(np.bincount(domains.ids))
        values = values[values > 0]
        if goal.pin is not None:
            values = values[values == (cluster.label_id(goal.topology, goal.pin) if goal.pin else 0)]
        names = {int(value): cluster.label_value(goal.topology, int(value)) for value in values}
        order = sorted(names, key=lambda value: (-pods[value], domain_rank(cluster.seed, names[value])))
        return [(names[value], narrowed(mask, domains.ids, value)) for value in order[:NEAREST]]

    def _branch(self, goal: BranchGoal, mask: Mask | None) -> list[Shortage]:
        if not goal.topology:
            below, held = self._children(goal, mask)
            return [*below, Shortage(goal.key, "", "", held, goal.need, (("children", goal.need - held),))]
        own: list[Shortage] = []
        causes: list[Shortage] = []
        outside = self._within
        for name, inside in self._nearest(goal, mask):
            mark = self.placement.mark()
            self._within = (goal.topology, name)
            below, held = self._children(goal, inside)
            self._within = outside
            self.placement.undo(mark)
            own.append(Shortage(goal.key, goal.topology, name, held, goal.need, (("children", goal.need - held),)))
            causes = causes or below
        if not own:
            lacking = ((f"nodes with the label {goal.topology}", 0),)
            own = [Shortage(goal.key, goal.topology, goal.pin or "", 0, goal.need, lacking)]
        return causes + own

    def _children(self, goal: BranchGoal, mask: Mask | None) -> tuple[list[Shortage], int]:
        """Seat the children that can be seated; what the others lack then."""
        failed: list[Goal] = []
        held = 0
        for child in self.greedy.in_order(goal):
            if self.greedy.place_minimum(child, mask):
                held += 1
            else:
                failed.append(child)
        return [shortage for child in failed[:MOST_CHILDREN] for shortage in self.shortages(child, mask)], held

    # --- proofs ----------------------------------------------------------------------------------

    def proof(
        self, goal: Goal, mask: Mask | None, last: NotFound, shortages: tuple[Shortage, ...], steps: int
    ) -> Proof:
        if last.counted:
            return self._counting(goal, mask)
        if last.weighed is not None and not _chooses(goal):
            weighed = self._weighing(goal, last, shortages)
            if weighed is not None:
                return weighed
        shapes = {lot.shape for leaf in open_leaves(goal) for lot in leaf.lots}
        return ExhaustionProof(goal.key, max(1, last.classes), len(shapes), steps, shortages)

    def _counting(self, goal: Goal, mask: Mask | None) -> CountingProof:
        if isinstance(goal, LeafGoal):
            return CountingProof(goal.key, tuple(self._leaf(goal, mask)))
        name, inside = (self._nearest(goal, mask) or [("", mask)])[0] if goal.topology else ("", mask)
        failing = [child for child in goal.open if not self._fits_alone(child, inside)]
        own = [s for s in self._branch(goal, mask) if s.group == goal.key]
        outside, self._within = self._within, (goal.topology, name) if goal.topology and name else self._within
        below = tuple(self._counting(child, inside) for child in failing)
        self._within = outside
        return CountingProof(goal.key, tuple(own), below)

    def _fits_alone(self, goal: Goal, mask: Mask | None) -> bool:
        """The same necessary condition that the search starts with."""
        if goal.topology:
            return any(self._inside_fits(goal, inside) for _, inside in self._nearest(goal, mask))
        return self._inside_fits(goal, mask)

    def _inside_fits(self, goal: Goal, mask: Mask | None) -> bool:
        if isinstance(goal, LeafGoal):
            room = (
                min(lot.count, most(self.placement.trial, self.placement.shapes[lot.shape], mask)) for lot in goal.lots
            )
            return sum(room) >= goal.need
        return sum(self._fits_alone(child, mask) for child in goal.open) >= goal.need

    def _weighing(self, goal: Goal, last: NotFound, shortages: tuple[Shortage, ...]) -> WeightProof | None:
        assert last.weighed is not None
        question, weighed = last.weighed
        weights: dict[int, int] = {}
        for shape, weight in zip(question.shapes, weighed.weights, strict=True):
            if weights.setdefault(self.placement.shapes[shape].id, weight) != weight:
                return None
        if len(set(question.scopes)) > 1 or question.board.limited:
            return None
        pairs = tuple(sorted(weights.items()))
        return WeightProof(goal.key, pairs, weighed.required, weighed.available, shortages)

    def nothing_new(self, request: GroupRequest, proofs: Sequence[Proof]) -> Proof:
        """All minima hold and no pod can be added: one proof for every single thing that could be."""
        if len(proofs) == 1:
            return proofs[0]
        shortages = tuple(shortage for proof in proofs for shortage in proof.shortages)
        counting = tuple(proof for proof in proofs if isinstance(proof, CountingProof))
        if len(counting) == len(proofs):
            return CountingProof(request.key, shortages[:NEAREST], counting)
        steps = sum(proof.steps for proof in proofs if isinstance(proof, ExhaustionProof))
        return ExhaustionProof(request.key, 0, 0, steps, shortages)

    def inadmissible(self, request: GroupRequest) -> CountingProof:
        """Too few members or children exist, or they already run in several domains."""
        children = request.children if isinstance(request, CompositeRequest) else ()
        failing = tuple(self.inadmissible(child) for child in children if not admissible(child))
        return CountingProof(request.key, tuple(excluded(request)), failing)


def excluded(request: GroupRequest) -> Iterator[Shortage]:
    """What keeps a group from being tried at all."""
    if admissible(request):
        return
    values = sorted(set(request.domains))
    if request.topology and len(values) > 1:
        lacking = ((f"one domain: members run in {', '.join(values)} already", 0),)
        yield Shortage(request.key, request.topology, "", 0, request.minimum, lacking)
    elif isinstance(request, PodGroupRequest):
        have = request.bound + len(request.members)
        yield Shortage(request.key, "", "", have, request.minimum, (("members", request.minimum - have),))
    else:
        have = sum(map(admissible, request.children))
        yield Shortage(request.key, "", "", have, request.minimum, (("children", request.minimum - have),))


def _chooses(goal: Goal) -> bool:
    """Whether any choice of domain or children is left, so that one packing question is not the whole story."""
    if goal.topology:
        return True
    if isinstance(goal, LeafGoal):
        return False
    return goal.need < len(goal.open) or any(_chooses(child) for child in goal.open)
