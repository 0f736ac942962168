"""From a trial to a board: the arrays of this moment.

For shapes that depend on nodes only the board is exact. For others it allows at least what the rules
allow: what does not fit on the board does not fit at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from muster.scheduler.planning.board import Board, Ints, count_seats
from muster.scheduler.planning.rules import ceiling, repelled_keys

if TYPE_CHECKING:
    from muster.scheduler.cluster import Trial
    from muster.scheduler.shapes import Shape


def board_of(trial: Trial, shapes: Sequence[Shape], keys: Iterable[str]) -> Board:
    """What is free now, what each shape takes, where it may go."""
    cluster = trial.cluster
    requests = np.array([shape.request_vector(cluster) for shape in shapes], dtype=np.int64)
    rows = np.flatnonzero(requests.any(axis=0))
    free: Ints = cluster.alloc[rows] - cluster.used[rows]
    requests = requests[:, rows]
    seats = np.array([_seats(trial, shape) for shape in shapes], dtype=np.int64)
    allowed = seats > 0
    # A limit that is no resource (ports, attached volumes) shows as fewer seats than the amounts allow.
    for at in range(len(shapes)):
        by_amounts = count_seats(free[: len(rows)], requests[at][: len(rows)], allowed[at])
        if (seats[at] < by_amounts).any():
            column = np.zeros((len(shapes), 1), dtype=np.int64)
            column[at] = 1
            requests = np.hstack((requests, column))
            free = np.vstack((free, seats[at][None, :]))
    columns = {key: cluster.labels(key) for key in keys}
    return Board(free, requests, allowed, cluster.rank, columns, cluster.label_id, limited=len(free) > len(rows))


def _seats(trial: Trial, shape: Shape) -> Ints:
    seats = ceiling(trial, shape)
    for key in () if shape.independent else repelled_keys(shape.pod):
        seats = np.where(trial.cluster.labels(key) > 0, np.minimum(seats, 1), seats)
    return seats
