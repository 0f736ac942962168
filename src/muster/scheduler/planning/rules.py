"""What a shape's own rules mean for planning: can room only shrink, and does it repel its own kind.

A shape is steady if no pod placed later can make a node allowed for it: it has no required affinity
and no hard spread. Only for steady shapes does "not allowed now" bound what a plan can do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.api.selectors import matches
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.planning.board import Ints, Mask, count_seats

if TYPE_CHECKING:
    from muster.scheduler.cluster import Trial
    from muster.scheduler.shapes import Shape


def needs_company(pod: Pod) -> bool:
    """It must be near some other pod."""
    affinity = pod.spec.affinity
    side = affinity.pod_affinity if affinity else None
    return bool(side and side.required_during_scheduling_ignored_during_execution)


def spreads(pod: Pod) -> bool:
    return any(c.when_unsatisfiable == "DoNotSchedule" for c in pod.spec.topology_spread_constraints or ())


def steady(pod: Pod) -> bool:
    return not needs_company(pod) and not spreads(pod)


def company_keys(pod: Pod) -> tuple[str, ...]:
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


def ceiling(trial: Trial, shape: Shape) -> Ints:
    """Per node, more pods of a shape than this no plan can seat."""
    if shape.independent or steady(shape.pod):
        return trial.seats(shape)
    cluster = trial.cluster
    return count_seats(cluster.alloc - cluster.used, shape.request_vector(cluster), cluster.standing(shape).ok)


def most(trial: Trial, shape: Shape, mask: Mask | None) -> int:
    """The most pods of a shape that the nodes of a scope can take, its dislike of its own kind included."""
    seats = ceiling(trial, shape)
    if mask is not None:
        seats = np.where(mask, seats, 0)
    total = int(seats.sum())
    for key in () if shape.independent else repelled_keys(shape.pod):
        ids = trial.cluster.labels(key)
        outside = int(seats[ids == 0].sum())
        total = min(total, outside + int(np.count_nonzero(np.bincount(ids[(seats > 0) & (ids > 0)]))))
    return total
