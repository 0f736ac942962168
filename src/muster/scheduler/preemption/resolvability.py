"""Whether preemption is worth trying: the statuses of KEP-6012, computed for a tree that does not fit.

At a group, M is its minimum, S counts the children that are satisfied, R those not tried yet, U those that might be
satisfied once everything of lower priority were gone. For a PodGroup the children are its members:

    S >= M          Success
    S + R >= M      Wait
    S + R + U >= M  Unschedulable: preemption is worth trying
    otherwise       UnschedulableAndUnresolvable: preemption cannot help

One plan decides about a whole tree, so nothing is left untried here: R is 0. U is what the nodes could hold if nothing
ran on them at all, so Unschedulable has to be confirmed by the selection of victims, UnschedulableAndUnresolvable is
certain without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest, shapes_of
from muster.scheduler.runtime.evaluator import Evaluator


class Status(Enum):
    """The status of a group, as KEP-6012 names it."""

    SUCCESS = "Success"
    WAIT = "Wait"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"


def resolve(minimum: int, succeeded: int, remaining: int, resolvable: int) -> Status:
    """The status of a group from the numbers M, S, R and U."""
    if succeeded >= minimum:
        return Status.SUCCESS
    if succeeded + remaining >= minimum:
        return Status.WAIT
    if succeeded + remaining + resolvable >= minimum:
        return Status.UNSCHEDULABLE
    return Status.UNRESOLVABLE


def worth_preempting_for(request: GroupRequest, evaluator: Evaluator) -> bool:
    """False if not even an empty cluster would have a seat for any member, or could never hold the minima."""
    seats = _empty_seats(request, evaluator)
    if not any(each.any() for each in seats.values()):
        return False
    return statuses(request, evaluator, seats)[request.key] is not Status.UNRESOLVABLE


def statuses(
    request: GroupRequest, evaluator: Evaluator, seats: Mapping[int, Ints] | None = None
) -> dict[EntityKey, Status]:
    """The status of every group of a tree that does not fit now."""
    found: dict[EntityKey, Status] = {}
    _resolve(request, evaluator.cluster, _empty_seats(request, evaluator) if seats is None else seats, found)
    return found


def _empty_seats(request: GroupRequest, evaluator: Evaluator) -> dict[int, Ints]:
    """Per shape, the seats on every node if nothing ran there."""
    return {number: evaluator.empty_capacity(shape) for number, shape in shapes_of(request).items()}


def _resolve(
    request: GroupRequest, cluster: Cluster, seats: Mapping[int, Ints], found: dict[EntityKey, Status]
) -> Status:
    if isinstance(request, CompositeRequest):
        below = [_resolve(child, cluster, seats, found) for child in request.children]
        count = below.count
        status = resolve(request.minimum, count(Status.SUCCESS), count(Status.WAIT), count(Status.UNSCHEDULABLE))
    else:
        status = resolve(request.minimum, request.bound, 0, _most(request, cluster, seats))
    found[request.key] = status
    return status


def _most(leaf: PodGroupRequest, cluster: Cluster, seats: Mapping[int, Ints]) -> int:
    """The most members that could be placed on empty nodes, all in one domain where they must be."""
    counts = Counter(member.shape.id for member in leaf.members)
    if not leaf.topology:
        return sum(min(count, int(seats[shape].sum())) for shape, count in counts.items())
    domain_of = cluster.labels(leaf.topology)[: cluster.size]
    most = np.zeros(int(domain_of.max(initial=0)) + 1, dtype=np.int64)
    for shape, count in counts.items():
        most += np.minimum(np.bincount(domain_of, weights=seats[shape]).astype(np.int64), count)
    return int(most[1:].max(initial=0))  # nodes without the label are in no domain
