"""The seats taken so far on a trial: who sits where, which groups hold, which domains were chosen.

Everything can be taken back to a mark, together with the trial. Members of a lot are alike, so seats
are kept as counts and slots; names are put on them once, at the end.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.verdict import Assignment
from muster.scheduler.planning.goal import Goal, LeafGoal
from muster.scheduler.planning.node_matrix import Mask
from muster.scheduler.runtime.trial import Trial

Mark = tuple[int, int, int, int]


class PartialPlacement:
    def __init__(self, trial: Trial, shapes: list[Shape]) -> None:
        self.trial = trial
        self.cluster = trial.cluster
        self.shapes = shapes
        self._log: list[tuple[LeafGoal, int, list[int]]] = []
        self._domains: list[tuple[Goal, int]] = []
        self._won: list[Goal] = []
        self._counts: dict[tuple[int, int], int] = defaultdict(int)
        self._values: dict[int, int] = {}
        self._winners: set[int] = set()

    def mark(self) -> Mark:
        return self.trial.mark(), len(self._log), len(self._domains), len(self._won)

    def undo(self, mark: Mark) -> None:
        self.trial.undo(mark[0])
        while len(self._log) > mark[1]:
            leaf, lot, slots = self._log.pop()
            self._counts[(id(leaf), lot)] -= len(slots)
        while len(self._domains) > mark[2]:
            del self._values[id(self._domains.pop()[0])]
        while len(self._won) > mark[3]:
            self._winners.discard(id(self._won.pop()))

    def take(self, leaf: LeafGoal, lot: int, count: int, mask: Mask | None) -> int:
        """Seat up to `count` members of a lot by score; how many found a seat."""
        slots = self.trial.place_many(self.shapes[leaf.lots[lot].shape], count, mask)
        if slots:
            self._note(leaf, lot, slots)
        return len(slots)

    def put(self, leaf: LeafGoal, lot: int, slot: int, count: int = 1) -> None:
        """Seat members of a lot on a given node."""
        self.trial.place(self.shapes[leaf.lots[lot].shape], slot, count)
        self._note(leaf, lot, [slot] * count)

    def _note(self, leaf: LeafGoal, lot: int, slots: list[int]) -> None:
        self._log.append((leaf, lot, slots))
        self._counts[(id(leaf), lot)] += len(slots)

    def choose(self, goal: Goal, value: int) -> None:
        self._domains.append((goal, value))
        self._values[id(goal)] = value

    def mark_satisfied(self, goal: Goal) -> None:
        """The minimum of a group holds with the seats taken so far."""
        self._won.append(goal)
        self._winners.add(id(goal))

    def won(self, goal: Goal) -> bool:
        return id(goal) in self._winners

    def domain_of(self, goal: Goal) -> int | None:
        return self._values.get(id(goal))

    def seated(self, leaf: LeafGoal, lot: int) -> int:
        return self._counts.get((id(leaf), lot), 0)

    @property
    def count(self) -> int:
        return sum(len(slots) for _, _, slots in self._log)

    def since(self, mark: Mark) -> list[tuple[LeafGoal, int, list[int]]]:
        return self._log[mark[1] :]

    @property
    def domains(self) -> list[tuple[Goal, int]]:
        return self._domains

    @property
    def winners(self) -> list[Goal]:
        return self._won

    def seats(self) -> tuple[Assignment, ...]:
        """Names on the seats, in the order in which they were taken."""
        names = self.cluster.names
        used: dict[tuple[int, int], int] = defaultdict(int)
        found: list[Assignment] = []
        for leaf, lot, slots in self._log:
            start = used[(id(leaf), lot)]
            used[(id(leaf), lot)] = start + len(slots)
            uids = [member.uid for member in leaf.lots[lot].members[start : start + len(slots)]]
            found += map(Assignment, uids, [names[slot] for slot in slots], slots)
        return tuple(found)


def narrowed(mask: Mask | None, ids: np.ndarray, value: int) -> Mask:
    """The nodes of a scope that carry one value of a label."""
    domain = ids == value
    return domain if mask is None else domain & mask
