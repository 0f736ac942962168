"""Upper bounds on the seats of a shape, from its own scheduling rules and from the state of a trial.

A pod that requires affinity or spreads hard can become feasible on a node because of a pod that is placed later; for
all other pods room only shrinks while pods are placed, and only for those does "not feasible now" bound what a plan
can do. For shapes that depend on nodes only the bounds, and the node matrix made of them, are exact. For others they
allow at least what the rules allow: what does not fit by these counts does not fit at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from muster.api.selectors import matches
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.framework.shape import Shape
from muster.scheduler.planning.node_matrix import Ints, Mask, NodeMatrix, count_seats
from muster.scheduler.runtime.trial import Trial

# --- what a pod's own rules imply ------------------------------------------------------------------


def room_only_shrinks(pod: Pod) -> bool:
    """Whether no pod that is placed later can make a node feasible for this one."""
    return not _required(pod) and not _spreads(pod)


def affinity_keys(pod: Pod) -> tuple[str, ...]:
    """The topology keys of its required affinity and of its spread constraints."""
    spread = [c.topology_key for c in pod.spec.topology_spread_constraints or ()]
    return tuple(dict.fromkeys([*(term.topology_key for term in _required(pod)), *spread]))


def repelled_keys(pod: Pod) -> tuple[str, ...]:
    """The topology keys of which each domain can hold one such pod only: its anti-affinity selects itself."""
    affinity = pod.spec.affinity
    side = affinity.pod_anti_affinity if affinity else None
    terms = (side.required_during_scheduling_ignored_during_execution if side else None) or ()
    return tuple(dict.fromkeys(term.topology_key for term in terms if _selects_itself(term, pod)))


def _required(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    side = affinity.pod_affinity if affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def _spreads(pod: Pod) -> bool:
    return any(c.when_unsatisfiable == "DoNotSchedule" for c in pod.spec.topology_spread_constraints or ())


def _selects_itself(term: PodAffinityTerm, pod: Pod) -> bool:
    if term.mismatch_label_keys or term.label_selector is None:
        return False
    named = term.namespaces or ()
    home = pod.metadata.namespace in named if named or term.namespace_selector is not None else True
    return home and matches(term.label_selector, pod.metadata.labels or {})


# --- bounds on a trial -----------------------------------------------------------------------------


def seats_at_most(trial: Trial, shape: Shape) -> Ints:
    """Per node, a number of pods of a shape that no plan can exceed."""
    if trial.countable(shape) or room_only_shrinks(shape.pod):
        return trial.seats(shape)
    cluster = trial.cluster
    return count_seats(cluster.alloc - cluster.used, shape.request_vector(cluster), trial.feasibility(shape).ok)


def most(trial: Trial, shape: Shape, nodes: Mask | None) -> int:
    """The most pods of a shape that some nodes can take together, anti-affinity to its own pods included."""
    seats = seats_at_most(trial, shape)
    if nodes is not None:
        seats = np.where(nodes, seats, 0)
    total = int(seats.sum())
    for key in () if trial.countable(shape) else repelled_keys(shape.pod):
        ids = trial.cluster.labels(key)
        outside = int(seats[ids == 0].sum())
        total = min(total, outside + int(np.count_nonzero(np.bincount(ids[(seats > 0) & (ids > 0)]))))
    return total


def node_matrix_of(trial: Trial, shapes: Sequence[Shape], keys: Iterable[str]) -> NodeMatrix:
    """What is free on the trial, what each shape requests, where it may be placed, and these label keys.

    Everything is copied: a search on the matrix may go on after the trial.
    """
    cluster = trial.cluster
    requests = np.array([shape.request_vector(cluster) for shape in shapes], dtype=np.int64)
    rows = np.flatnonzero(requests.any(axis=0))
    resources = len(rows)
    free: Ints = cluster.alloc[rows] - cluster.used[rows]
    requests = requests[:, rows]
    devices = trial.device_rows(shapes)
    if devices is not None:
        requests = np.hstack((requests, devices.requests))
        free = np.vstack((free, devices.free))
    seats = np.array([_seats(trial, shape) for shape in shapes], dtype=np.int64)
    allowed = seats > 0
    amounts = len(free)
    # A limit that is no resource (ports, attached volumes, devices) shows as fewer seats than the amounts allow.
    for at in range(len(shapes)):
        by_amounts = count_seats(free[:amounts], requests[at][:amounts], allowed[at])
        if (seats[at] < by_amounts).any():
            column = np.zeros((len(shapes), 1), dtype=np.int64)
            column[at] = 1
            requests = np.hstack((requests, column))
            free = np.vstack((free, seats[at][None, :]))
    columns = {key: cluster.labels(key).copy() for key in keys}
    return NodeMatrix(
        shapes,
        free,
        requests,
        allowed,
        cluster.rank.copy(),
        columns,
        cluster.label_id,
        limited=len(free) > resources,
        exact=devices is not None,
    )


def _seats(trial: Trial, shape: Shape) -> Ints:
    seats = seats_at_most(trial, shape)
    for key in () if trial.countable(shape) else repelled_keys(shape.pod):
        seats = np.where(trial.cluster.labels(key) > 0, np.minimum(seats, 1), seats)
    return seats
