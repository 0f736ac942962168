"""Groups that compete for the domains of one key: an assignment is proposed, its domains are packed, and so on.

`DomainAssignment` proposes which domain each group takes, from bounds that need no packing. Here the groups of each
domain are packed; where that fails, the bound that shows it, or else a guess, becomes a row of the assignment, and the
next proposal is made. What is found is a placement; that nothing is found proves nothing, except where prices refute
the groups together, whatever their domains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.planning.domain_assignment import DomainAssignment
from muster.scheduler.planning.domain_patterns import DomainPatterns, domain_patterns
from muster.scheduler.planning.exact import DualCertificate, Relaxed
from muster.scheduler.planning.node_matrix import Ints, NodeSet
from muster.scheduler.planning.packing_instance import PackingInstance, ScopedRequest
from muster.scheduler.planning.prices import DEAREST

MOST_PROPOSALS = 12


MOST_MOVES = 150  # between two proposals


STEPS_PER_DOMAIN = 400  # for packing the groups of one domain


Refuted = tuple[PackingInstance, DualCertificate]


# Packs PodGroups that share nodes: whether they fit, or else the certificate, if it is one.
Pack = Callable[[tuple[ScopedRequest, ...], int], Pausing["bool | Refuted"]]


@dataclass(frozen=True, slots=True, eq=False)
class Competing:
    """Groups that each need one domain of a key, all of them, and the domains that counting leaves to each."""

    groups: tuple[GroupRequest, ...]
    leaves: tuple[tuple[PodGroupRequest, ...], ...]  # the PodGroups of each group, all of which are needed
    domains: tuple[tuple[int, NodeSet], ...]  # value ids and nodes
    feasible: tuple[frozenset[int], ...]  # value ids, of each group

    def parts(self, group: int, nodes: NodeSet) -> tuple[ScopedRequest, ...]:
        return tuple(ScopedRequest(leaf, nodes) for leaf in self.leaves[group])


def needed_leaves(request: GroupRequest) -> tuple[PodGroupRequest, ...] | None:
    """The PodGroups of a group if all of them, and all of their pods or those of one shape, are needed, in one domain.

    None where something can be chosen below the group, or a further domain.
    """
    if isinstance(request, PodGroupRequest):
        fixed = len(request.identical) == 1 or request.need == request.pending
        return (request,) if fixed else None
    if request.need < len(request.open) or any(child.topology for child in request.open):
        return None
    below = [needed_leaves(child) for child in request.open]
    return None if None in below else tuple(leaf for part in below for leaf in part or ())


def find_domains(
    competing: Competing, relaxed: Relaxed, settled: Sequence[ScopedRequest], pack: Pack, budget: Budget
) -> Pausing[list[int] | None]:
    """The index of a domain for each group so that the groups of each domain pack, beside what is settled there."""
    search = _DomainSearch(competing, relaxed, settled, pack, budget)
    found = yield from search.by_moves()
    return found if found is not None else (yield from search.by_patterns())


class _DomainSearch:
    """One search, and what it learned about sets of groups in domains."""

    def __init__(
        self, competing: Competing, relaxed: Relaxed, settled: Sequence[ScopedRequest], pack: Pack, budget: Budget
    ) -> None:
        self.competing = competing
        self.relaxed = relaxed
        self.settled = settled
        self.pack = pack
        self.budget = budget
        self.assignment = _assignment(competing, relaxed)
        self._packed: dict[tuple[int, frozenset[int]], bool | Refuted] = {}

    def by_moves(self) -> Pausing[list[int] | None]:
        """Local search; a domain whose groups do not pack teaches it a new row."""
        assignment = self.assignment
        assignment.start()
        for _ in range(MOST_PROPOSALS):
            if not assignment.improve(MOST_MOVES, self.budget):
                return None
            failed = False
            for domain in assignment.tightest_first():
                answer = yield from self._packs(domain, np.flatnonzero(assignment.domain == domain))
                if self.budget.exhausted:
                    return None
                if answer is not True:
                    failed = True
                    if not isinstance(answer, tuple):
                        assignment.forbid(domain, self.relaxed.weights)
            if not failed:
                return assignment.domain.tolist()
        return None

    def by_patterns(self) -> Pausing[list[int] | None]:
        """Covers of all groups by sets that domains can hold, until one of them packs."""
        assignment = self.assignment
        patterns = domain_patterns(*assignment.proven_rows(), assignment.allowed, self.budget)
        while patterns is not None:
            cover = yield from patterns.cover(self.budget)
            if cover is None:
                return None
            rows = assignment.rows
            keep = np.ones(len(patterns.domain), dtype=bool)
            for at in cover:
                domain, inside = int(patterns.domain[at]), np.flatnonzero(patterns.members[at])
                answer = yield from self._packs(domain, inside)
                if self.budget.exhausted:
                    return None
                patterns.good[at], keep[at] = answer is True, answer is True
            if keep.all():
                return self._taken(patterns, cover)
            for room, load in assignment.rows_from(rows):
                keep &= patterns.members @ load <= room[patterns.domain]
            patterns.keep(keep)
        return None

    def _taken(self, patterns: DomainPatterns, cover: list[int]) -> list[int]:
        found = np.zeros(len(self.competing.groups), dtype=np.int64)
        for at in cover:
            found[patterns.members[at]] = patterns.domain[at]
        return found.tolist()

    def _packs(self, domain: int, groups: Ints) -> Pausing[bool | Refuted]:
        """Whether groups pack in a domain; a certificate that they do not becomes a row for all domains."""
        key = (domain, frozenset(groups.tolist()))
        if key in self._packed:
            return self._packed[key]
        if not len(groups):
            return True
        nodes = self.competing.domains[domain][1]
        parts = tuple(part for group in groups.tolist() for part in self.competing.parts(group, nodes))
        parts += tuple(part for part in self.settled if part.nodes.bits & nodes.bits)
        answer = self._packed[key] = yield from self.pack(parts, STEPS_PER_DOMAIN)
        if isinstance(answer, tuple):
            self.assignment.add_weights(_by_type(self.relaxed.instance, *answer))
        return answer


def _assignment(competing: Competing, relaxed: Relaxed) -> DomainAssignment:
    """The rows to begin with: the prices of all groups together, each shape, each resource."""
    instance = relaxed.instance
    domain_of = np.full(instance.matrix.size, -1, dtype=np.int64)
    for at, (_, nodes) in enumerate(competing.domains):
        domain_of[nodes.nodes] = at
    allowed = np.array([[value in able for value, _ in competing.domains] for able in competing.feasible])
    found = DomainAssignment(relaxed.patterns, domain_of[instance.nodes], _demands(competing, instance), allowed)
    found.add_weights(relaxed.weights)
    for weights in np.vstack((np.eye(instance.types, dtype=np.int64), instance.requests.T)):
        found.add_weights(weights * DEAREST // max(1, int(weights.max())))
    return found


def _demands(competing: Competing, instance: PackingInstance) -> Ints:
    """[group, type]: how many pods each group needs."""
    type_of = {shape: at for at, shape in enumerate(instance.shapes)}
    found = np.zeros((len(competing.groups), instance.types), dtype=np.int64)
    for group, leaves in enumerate(competing.leaves):
        for leaf in leaves:
            for pods in leaf.identical:
                found[group, type_of[pods.shape]] += min(leaf.need, pods.count)
    return found


def _by_type(instance: PackingInstance, other: PackingInstance, certificate: DualCertificate) -> Ints:
    """The weights of a certificate about another instance, for the types of this one."""
    weight_of = dict(zip(other.shapes, certificate.weights, strict=True))
    weights = [weight_of.get(shape, 0) for shape in instance.shapes]
    scale = max(1, max(weights) // DEAREST)
    return np.array([weight // scale for weight in weights], dtype=np.int64)
