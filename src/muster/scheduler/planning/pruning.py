"""What the tree search need not try: domains symmetric to one that failed, and states that domain bounds rule out.

Two domains are symmetric for a decision if exchanging their nodes changes nothing that any open or settled part of
the tree depends on: equal nodes inside, the same relation to every other node set, and no other label key and no pin
in play where they are. A search that failed in one fails in the other.

Domain bounds are for PodGroups that each need one domain of the same key:

- PodGroups of one shape with a need of at least k take at least k seats each, so a domain holds at most its seats
  divided by k of them.
- What a domain has left is wasted if no open PodGroup fits into it. The rest must suffice for all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest
from muster.scheduler.planning.node_matrix import Ints, NodeMatrix, NodeSet
from muster.scheduler.planning.packing_instance import ScopedRequest

Task = tuple[GroupRequest, NodeSet, bool]  # a group, the nodes it may use, and whether its domain is chosen


# --- symmetric domains -----------------------------------------------------------------------------


@dataclass(slots=True)
class TriedDomains:
    """The domains that already failed at one decision."""

    symmetry: DomainSymmetry
    others: list[int] | None  # bits of the node sets in play elsewhere; None if no two domains can be compared
    failed: set[object] = field(default_factory=set[object])

    def has_symmetric(self, domain: NodeSet) -> bool:
        """Whether a domain that is symmetric to this one failed."""
        return self.others is not None and self._outside_view(domain) in self.failed

    def add(self, domain: NodeSet) -> None:
        if self.others is not None:
            view = self._outside_view(domain)
            if view is not None:
                self.failed.add(view)

    def _outside_view(self, domain: NodeSet) -> object:
        """What the rest of the tree depends on in a domain; None if another node set contains only part of it."""
        relation: list[bool] = []
        for bits in self.others or ():
            common = bits & domain.bits
            if common not in (0, domain.bits):
                return None
            relation.append(common != 0)
        return tuple(relation), self.symmetry.contents(domain)


@dataclass(slots=True)
class DomainSymmetry:
    """Decides which domains are symmetric for a decision."""

    matrix: NodeMatrix
    _contents: dict[NodeSet, bytes] = field(default_factory=dict[NodeSet, bytes])

    def tried_domains(
        self, request: GroupRequest, nodes: NodeSet, rest: tuple[Task, ...], scoped: tuple[ScopedRequest, ...]
    ) -> TriedDomains:
        """An empty record for the decision on the domain of a group."""
        if _keys(request) != {request.topology} or request.pin is not None:
            return TriedDomains(self, None)
        others = [part.nodes.bits for part in scoped]
        for other, where, chosen in rest:
            if not where.bits & nodes.bits:
                continue
            keys = _keys(other, chosen)
            if keys and (keys != {request.topology} or where is not nodes or _pinned(other)):
                return TriedDomains(self, None)
            if not keys:
                others.append(where.bits)
        return TriedDomains(self, others)

    def contents(self, domain: NodeSet) -> bytes:
        """The nodes of a domain without their names."""
        known = self._contents.get(domain)
        if known is None:
            nodes = domain.nodes
            columns = np.vstack((self.matrix.free[:, nodes], self.matrix.allowed[:, nodes].astype(np.int64)))
            order = np.lexsort(columns)
            known = self._contents[domain] = np.ascontiguousarray(columns[:, order]).tobytes()
        return known


def _keys(request: GroupRequest, chosen: bool = False) -> set[str]:
    """The label keys of which a group and its open children still need a domain."""
    keys = {request.topology} if request.topology and not chosen else set[str]()
    if isinstance(request, CompositeRequest):
        for child in request.open:
            keys |= _keys(child)
    return keys


def _pinned(request: GroupRequest) -> bool:
    if request.pin is not None:
        return True
    return isinstance(request, CompositeRequest) and any(_pinned(child) for child in request.open)


# --- domain bounds ---------------------------------------------------------------------------------


@dataclass(slots=True)
class DomainBounds:
    """Bounds for PodGroups that compete for domains of one key."""

    matrix: NodeMatrix
    _free: dict[NodeSet, Ints] = field(default_factory=dict[NodeSet, Ints])
    _least: dict[object, Ints] = field(default_factory=dict[object, Ints])

    def exceeded(self, tasks: tuple[Task, ...], scoped: tuple[ScopedRequest, ...]) -> bool:
        """Whether counting alone shows that the open PodGroups do not fit into their domains."""
        competing: dict[tuple[NodeSet, str], list[PodGroupRequest]] = defaultdict(list)
        for request, nodes, _ in tasks:
            if isinstance(request, PodGroupRequest) and request.topology and request.pin is None:
                competing[(nodes, request.topology)].append(request)
        return any(
            self._too_many(leaves, nodes, key, scoped) or self._too_little_usable(leaves, nodes, key, scoped)
            for (nodes, key), leaves in competing.items()
            if len(leaves) > 1
        )

    def _too_many(
        self, leaves: list[PodGroupRequest], nodes: NodeSet, key: str, scoped: tuple[ScopedRequest, ...]
    ) -> bool:
        """Whether for some k more PodGroups of one shape need at least k seats than domains have room for."""
        wanted: dict[Shape, list[int]] = defaultdict(list)
        for leaf in leaves:
            if len(leaf.identical) == 1:
                wanted[leaf.identical[0].shape].append(leaf.need)
        for shape, needs in wanted.items():
            if len(needs) < 2:
                continue
            taken: dict[NodeSet, int] = defaultdict(int)
            for part in scoped:
                if len(part.request.identical) == 1 and part.request.identical[0].shape is shape:
                    taken[part.nodes] += part.request.need
            seats = self.matrix.seats(shape)
            domains = self.matrix.domains(nodes, key).values()
            room = [max(0, int(seats[domain.nodes].sum()) - taken[domain]) for domain in domains]
            for least in set(needs):
                if sum(need >= least for need in needs) > sum(seat // least for seat in room):
                    return True
        return False

    def _too_little_usable(
        self, leaves: list[PodGroupRequest], nodes: NodeSet, key: str, scoped: tuple[ScopedRequest, ...]
    ) -> bool:
        """Whether the domains into which any of the PodGroups fits have less left than all of them take."""
        requests = np.array([self._least_request(leaf) for leaf in leaves])
        usable = np.zeros(requests.shape[1], dtype=np.int64)
        for domain in self.matrix.domains(nodes, key).values():
            left = self._free_in(domain).copy()
            for part in scoped:
                if part.nodes is domain:
                    left -= self._least_request(part.request)
            if (requests <= left).all(axis=1).any():
                usable += left
        return bool((requests.sum(axis=0) > usable).any())

    def _free_in(self, domain: NodeSet) -> Ints:
        known = self._free.get(domain)
        if known is None:
            known = self._free[domain] = self.matrix.free[:, domain.nodes].clip(min=0).sum(axis=1)
        return known

    def _least_request(self, leaf: PodGroupRequest) -> Ints:
        """The least that a PodGroup takes of each resource, whichever of its pods are placed."""
        known = self._least.get(leaf.signature)
        if known is None:
            each = np.concatenate(
                [np.repeat(self.matrix.request(pods.shape)[None], pods.count, axis=0) for pods in leaf.identical]
            )
            known = self._least[leaf.signature] = np.sort(each, axis=0)[: leaf.need].sum(axis=0)
        return known
