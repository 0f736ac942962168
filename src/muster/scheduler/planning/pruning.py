"""Domains that nothing tells apart: a search that failed in one fails in the other.

Two domains of a scope are twins for a decision when an exchange of their nodes changes nothing that
any open or settled part of the tree can see: equal nodes inside, the same relation to every other
scope, no other label key and no pin in play where they lie.

Bounds for leaves that each want one domain of the same key: too many of them, or too much left over.

- Leaves of one shape with at least k members take at least k seats each, so a domain holds at most
  its seats divided by k of them.
- What a domain has left is wasted if no open leaf fits into it. The rest must suffice for all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.planning.goal import BranchGoal, Goal, LeafGoal
from muster.scheduler.planning.node_matrix import Ints, NodeMatrix, NodeSet
from muster.scheduler.planning.packing_instance import ScopedRequest


@dataclass(slots=True)
class TriedDomains:
    """The domains that already failed at one decision."""

    twins: DomainSymmetry
    others: list[int] | None  # scopes to compare with, None when twins cannot be told
    failed: set[object] = field(default_factory=set[object])

    def covers(self, domain: NodeSet) -> bool:
        return self.others is not None and self._face(domain) in self.failed

    def add(self, domain: NodeSet) -> None:
        if self.others is not None:
            face = self._face(domain)
            if face is not None:
                self.failed.add(face)

    def _face(self, domain: NodeSet) -> object:
        """What the rest of the tree sees of a domain; None when a scope cuts through it."""
        relation: list[bool] = []
        for bits in self.others or ():
            common = bits & domain.bits
            if common not in (0, domain.bits):
                return None
            relation.append(common != 0)
        return tuple(relation), self.twins.profile(domain)


@dataclass(slots=True)
class DomainSymmetry:
    board: NodeMatrix
    _profiles: dict[NodeSet, bytes] = field(default_factory=dict[NodeSet, bytes])

    def watch(
        self, goal: Goal, scope: NodeSet, rest: tuple[tuple[Goal, NodeSet, bool], ...], loads: tuple[ScopedRequest, ...]
    ) -> TriedDomains:
        if _keys(goal) != {goal.topology} or goal.pin is not None:
            return TriedDomains(self, None)
        others = [load.nodes.bits for load in loads]
        for other, where, settled in rest:
            if not where.bits & scope.bits:
                continue
            keys = _keys(other, settled)
            if keys and (keys != {goal.topology} or where is not scope or _pinned(other)):
                return TriedDomains(self, None)
            if not keys:
                others.append(where.bits)
        return TriedDomains(self, others)

    def profile(self, domain: NodeSet) -> bytes:
        """The nodes of a domain without their names."""
        known = self._profiles.get(domain)
        if known is None:
            nodes = domain.nodes
            columns = np.vstack((self.board.free[:, nodes], self.board.allowed[:, nodes].astype(np.int64)))
            order = np.lexsort(columns)
            known = self._profiles[domain] = np.ascontiguousarray(columns[:, order]).tobytes()
        return known


def _keys(goal: Goal, settled: bool = False) -> set[str]:
    """The label keys that a group and its open children still look at."""
    keys = {goal.topology} if goal.topology and not settled else set[str]()
    if isinstance(goal, BranchGoal):
        for child in goal.open:
            keys |= _keys(child)
    return keys


def _pinned(goal: Goal) -> bool:
    return goal.pin is not None or (isinstance(goal, BranchGoal) and any(_pinned(child) for child in goal.open))


Task = tuple[Goal, NodeSet, bool]


@dataclass(slots=True)
class DomainBounds:
    board: NodeMatrix
    _totals: dict[NodeSet, Ints] = field(default_factory=dict[NodeSet, Ints])
    _demands: dict[object, Ints] = field(default_factory=dict[object, Ints])

    def too_much(self, tasks: tuple[Task, ...], loads: tuple[ScopedRequest, ...]) -> bool:
        """Whether counting alone shows that the open leaves do not fit into their domains."""
        rivals: dict[tuple[NodeSet, str], list[LeafGoal]] = defaultdict(list)
        for goal, scope, _ in tasks:
            if isinstance(goal, LeafGoal) and goal.topology and goal.pin is None:
                rivals[(scope, goal.topology)].append(goal)
        return any(
            self._overfull(leaves, scope, key, loads) or self._wasted(leaves, scope, key, loads)
            for (scope, key), leaves in rivals.items()
            if len(leaves) > 1
        )

    def _overfull(self, leaves: list[LeafGoal], scope: NodeSet, key: str, loads: tuple[ScopedRequest, ...]) -> bool:
        wanted: dict[int, list[int]] = defaultdict(list)
        for leaf in leaves:
            if len(leaf.lots) == 1:
                wanted[leaf.lots[0].shape].append(leaf.need)
        for shape, needs in wanted.items():
            if len(needs) < 2:
                continue
            taken: dict[NodeSet, int] = defaultdict(int)
            for load in loads:
                if len(load.leaf.lots) == 1 and load.leaf.lots[0].shape == shape:
                    taken[load.nodes] += load.leaf.need
            seats = self.board.seats(shape)
            domains = self.board.domains(scope, key).values()
            room = [max(0, int(seats[domain.nodes].sum()) - taken[domain]) for domain in domains]
            for least in set(needs):
                if sum(need >= least for need in needs) > sum(seat // least for seat in room):
                    return True
        return False

    def _wasted(self, leaves: list[LeafGoal], scope: NodeSet, key: str, loads: tuple[ScopedRequest, ...]) -> bool:
        requests = np.array([self._demand(leaf) for leaf in leaves])
        usable = np.zeros(requests.shape[1], dtype=np.int64)
        for domain in self.board.domains(scope, key).values():
            left = self._total(domain).copy()
            for load in loads:
                if load.nodes is domain:
                    left -= self._demand(load.leaf)
            if (requests <= left).all(axis=1).any():
                usable += left
        return bool((requests.sum(axis=0) > usable).any())

    def _total(self, domain: NodeSet) -> Ints:
        known = self._totals.get(domain)
        if known is None:
            known = self._totals[domain] = self.board.free[:, domain.nodes].clip(min=0).sum(axis=1)
        return known

    def _demand(self, leaf: LeafGoal) -> Ints:
        """The least that a leaf takes of each resource, whichever members it picks."""
        known = self._demands.get(leaf.signature)
        if known is None:
            each = np.concatenate(
                [np.repeat(self.board.requests[lot.shape][None], lot.count, axis=0) for lot in leaf.lots]
            )
            known = self._demands[leaf.signature] = np.sort(each, axis=0)[: leaf.need].sum(axis=0)
        return known
