"""The largest weight of pods that each node can take, recounted in integers: what a dual certificate claims.

Every node is filled shape by shape with every number of pods, many nodes at a time as array passes; the last shape
takes all it can. Where that would be too much, a bound is used instead: pods weigh no more than their dearest use of
any one resource. Nothing here comes from the planner.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


NODES_AT_A_TIME = 256


MOST_FILLINGS = 200_000  # of so many nodes, held at a time


def heaviest(room: Ints, able: NDArray[np.bool_], requests: Ints, weights: Ints, counts: Ints) -> tuple[Ints, bool]:
    """Per node, a weight that the pods on it cannot exceed, and whether pods reach it on every node.

    `room` is [node, resource], `able` [node, shape], `requests` [shape, resource].
    """
    order = np.argsort(-_shares(room, requests), kind="stable")
    order = order[weights[order] > 0]
    requests, weights, counts, able = requests[order], weights[order], counts[order], able[:, order]
    bound = _bound(room, able, requests, weights, counts)
    exact = True
    for start in range(0, len(room), NODES_AT_A_TIME):
        part = slice(start, start + NODES_AT_A_TIME)
        found = _filled(room[part], able[part], requests, weights, counts)
        if found is None:
            exact = False
        else:
            bound[part] = found
    return bound, exact


def _shares(room: Ints, requests: Ints) -> NDArray[np.float64]:
    """The largest share of any resource that one pod takes: large pods leave few ways to go on."""
    return np.asarray((requests / np.maximum(room.sum(axis=0), 1)).max(axis=1, initial=0.0), dtype=np.float64)


def _filled(room: Ints, able: NDArray[np.bool_], requests: Ints, weights: Ints, counts: Ints) -> Ints | None:
    """The largest weight on each node by trying every number of every shape; None if there are too many ways."""
    node: Ints = np.arange(len(room), dtype=np.int64)
    left, weight = room, np.zeros(len(room), dtype=np.int64)
    for at in range(len(weights)):
        most = np.where(able[node, at], _seats(left, requests[at], int(counts[at])), 0)
        options = most + 1 if at < len(weights) - 1 else np.ones_like(most)
        total = int(options.sum())
        if total > MOST_FILLINGS:
            return None
        parent = np.repeat(np.arange(len(options)), options)
        taken = most[parent] - (np.arange(total) - (np.cumsum(options) - options)[parent])
        node, left = node[parent], left[parent] - taken[:, None] * requests[at]
        weight = weight[parent] + taken * weights[at]
    found = np.zeros(len(room), dtype=np.int64)
    np.maximum.at(found, node, weight)
    return found


def _seats(left: Ints, request: Ints, limit: int) -> Ints:
    seats = np.full(len(left), limit, dtype=np.int64)
    for resource in np.flatnonzero(request):
        np.minimum(seats, left[:, resource] // request[resource], out=seats)
    return np.maximum(seats, 0)


def _bound(room: Ints, able: NDArray[np.bool_], requests: Ints, weights: Ints, counts: Ints) -> Ints:
    """What the pods on a node weigh at most: each shape alone, and for every resource its dearest use."""
    alone = np.zeros(len(room), dtype=np.int64)
    for at in range(len(weights)):
        alone += np.where(able[:, at], _seats(room, requests[at], int(counts[at])), 0) * weights[at]
    for resource in np.flatnonzero((requests > 0).all(axis=0)) if len(weights) else ():
        pairs = zip(weights.tolist(), requests[:, resource].tolist(), strict=True)
        weight, amount = max(pairs, key=lambda pair: Fraction(*pair))
        free = room[:, resource].clip(min=0).tolist()
        held = [min(most, have * weight // amount) for most, have in zip(alone.tolist(), free, strict=True)]
        alone = np.array(held, dtype=np.int64)
    return alone
