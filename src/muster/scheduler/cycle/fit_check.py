"""Whether a request that did not fit could fit now: necessary conditions by counting, which place nothing.

For every shape the nodes with room for it are counted, in each domain where that matters; at every level of the tree
enough children must pass; and what the pods request at least must not exceed what those nodes have together. For who
may preempt, room that evictions could make counts as free. A request that passes may still not fit; one that does not
pass cannot.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

import numpy as np
import numpy.typing as npt

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PodGroupRequest, shapes_of
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.queue.waiting_classes import Kind, WaitingClass
from muster.scheduler.state.scheduler_state import SchedulerState

Floats = npt.NDArray[np.float64]


class Rooms:
    """What is free for entities of some kind, or could be made free; valid until the cluster changes."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._known: dict[Kind, Ints] = {}
        self._evicting: dict[Kind, bool] = {}
        self._unreserved: dict[Hashable, Ints] = {}

    def evicting(self, kind: Kind) -> bool:
        """Whether there is anything that entities of the kind could evict, or that leaves anyway."""
        found = self._evicting.get(kind)
        if found is None:
            found = kind.preempts and bool(self._state.evictable.below(kind.priority).any())
            self._evicting[kind] = found
        return found

    def of(self, kind: Kind) -> Ints:
        """Per resource row and slot."""
        found = self._known.get(kind)
        if found is None:
            state = self._state
            found = state.cluster.alloc - state.cluster.used
            for shape, slot in state.nominations.against(kind.holder, kind.priority):
                vector = shape.footprint.vector
                found[: len(vector), slot] -= vector
            if kind.preempts:
                found += state.evictable.below(kind.priority)
            found = self._known[kind] = np.maximum(found, 0)
        return found

    def unreserved(self, kind: Kind, entity: QueuedEntity) -> Ints:
        """`of` without what is reserved for others than an entity; the same for most entities of a kind."""
        state = self._state
        if not state.reservations or entity.partly_bound:
            return self.of(kind)
        own = entity.key if state.reservations.get(entity.key) is not None else None
        run = state.longest_run(entity)
        key = (kind, own, entity.priority, run)
        found = self._unreserved.get(key)
        if found is None:
            found = self.of(kind).copy()
            for shape, slot in state.reservations.against(entity.key, entity.priority, run):
                vector = shape.footprint.vector
                found[: len(vector), slot] -= vector
            found = self._unreserved[key] = np.maximum(found, 0)
        return found


def most_that_fit(state: SchedulerState, rooms: Rooms, waiting: WaitingClass) -> int:
    """How many entities of a class could fit now: 0 if not even one; exact only if nodes alone decide and no domain."""
    request, kind = waiting.hints.request, waiting.kind
    if request is None:
        return 0
    check = _Check(state, rooms.unreserved(kind, waiting.first()), rooms.evicting(kind), request)
    if not check.passes():
        return 0
    if not isinstance(request, PodGroupRequest) or len(request.identical) != 1 or request.topology:
        return 1
    shape = request.identical[0].shape
    if rooms.evicting(kind) or not state.evaluator.independent(shape):
        return 1
    return max(1, int(check.seats(shape).sum()) // max(1, request.need))


class _Check:
    """One request on one state of the cluster."""

    def __init__(self, state: SchedulerState, room: Ints, evicting: bool, request: GroupRequest) -> None:
        self._cluster = state.cluster
        self._evaluator = state.evaluator
        self._room = room
        self._evicting = evicting
        self._request = request
        # A nominated pod can be what an affinity term asks for.
        single = isinstance(request, PodGroupRequest) and len(request.members) == 1
        self._single = single and not state.nominations
        self._seats: dict[int, Ints] = {}

    def passes(self) -> bool:
        request = self._request
        if not request.admissible:
            return False
        if request.satisfied:
            return self._can_grow(request, None)
        return self._fits(request, None) and self._enough_in_sum()

    # --- seats -------------------------------------------------------------------------------------

    def seats(self, shape: Shape) -> Ints:
        """Per slot, how many pods of the shape have room, each shape for itself."""
        found = self._seats.get(shape.id)
        if found is None:
            found = self._seats[shape.id] = self._count(shape)
        return found

    def _count(self, shape: Shape) -> Ints:
        feasibility = self._evaluator.feasibility(shape)
        size = self._cluster.size
        # Evictions may free what usage filters miss. What pods on other nodes decide is certain for one pod only:
        # a gang changes it with every member that is placed.
        if self._evicting:
            ok = feasibility.node_ok[:size]
        else:
            ok = feasibility.feasible()[:size] if self._single else feasibility.ok[:size]
        requests = shape.request_vector(self._cluster)
        rows = np.flatnonzero(requests)
        seats = (self._room[rows] // requests[rows, None]).min(axis=0)
        return np.where(ok, seats, 0)

    # --- counting ----------------------------------------------------------------------------------

    def _fits(self, request: GroupRequest, inside: Bools | None) -> bool:
        """Whether the minimum of a group could hold, on all nodes or some."""
        if request.topology:
            ids = self._domain_ids(request, inside)
            return bool(self._fits_by_domain(request, ids, int(ids.max(initial=0)) + 1)[1:].any())
        if isinstance(request, CompositeRequest):
            return sum(self._fits(child, inside) for child in request.open) >= request.need
        return self._pods(request, inside) >= request.need

    def _pods(self, leaf: PodGroupRequest, inside: Bools | None) -> int:
        total = 0
        for pods in leaf.identical:
            seats = self.seats(pods.shape)
            total += min(pods.count, int((seats if inside is None else seats[inside]).sum()))
        return total

    def _domain_ids(self, request: GroupRequest, inside: Bools | None) -> Ints:
        """Per slot, the domain that it is in; 0 for none, or if the group cannot use it."""
        ids = self._cluster.labels(request.topology).astype(np.int64)
        if inside is not None:
            ids = np.where(inside, ids, 0)
        if request.pin is not None:
            pinned = self._cluster.label_id(request.topology, request.pin) if request.pin else 0
            ids = np.where(ids == pinned, ids, 0)
        return ids

    def _fits_by_domain(self, request: GroupRequest, ids: Ints, size: int) -> Bools:
        """Per domain, whether the minimum of a group could hold in it; a constraint of its own only for PodGroups."""
        if isinstance(request, CompositeRequest):
            passing = np.zeros(size, dtype=np.int64)
            for child in request.open:
                passing += self._fits_by_domain(child, ids, size)
            return passing >= request.need
        pods: Floats = np.zeros(size)
        for identical in request.identical:
            pods += np.minimum(self._sums(request, self.seats(identical.shape), ids, size), identical.count)
        return pods >= request.need

    def _sums(self, leaf: PodGroupRequest, seats: Ints, ids: Ints, size: int) -> Floats:
        """Seats per domain; of a PodGroup with another topology key, in the best domain of that inside each."""
        outer = self._request.topology
        if not leaf.topology or leaf.topology == outer or leaf is self._request:
            return cast(Floats, np.bincount(ids, weights=seats, minlength=size))
        inner = self._domain_ids(leaf, None)
        width = int(inner.max(initial=0)) + 1
        sums = cast(Floats, np.bincount(ids * width + inner, weights=seats, minlength=size * width))
        return sums.reshape(size, width)[:, 1:].max(axis=1, initial=0)

    def _can_grow(self, request: GroupRequest, inside: Bools | None) -> bool:
        """Whether anything could be added to a group whose minimum holds."""
        if request.topology:
            within = self._domain_ids(request, inside) > 0
            inside = within
        if isinstance(request, PodGroupRequest):
            return self._pods(request, inside) > 0
        return any(self._fits(child, inside) for child in request.open) or any(
            self._can_grow(child, inside) for child in request.done
        )

    # --- in sum ------------------------------------------------------------------------------------

    def _enough_in_sum(self) -> bool:
        """Whether the nodes with a seat, of one domain if it must be one, have what the pods request at least."""
        usable = np.zeros(self._cluster.size, dtype=np.bool_)
        for shape in shapes_of(self._request).values():
            usable |= self.seats(shape) > 0
        least, room = least_requests(self._request, self._cluster), np.where(usable, self._room, 0)
        if not self._request.topology:
            return bool((least <= room.sum(axis=1)).all())
        ids = self._domain_ids(self._request, None)
        enough = np.ones(int(ids.max(initial=0)) + 1, dtype=np.bool_)
        for row in np.flatnonzero(least):
            enough &= np.bincount(ids, weights=room[row], minlength=len(enough)) >= least[row]
        return bool(enough[1:].any())


def least_requests(request: GroupRequest, cluster: Cluster) -> Ints:
    """Per resource row, the least that the missing pods of a group can request together."""
    nothing = np.zeros(len(cluster.resources), dtype=np.int64)
    if request.satisfied or not request.need:
        return nothing
    if isinstance(request, CompositeRequest):
        below = [least_requests(child, cluster) for child in request.open]
        counts = np.ones(len(below), dtype=np.int64)
    else:
        below = [pods.shape.request_vector(cluster) for pods in request.identical]
        counts = np.array([pods.count for pods in request.identical], dtype=np.int64)
    return _smallest(np.stack(below), counts, request.need) if below else nothing


def _smallest(amounts: Ints, counts: Ints, needed: int) -> Ints:
    """Per column, the sum of the `needed` smallest amounts, of which there are `counts` each."""
    order = amounts.argsort(axis=0, kind="stable")
    taken = np.minimum(np.cumsum(counts[order], axis=0), needed)
    parts = np.diff(taken, axis=0, prepend=0)
    return (np.take_along_axis(amounts, order, axis=0) * parts).sum(axis=0)
