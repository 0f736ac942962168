"""Domains that nothing tells apart: a search that failed in one fails in the other.

Two domains of a scope are twins for a decision when an exchange of their nodes changes nothing that
any open or settled part of the tree can see: equal nodes inside, the same relation to every other
scope, no other label key and no pin in play where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.planning.board import Board, Scope
from muster.scheduler.planning.goal import BranchGoal, Goal
from muster.scheduler.planning.question import Load


@dataclass(slots=True)
class Watch:
    """The domains that already failed at one decision."""

    twins: Twins
    others: list[int] | None  # scopes to compare with, None when twins cannot be told
    failed: set[object] = field(default_factory=set)

    def covers(self, domain: Scope) -> bool:
        return self.others is not None and self._face(domain) in self.failed

    def add(self, domain: Scope) -> None:
        if self.others is not None:
            face = self._face(domain)
            if face is not None:
                self.failed.add(face)

    def _face(self, domain: Scope) -> object:
        """What the rest of the tree sees of a domain; None when a scope cuts through it."""
        relation: list[bool] = []
        for bits in self.others or ():
            common = bits & domain.bits
            if common not in (0, domain.bits):
                return None
            relation.append(common != 0)
        return tuple(relation), self.twins.profile(domain)


@dataclass(slots=True)
class Twins:
    board: Board
    _profiles: dict[Scope, bytes] = field(default_factory=dict)

    def watch(
        self, goal: Goal, scope: Scope, rest: tuple[tuple[Goal, Scope, bool], ...], loads: tuple[Load, ...]
    ) -> Watch:
        if _keys(goal) != {goal.topology} or goal.pin is not None:
            return Watch(self, None)
        others = [load.scope.bits for load in loads]
        for other, where, settled in rest:
            if not where.bits & scope.bits:
                continue
            keys = _keys(other, settled)
            if keys and (keys != {goal.topology} or where is not scope or _pinned(other)):
                return Watch(self, None)
            if not keys:
                others.append(where.bits)
        return Watch(self, others)

    def profile(self, domain: Scope) -> bytes:
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
