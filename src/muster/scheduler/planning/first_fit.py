"""Heuristic packing of an instance: largest item types first, tightest nodes first, in a few different orders.

Each attempt is a handful of array passes. An attempt that fails proves nothing; `exact` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.packing_instance import PackingInstance

Floats = NDArray[np.float64]


MOST_ORDERS = 4  # of types


TYPE_COST = 2  # steps for one type in one attempt


def pack(instance: PackingInstance, budget: Budget, orders: int = MOST_ORDERS) -> Ints | None:
    """Counts per type and node that solve the instance, or None when no attempt in so many orders succeeds."""
    start = np.zeros((instance.types, len(instance.nodes)), dtype=np.int64)
    if not instance.types:
        return start
    # Where PodGroups may choose, first the pods that they prefer.
    for limits in [instance.preferred, instance.counts] if instance.needs else [instance.counts]:
        placed = finish(instance, start, limits, budget, orders)
        if placed is not None:
            return placed
    return None


def finish(
    instance: PackingInstance, start: Ints, limits: Sequence[int], budget: Budget, orders: int = MOST_ORDERS
) -> Ints | None:
    """Place what `start` leaves unplaced, at most `limits` of each type, beside what it places already."""
    free = instance.free - instance.requests.T @ start
    scale = np.maximum(instance.free.sum(axis=1), 1).astype(np.float64)
    for order in islice(_orders(instance, free, scale), orders):
        for tight in (True, False):
            if not budget.spend(TYPE_COST * instance.types):
                return None
            placed = _attempt(instance, start, free, order, limits, scale, tight)
            if placed is not None:
                return placed
    return None


def _orders(instance: PackingInstance, free: Ints, scale: Floats) -> Iterator[Sequence[int]]:
    """Orders of types worth trying: by dominant share, by scarcity of seats, by number of nodes."""
    share = (instance.requests / scale).max(axis=1)
    total = np.array([instance.seats(free, at).sum() for at in range(instance.types)], dtype=np.float64)
    scarcity = total / np.maximum(np.asarray(instance.counts), 1)
    nodes = instance.fits.sum(axis=1)
    tried: set[tuple[int, ...]] = set()
    for keys in ((-share,), (scarcity,), (-share, nodes), (-instance.requests.sum(axis=1), scarcity)):
        order = tuple(int(at) for at in np.lexsort(keys))
        if order not in tried:
            tried.add(order)
            yield order


def _attempt(
    instance: PackingInstance,
    start: Ints,
    free: Ints,
    order: Sequence[int],
    limits: Sequence[int],
    scale: Floats,
    tight: bool,
) -> Ints | None:
    free, placed = free.copy(), start.copy()
    started: list[int] = start.sum(axis=1).tolist()
    missing = list(instance.needs)
    for at, owner in enumerate(instance.owner):
        if owner >= 0:
            missing[owner] -= started[at]
    for at in order:
        owner = instance.owner[at]
        wanted = limits[at] - started[at]
        if owner >= 0:
            wanted = min(wanted, missing[owner])
        if wanted <= 0:
            continue
        seats = instance.seats(free, at)
        taken = _take(instance, seats, free, at, wanted, scale, tight)
        count = int(taken.sum())
        if owner >= 0:
            missing[owner] -= count
        elif count < wanted:
            return None
        placed[at] += taken
        free -= instance.requests[at][:, None] * taken
    return None if any(left > 0 for left in missing) else placed


def _take(instance: PackingInstance, seats: Ints, free: Ints, at: int, wanted: int, scale: Floats, tight: bool) -> Ints:
    """Up to `wanted` seats, on the nodes with the least to spare first."""
    if tight:
        key = np.minimum(seats, wanted).astype(np.float64)
    else:
        rest = free - instance.requests[at][:, None] * np.minimum(seats, wanted)
        key = (rest / scale[:, None]).sum(axis=0)
    usable = np.flatnonzero(seats)
    order = usable[np.lexsort((instance.matrix.rank[instance.nodes[usable]], key[usable]))]
    sorted_seats = np.minimum(seats[order], wanted)
    before = np.cumsum(sorted_seats) - sorted_seats
    taken = np.zeros_like(seats)
    taken[order] = np.clip(wanted - before, 0, sorted_seats)
    return taken
