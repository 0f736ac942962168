"""What a shape's own rules mean for planning: can room only shrink, and does it repel its own kind.

A shape is steady if no pod placed later can make a node allowed for it: it has no required affinity
and no hard spread. Only for steady shapes does "not allowed now" bound what a plan can do.

From a trial to a board: the arrays of this moment.

For shapes that depend on nodes only the board is exact. For others it allows at least what the rules
allow: what does not fit on the board does not fit at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api.selectors import matches
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.framework.shape import Shape
from muster.scheduler.planning.node_matrix import Ints, Mask, NodeMatrix, count_seats
from muster.scheduler.runtime.trial import Trial


def requires_affinity(pod: Pod) -> bool:
    """It must be near some other pod."""
    affinity = pod.spec.affinity
    side = affinity.pod_affinity if affinity else None
    return bool(side and side.required_during_scheduling_ignored_during_execution)


def spreads(pod: Pod) -> bool:
    return any(c.when_unsatisfiable == "DoNotSchedule" for c in pod.spec.topology_spread_constraints or ())


def room_only_shrinks(pod: Pod) -> bool:
    return not requires_affinity(pod) and not spreads(pod)


def affinity_keys(pod: Pod) -> tuple[str, ...]:
    """The label keys in whose domains it must be near others."""
    affinity = pod.spec.affinity
    side = affinity.pod_affinity if affinity else None
    terms = (side.required_during_scheduling_ignored_during_execution if side else None) or ()
    spread = [c.topology_key for c in pod.spec.topology_spread_constraints or ()]
    return tuple(dict.fromkeys([*(term.topology_key for term in terms), *spread]))


def repelled_keys(pod: Pod) -> tuple[str, ...]:
    """The label keys of whose domains each can hold one such pod only."""
    affinity = pod.spec.affinity
    side = affinity.pod_anti_affinity if affinity else None
    terms = (side.required_during_scheduling_ignored_during_execution if side else None) or ()
    return tuple(dict.fromkeys(term.topology_key for term in terms if _selects_itself(term, pod)))


def _selects_itself(term: PodAffinityTerm, pod: Pod) -> bool:
    if term.mismatch_label_keys or term.label_selector is None:
        return False
    named = term.namespaces or ()
    home = pod.metadata.namespace in named if named or term.namespace_selector is not None else True
    return home and matches(term.label_selector, pod.metadata.labels or {})


def seats_at_most(trial: Trial, shape: Shape) -> Ints:
    """Per node, more pods of a shape than this no plan can seat."""
    if trial.independent(shape) or room_only_shrinks(shape.pod):
        return trial.seats(shape)
    cluster = trial.cluster
    return count_seats(cluster.alloc - cluster.used, shape.request_vector(cluster), trial.feasibility(shape).ok)


def most(trial: Trial, shape: Shape, mask: Mask | None) -> int:
    """The most pods of a shape that the nodes of a scope can take, its dislike of its own kind included."""
    seats = seats_at_most(trial, shape)
    if mask is not None:
        seats = np.where(mask, seats, 0)
    total = int(seats.sum())
    for key in () if trial.independent(shape) else repelled_keys(shape.pod):
        ids = trial.cluster.labels(key)
        outside = int(seats[ids == 0].sum())
        total = min(total, outside + int(np.count_nonzero(np.bincount(ids[(seats > 0) & (ids > 0)]))))
    return total


def node_matrix_of(trial: Trial, shapes: Sequence[Shape], keys: Iterable[str]) -> NodeMatrix:
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
    return NodeMatrix(free, requests, allowed, cluster.rank, columns, cluster.label_id, limited=len(free) > len(rows))


def _seats(trial: Trial, shape: Shape) -> Ints:
    seats = seats_at_most(trial, shape)
    for key in () if trial.independent(shape) else repelled_keys(shape.pod):
        seats = np.where(trial.cluster.labels(key) > 0, np.minimum(seats, 1), seats)
    return seats
