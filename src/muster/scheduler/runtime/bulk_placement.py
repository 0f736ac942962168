"""Placing many pods of one shape in one pass, with the result of placing them one by one.

While pods of the shape change nothing but the load of their own node, the score a node will have after k of them
is known in advance. Each candidate node then is a list of keys, and the greedy order is a merge: take
the highest head, advance that list. At most `count` nodes can ever be at the top, those with the
highest first keys.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.runtime.feasibility import Feasibility

_FEW = 4


_CELLS = 200_000


def next_nodes(standing: Feasibility, count: int, mask: Bools | None) -> list[int] | None:
    """The slots of the next pods in order, or None if they must be found one by one.

    Fewer than asked come back when a node fills whose raw score others are scaled by; call again.
    """
    if count < _FEW or standing.affected_by_own_shape or not standing.can_predict:
        return None
    if standing.pods_filters:
        mask = standing.feasible(mask)
    if standing.scores_depend_on_feasible_set and mask is not None:
        return None
    key = standing.key if mask is None else np.where(mask, standing.key, -1)
    slots = _candidates(key, count)
    if not len(slots):
        return []
    seats = standing.seats()[slots]
    lists = _Lists(standing, slots, seats, max(2, -(-2 * count // len(slots))))
    return _take(standing, lists, key[slots], count)


def _candidates(key: Ints, count: int) -> Ints:
    feasible = np.flatnonzero(key >= 0)
    if len(feasible) <= count:
        return feasible
    return feasible[np.argpartition(key[feasible], len(feasible) - count)[-count:]]


class _Lists:
    """The keys of each candidate after 1, 2, … pods, worked out a stretch at a time."""

    def __init__(self, standing: Feasibility, slots: Ints, seats: Ints, stretch: int) -> None:
        self.standing = standing
        self.slots = slots
        self.seats: list[int] = seats.tolist()
        self.stretch = max(2, min(stretch, _CELLS // len(slots)))
        rows = _keys_ahead(standing, slots[:, None], np.arange(1, self.stretch + 1)[None, :])
        self.rows: list[list[int]] = rows.tolist()

    def after(self, candidate: int, placed: int) -> int:
        """The key of a candidate once so many pods went there, which it has room for."""
        row = self.rows[candidate]
        if placed > len(row):
            start = len(row) + 1
            more = np.arange(start, start + 4 * self.stretch)
            row += _keys_ahead(self.standing, self.slots[candidate : candidate + 1], more).tolist()
        return row[placed - 1]


def _keys_ahead(standing: Feasibility, slots: Ints, ahead: Ints) -> Ints:
    total = standing.base[slots] + standing.scale[slots]
    for constraint, weight in standing.usage_scores:
        scores = constraint.score_after(standing.shape, standing.cluster, slots, ahead)
        assert scores is not None
        total = total + scores * weight
    return (total << RANK_BITS) | standing.cluster.rank[slots]


def _take(standing: Feasibility, lists: _Lists, heads: Ints, count: int) -> list[int]:
    heap = [(-key, candidate) for candidate, key in enumerate(heads.tolist())]
    heapify(heap)
    placed = [0] * len(heap)
    taken: list[int] = []
    pivots = [(scaled.raw, scaled.top) for scaled in standing.normalized if scaled.top > 0]
    slots: list[int] = lists.slots.tolist()
    while heap and len(taken) < count:
        candidate = heap[0][1]
        taken.append(slots[candidate])
        placed[candidate] += 1
        if placed[candidate] < lists.seats[candidate]:
            heapreplace(heap, (-lists.after(candidate, placed[candidate]), candidate))
            continue
        heappop(heap)
        if any(raw[slots[candidate]] == top for raw, top in pivots):
            break
    return taken
