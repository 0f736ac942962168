"""Quick packing of a question: largest first, tightest node first, in a few different orders.

Each attempt is a handful of array passes. An attempt that fails proves nothing; `exact` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.verdict import Budget
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.packing_instance import PackingInstance

Floats = NDArray[np.float64]


TYPE_COST = 2


def pack(question: PackingInstance, budget: Budget) -> Ints | None:
    """Counts per type and node that satisfy the question, or None when no attempt succeeds."""
    start = np.zeros((question.types, len(question.nodes)), dtype=np.int64)
    if not question.types:
        return start
    wishes = [question.preferred, question.counts] if question.needs else [question.counts]
    for wish in wishes:
        placed = finish(question, start, wish, budget)
        if placed is not None:
            return placed
    return None


def finish(question: PackingInstance, start: Ints, wish: Sequence[int], budget: Budget) -> Ints | None:
    """Seat what `start` leaves open of a wish, beside what it seats already."""
    free = question.free - question.requests.T @ start
    scale = np.maximum(question.free.sum(axis=1), 1).astype(np.float64)
    for order in _orders(question, free, scale):
        for tight in (True, False):
            if not budget.spend(TYPE_COST * question.types):
                return None
            placed = _attempt(question, start, free, order, wish, scale, tight)
            if placed is not None:
                return placed
    return None


def _orders(question: PackingInstance, free: Ints, scale: Floats) -> Iterator[Sequence[int]]:
    """Orders of types worth trying: by dominant share, by scarcity of seats, by size of scope."""
    share = (question.requests / scale).max(axis=1)
    total = np.array([question.seats(free, at).sum() for at in range(question.types)], dtype=np.float64)
    scarcity = total / np.maximum(np.asarray(question.counts), 1)
    room = question.fits.sum(axis=1)
    tried: set[tuple[int, ...]] = set()
    for keys in ((-share,), (scarcity,), (-share, room), (-question.requests.sum(axis=1), scarcity)):
        order = tuple(int(at) for at in np.lexsort(keys))
        if order not in tried:
            tried.add(order)
            yield order


def _attempt(
    question: PackingInstance,
    start: Ints,
    free: Ints,
    order: Sequence[int],
    wish: Sequence[int],
    scale: Floats,
    tight: bool,
) -> Ints | None:
    free, placed = free.copy(), start.copy()
    seated: list[int] = start.sum(axis=1).tolist()
    missing = list(question.needs)
    for at, owner in enumerate(question.owner):
        if owner >= 0:
            missing[owner] -= seated[at]
    for at in order:
        owner = question.owner[at]
        want = wish[at] - seated[at]
        if owner >= 0:
            want = min(want, missing[owner])
        if want <= 0:
            continue
        seats = question.seats(free, at)
        taken = _take(question, seats, free, at, want, scale, tight)
        got = int(taken.sum())
        if owner >= 0:
            missing[owner] -= got
        elif got < want:
            return None
        placed[at] += taken
        free -= question.requests[at][:, None] * taken
    return None if any(left > 0 for left in missing) else placed


def _take(question: PackingInstance, seats: Ints, free: Ints, at: int, want: int, scale: Floats, tight: bool) -> Ints:
    """Up to `want` seats, the nodes with the least to spare first."""
    if tight:
        key = np.minimum(seats, want).astype(np.float64)
    else:
        rest = free - question.requests[at][:, None] * np.minimum(seats, want)
        key = (rest / scale[:, None]).sum(axis=0)
    usable = np.flatnonzero(seats)
    order = usable[np.lexsort((question.board.rank[question.nodes[usable]], key[usable]))]
    sorted_seats = np.minimum(seats[order], want)
    before = np.cumsum(sorted_seats) - sorted_seats
    taken = np.zeros_like(seats)
    taken[order] = np.clip(want - before, 0, sorted_seats)
    return taken
