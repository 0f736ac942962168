"""Bounds for leaves that each want one domain of the same key: too many of them, or too much left over.

- Leaves of one shape with at least k members take at least k seats each, so a domain holds at most
  its seats divided by k of them.
- What a domain has left is wasted if no open leaf fits into it. The rest must suffice for all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.planning.board import Board, Ints, Scope
from muster.scheduler.planning.goal import Goal, LeafGoal
from muster.scheduler.planning.question import Load

Task = tuple[Goal, Scope, bool]


@dataclass(slots=True)
class Waste:
    board: Board
    _totals: dict[Scope, Ints] = field(default_factory=dict[Scope, Ints])
    _demands: dict[object, Ints] = field(default_factory=dict[object, Ints])

    def too_much(self, tasks: tuple[Task, ...], loads: tuple[Load, ...]) -> bool:
        """Whether counting alone shows that the open leaves do not fit into their domains."""
        rivals: dict[tuple[Scope, str], list[LeafGoal]] = defaultdict(list)
        for goal, scope, _ in tasks:
            if isinstance(goal, LeafGoal) and goal.topology and goal.pin is None:
                rivals[(scope, goal.topology)].append(goal)
        return any(
            self._overfull(leaves, scope, key, loads) or self._wasted(leaves, scope, key, loads)
            for (scope, key), leaves in rivals.items()
            if len(leaves) > 1
        )

    def _overfull(self, leaves: list[LeafGoal], scope: Scope, key: str, loads: tuple[Load, ...]) -> bool:
        wanted: dict[int, list[int]] = defaultdict(list)
        for leaf in leaves:
            if len(leaf.lots) == 1:
                wanted[leaf.lots[0].shape].append(leaf.need)
        for shape, needs in wanted.items():
            if len(needs) < 2:
                continue
            taken: dict[Scope, int] = defaultdict(int)
            for load in loads:
                if len(load.leaf.lots) == 1 and load.leaf.lots[0].shape == shape:
                    taken[load.scope] += load.leaf.need
            seats = self.board.seats(shape)
            domains = self.board.domains(scope, key).values()
            room = [max(0, int(seats[domain.nodes].sum()) - taken[domain]) for domain in domains]
            for least in set(needs):
                if sum(need >= least for need in needs) > sum(seat // least for seat in room):
                    return True
        return False

    def _wasted(self, leaves: list[LeafGoal], scope: Scope, key: str, loads: tuple[Load, ...]) -> bool:
        demands = np.array([self._demand(leaf) for leaf in leaves])
        usable = np.zeros(demands.shape[1], dtype=np.int64)
        for domain in self.board.domains(scope, key).values():
            left = self._total(domain).copy()
            for load in loads:
                if load.scope is domain:
                    left -= self._demand(load.leaf)
            if (demands <= left).all(axis=1).any():
                usable += left
        return bool((demands.sum(axis=0) > usable).any())

    def _total(self, domain: Scope) -> Ints:
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
