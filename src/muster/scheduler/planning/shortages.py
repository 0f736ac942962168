"""Why there is no placement: proofs for the checker, and for people the domain that came nearest.

A proof names the group and what is short at its level. Where counting alone decided, the proof says so level by
level; else it is the dual certificate or the exhaustive search that decided. Shortages always describe a real
attempt: siblings are placed first, so a group is shown what is left for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest, open_leaves
from muster.scheduler.placement.verdict import CountingProof, ExhaustionProof, Proof, Shortage, WeightProof
from muster.scheduler.planning.domains import TopologyDomains, capacity_of, domain_rank
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.partial_placement import narrowed
from muster.scheduler.planning.seat_bounds import most
from muster.scheduler.planning.tree_search import NotFound
from muster.scheduler.runtime.diagnosis import Diagnosis

NEAREST = 5  # domains that are described


MOST_CHILDREN = 8  # failed children of one group that are described; after so many the others are not tried


MOST_WORK = 1_000  # of greedy placement, in steps, after which no further child is described


MOST_PLACED = 200  # dependent pods that are placed one by one to see what is then short


class ShortageFinder:
    """Describes what a request lacks, on the placement of a greedy planner. Everything tried is undone."""

    def __init__(self, greedy: Greedy) -> None:
        self.greedy = greedy
        self.placement = greedy.placement
        self._within = ("", "")  # the enclosing domain that is being described
        self._enough = greedy.work + MOST_WORK

    # --- what is short ---------------------------------------------------------------------------

    def shortages(self, request: GroupRequest, nodes: Mask | None) -> tuple[Shortage, ...]:
        """What a group lacks, the deepest cause first and the nearest domain before others."""
        mark = self.placement.mark()
        found = self._leaf(request, nodes) if isinstance(request, PodGroupRequest) else self._composite(request, nodes)
        self.placement.undo(mark)
        return tuple(found)

    def _leaf(self, leaf: PodGroupRequest, nodes: Mask | None) -> list[Shortage]:
        if not leaf.topology:
            return [self._shortage(leaf, "", "", nodes)]
        places = self._nearest(leaf, nodes)
        if not places:
            lacking = ((f"nodes with the label {leaf.topology}", 0),)
            return [Shortage(leaf.key, leaf.topology, leaf.pin or "", 0, leaf.need, lacking)]
        return [self._shortage(leaf, leaf.topology, name, inside) for name, inside in places]

    def _shortage(self, leaf: PodGroupRequest, key: str, domain: str, nodes: Mask | None) -> Shortage:
        """Place as many as possible; what the nodes then lack for the next one."""
        if not leaf.identical:
            return Shortage(leaf.key, key, domain, 0, max(1, leaf.need), (("pending members", 0),), within=self._within)
        trial = self.placement.trial
        room = [most(trial, pods.shape, nodes) for pods in leaf.identical]
        counted = min(leaf.need, sum(min(pods.count, have) for pods, have in zip(leaf.identical, room, strict=True)))
        independent = all(trial.countable(pods.shape) for pods in leaf.identical)
        if independent and len(leaf.identical) == 1:
            return self._one_shape(leaf, key, domain, nodes, counted)
        if not independent and leaf.need > MOST_PLACED:
            return Shortage(leaf.key, key, domain, counted, leaf.need, within=self._within)
        worst = max(range(len(room)), key=lambda at: leaf.identical[at].preferred - room[at])
        empty = dict(self._short_of(leaf.identical[worst].shape, nodes))
        mark = self.placement.mark()
        missing = self.greedy.place_members(leaf, leaf.need, nodes)
        unplaced = [at for at, pods in enumerate(leaf.identical) if self.placement.placed(pods) < pods.preferred]
        worst = worst if not unplaced or worst in unplaced else unplaced[0]
        lacking = self._lacking(leaf.identical[worst].shape, missing, nodes) if missing else ()
        self.placement.undo(mark)
        count = empty.get(lacking[0][0], 0) if lacking else 0
        return Shortage(leaf.key, key, domain, leaf.need - missing, leaf.need, lacking, count, self._within)

    def _one_shape(self, leaf: PodGroupRequest, key: str, domain: str, nodes: Mask | None, seats: int) -> Shortage:
        """The same for independent pods of one shape, by arithmetic."""
        missing, shape = leaf.need - seats, leaf.identical[0].shape
        lacking = self._lacking(shape, missing, nodes, self.placement.trial.seats(shape)) if missing else ()
        count = dict(self._short_of(shape, nodes)).get(lacking[0][0], 0) if lacking else 0
        return Shortage(leaf.key, key, domain, seats, leaf.need, lacking, count, self._within)

    def _short_of(self, shape: Shape, nodes: Mask | None, taken: Ints | None = None) -> list[tuple[str, int]]:
        """The resources of which nodes have too little for one more pod, and how many nodes do.

        `taken` pods of the shape are assumed to be on each node already.
        """
        cluster = self.placement.cluster
        requests = shape.request_vector(cluster)
        # Where a plugin rejects the node itself, it is not room that is missing.
        usable = cluster.alive & self.placement.trial.feasibility(shape).node_ok
        inside = usable if nodes is None else usable & nodes
        found: list[tuple[str, int]] = []
        for row in np.flatnonzero(requests):
            left = cluster.alloc[row] - cluster.used[row]
            if taken is not None:
                left = left - taken * requests[row]
            count = int((inside & (left < requests[row])).sum())
            if count:
                found.append((cluster.resources[row], count))
        return sorted(found, key=lambda item: (-item[1], item[0]))

    def _lacking(
        self, shape: Shape, missing: int, nodes: Mask | None, taken: Ints | None = None
    ) -> tuple[tuple[str, int], ...]:
        """The scarcest resources and by how much they are short, or else the plugins that reject nodes."""
        cluster = self.placement.cluster
        short = self._short_of(shape, nodes, taken)
        if short:
            requests = shape.request_vector(cluster)
            top = [name for name, count in short if count == short[0][1]]
            return tuple((name, missing * int(requests[cluster.row[name]])) for name in top)
        diagnosis = self._diagnosis(shape, nodes, taken)
        return tuple(sorted(diagnosis.counts.items(), key=lambda item: (-item[1], item[0]))[:2])

    def _diagnosis(self, shape: Shape, nodes: Mask | None, taken: Ints | None) -> Diagnosis:
        """Why nodes reject one more pod; `taken` pods of the shape are on them already."""
        trial = self.placement.trial
        used = np.flatnonzero(taken) if taken is not None and shape.footprint.needs is not None else ()
        if taken is None or not len(used):
            return trial.diagnose(shape, nodes)
        mark = trial.mark()
        trial.place_counts(shape, np.asarray(used, dtype=np.int64), taken[used])
        found = trial.diagnose(shape, nodes)
        trial.undo(mark)
        return found

    def _nearest(self, request: GroupRequest, nodes: Mask | None) -> list[tuple[str, Mask]]:
        """The domains with the most room for a group."""
        cluster = self.placement.cluster
        domains = TopologyDomains.of(self.placement, request.topology, nodes)
        pods = capacity_of(self.placement, request, domains).pods
        values = np.flatnonzero(np.bincount(domains.ids))
        values = values[values > 0]
        if request.pin is not None:
            values = values[values == (cluster.label_id(request.topology, request.pin) if request.pin else 0)]
        names = {int(value): cluster.label_value(request.topology, int(value)) for value in values}
        order = sorted(names, key=lambda value: (-pods[value], domain_rank(cluster.seed, names[value])))
        return [(names[value], narrowed(nodes, domains.ids, value)) for value in order[:NEAREST]]

    def _composite(self, request: CompositeRequest, nodes: Mask | None) -> list[Shortage]:
        if not request.topology:
            below, count = self._children(request, nodes)
            lacking = (("children", request.need - count),)
            return [*below, Shortage(request.key, "", "", count, request.need, lacking)]
        own: list[Shortage] = []
        causes: list[Shortage] = []
        outside = self._within
        for name, inside in self._nearest(request, nodes):
            mark = self.placement.mark()
            self._within = (request.topology, name)
            below, count = self._children(request, inside)
            self._within = outside
            self.placement.undo(mark)
            lacking = (("children", request.need - count),)
            own.append(Shortage(request.key, request.topology, name, count, request.need, lacking))
            causes = causes or below
        if not own:
            missing = ((f"nodes with the label {request.topology}", 0),)
            own = [Shortage(request.key, request.topology, request.pin or "", 0, request.need, missing)]
        return causes + own

    def _children(self, request: CompositeRequest, nodes: Mask | None) -> tuple[list[Shortage], int]:
        """Place the children that can be placed; what the others lack then, and how many were placed."""
        failed: list[GroupRequest] = []
        count = 0
        for child in self.greedy.ordered_children(request):
            if self.greedy.place_minimum(child, nodes):
                count += 1
                continue
            failed.append(child)
            if len(failed) == MOST_CHILDREN:
                break
        described: list[Shortage] = []
        for child in failed:
            if described and self.greedy.work > self._enough:
                break
            described += self.shortages(child, nodes)
        return described, count

    # --- proofs ----------------------------------------------------------------------------------

    def proof(
        self, request: GroupRequest, nodes: Mask | None, last: NotFound, shortages: tuple[Shortage, ...], steps: int
    ) -> Proof:
        """The proof that a complete search which found nothing amounts to."""
        if last.counted:
            return self._counting(request, nodes)
        if last.certificate is not None and (last.relaxed or not _has_choices(request)):
            proof = self._weights(request, last, shortages)
            if proof is not None:
                return proof
        shapes = {pods.shape for leaf in open_leaves(request) for pods in leaf.identical}
        return ExhaustionProof(request.key, max(1, last.classes), len(shapes), steps, shortages)

    def _counting(self, request: GroupRequest, nodes: Mask | None) -> CountingProof:
        if isinstance(request, PodGroupRequest):
            return CountingProof(request.key, tuple(self._leaf(request, nodes)))
        name, inside = (self._nearest(request, nodes) or [("", nodes)])[0] if request.topology else ("", nodes)
        failing = [child for child in request.open if not self._fits_alone(child, inside)]
        own = [shortage for shortage in self._composite(request, nodes) if shortage.group == request.key]
        outside, self._within = self._within, (request.topology, name) if request.topology and name else self._within
        below = tuple(self._counting(child, inside) for child in failing)
        self._within = outside
        return CountingProof(request.key, tuple(own), below)

    def _fits_alone(self, request: GroupRequest, nodes: Mask | None) -> bool:
        """The same necessary condition that the tree search starts with."""
        if request.topology:
            return any(self._fits_inside(request, inside) for _, inside in self._nearest(request, nodes))
        return self._fits_inside(request, nodes)

    def _fits_inside(self, request: GroupRequest, nodes: Mask | None) -> bool:
        if isinstance(request, PodGroupRequest):
            trial = self.placement.trial
            room = (min(pods.count, most(trial, pods.shape, nodes)) for pods in request.identical)
            return sum(room) >= request.need
        return sum(self._fits_alone(child, nodes) for child in request.open) >= request.need

    def _weights(self, request: GroupRequest, last: NotFound, shortages: tuple[Shortage, ...]) -> WeightProof | None:
        """The dual certificate as a proof, if it has one weight a shape and holds for all nodes."""
        assert last.certificate is not None
        instance, certificate = last.certificate
        weights: dict[int, int] = {}
        for shape, weight in zip(instance.shapes, certificate.weights, strict=True):
            if weights.setdefault(shape.id, weight) != weight:
                return None
        if len(set(instance.node_sets)) > 1 or instance.matrix.limited:
            return None
        pairs = tuple(sorted(weights.items()))
        return WeightProof(request.key, pairs, certificate.required, certificate.available, shortages)

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
        failing = tuple(self.inadmissible(child) for child in children if not child.admissible)
        return CountingProof(request.key, tuple(excluded(request)), failing)


def excluded(request: GroupRequest) -> Iterator[Shortage]:
    """What makes a group inadmissible, so that it is not tried at all."""
    if request.admissible:
        return
    values = sorted(set(request.domains))
    if request.topology and len(values) > 1:
        lacking = ((f"one domain: members run in {', '.join(values)} already", 0),)
        yield Shortage(request.key, request.topology, "", 0, request.minimum, lacking)
    elif isinstance(request, PodGroupRequest):
        have = request.bound + len(request.members)
        yield Shortage(request.key, "", "", have, request.minimum, (("members", request.minimum - have),))
    else:
        have = sum(child.admissible for child in request.children)
        yield Shortage(request.key, "", "", have, request.minimum, (("children", request.minimum - have),))


def _has_choices(request: GroupRequest) -> bool:
    """Whether a domain or children can be chosen, so that one packing instance does not decide about the request."""
    if request.topology:
        return True
    if isinstance(request, PodGroupRequest):
        return False
    return request.need < len(request.open) or any(_has_choices(child) for child in request.open)
