"""Placement of many pods of one shape in one pass, with the same result as placing them one by one.

While pods of the shape change nothing but the usage of their own node, the score of a node after k of them is known in
advance. Then each candidate node is a list of keys, and the greedy order is a merge of these lists: take the highest
head and advance its list. Only the `count` nodes with the highest first keys can be chosen.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.runtime.feasibility import Feasibility

_MIN_PODS = 4  # fewer are placed one by one
_MAX_CELLS = 200_000  # keys that are computed in advance: 1.6 MB


def next_nodes(feasibility: Feasibility, count: int, mask: Bools | None) -> list[int] | None:
    """The slots of the next pods in order, or None if they must be found one by one.

    Returns fewer than `count` when a node becomes full that the scores of others are normalized by; call again then.
    """
    if count < _MIN_PODS or feasibility.affected_by_own_shape or not feasibility.can_predict:
        return None
    if feasibility.pods_filters:
        mask = feasibility.feasible(mask)
    if feasibility.scores_depend_on_feasible_set and mask is not None:
        return None
    key = feasibility.key if mask is None else np.where(mask, feasibility.key, -1)
    slots = _highest(key, count)
    if not len(slots):
        return []
    seats = feasibility.seats()[slots]
    candidates = _Candidates(feasibility, slots, seats, max(2, -(-2 * count // len(slots))))
    return _merge(feasibility, candidates, key[slots], count)


def _highest(key: Ints, count: int) -> Ints:
    """The feasible slots with the highest keys, at most `count`, in no order."""
    feasible = np.flatnonzero(key >= 0)
    if len(feasible) <= count:
        return feasible
    return feasible[np.argpartition(key[feasible], len(feasible) - count)[-count:]]


class _Candidates:
    """The keys of each candidate node after 1, 2, … pods, computed some at a time."""

    def __init__(self, feasibility: Feasibility, slots: Ints, seats: Ints, batch: int) -> None:
        self.feasibility = feasibility
        self.slots = slots
        self.seats: list[int] = seats.tolist()
        self.batch = max(2, min(batch, _MAX_CELLS // len(slots)))
        rows = _keys_after(feasibility, slots[:, None], np.arange(1, self.batch + 1)[None, :])
        self.rows: list[list[int]] = rows.tolist()

    def key_after(self, candidate: int, placed: int) -> int:
        """The key of a candidate after so many pods, which it has room for."""
        row = self.rows[candidate]
        if placed > len(row):
            start = len(row) + 1
            more = np.arange(start, start + 4 * self.batch)
            row += _keys_after(self.feasibility, self.slots[candidate : candidate + 1], more).tolist()
        return row[placed - 1]


def _keys_after(feasibility: Feasibility, slots: Ints, ahead: Ints) -> Ints:
    total = feasibility.base[slots] + feasibility.normalized_total[slots]
    for plugin, weight in feasibility.usage_scores:
        scores = plugin.score_after(feasibility.shape, feasibility.cluster, slots, ahead)
        assert scores is not None
        total = total + scores * weight
    return (total << RANK_BITS) | feasibility.cluster.rank[slots]


def _merge(feasibility: Feasibility, candidates: _Candidates, heads: Ints, count: int) -> list[int]:
    heap = [(-key, candidate) for candidate, key in enumerate(heads.tolist())]
    heapify(heap)
    placed = [0] * len(heap)
    chosen: list[int] = []
    largest = [(score.raw, score.top) for score in feasibility.normalized if score.top > 0]
    slots: list[int] = candidates.slots.tolist()
    while heap and len(chosen) < count:
        candidate = heap[0][1]
        chosen.append(slots[candidate])
        placed[candidate] += 1
        if placed[candidate] < candidates.seats[candidate]:
            heapreplace(heap, (-candidates.key_after(candidate, placed[candidate]), candidate))
            continue
        heappop(heap)
        # Without this node another raw number may be the largest, and all scores change.
        if any(raw[slots[candidate]] == top for raw, top in largest):
            break
    return chosen
