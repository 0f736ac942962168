"""The place where an entity that does not fit now will fit soonest.

Pods whose end is known are taken to be gone one after the other, in the order of their ends: the first moment at which
the entity fits is its expected start. Where that never happens, the place is one with the fewest pods to leave, and
among those one whose pods have run longest; the start is then unknown. For an entity with a topology constraint whole
domains are compared.

Placements are greedy ones, in a trial; at most `MOST_DOMAINS` domains are compared, each in as many placements as
halving the number of its nodes takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cycle.holders import Holder, Holders, holders_for
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, groups, leaves, open_leaves, shapes_of
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.planning.plan import plan_greedily
from muster.scheduler.runtime.trial import Trial
from muster.scheduler.state.scheduler_state import SchedulerState

MOST_DOMAINS = 4

NOBODY: Ints = np.empty(0, dtype=np.int64)

Seats = Iterable[tuple[Shape, int]]


@dataclass(frozen=True, slots=True)
class Place:
    """A placement, and the pods that have to leave before it is free."""

    placed: Placed
    leaving: tuple[Holder, ...]

    @property
    def start(self) -> float | None:
        """When the last of these pods is gone; None if that is not known."""
        ends = [holder.end for holder in self.leaving]
        known = [end for end in ends if end is not None]
        return max(known, default=0.0) if len(known) == len(ends) else None

    @property
    def rank(self) -> tuple[int, float, list[str]]:
        """Fewest pods to leave, then those that have run longest, then the names of nodes."""
        youngest = max((holder.started for holder in self.leaving), default=0.0)
        return (len(self.leaving), youngest, sorted(assignment.node for assignment in self.placed.assignments))


def soonest_place(
    state: SchedulerState, key: EntityKey, request: GroupRequest, kept: Seats, now: float
) -> tuple[Place | None, int]:
    """Where an entity will fit first beside the seats that are kept for others, and how many placements were tried."""
    with state.evaluator.trial() as trial:
        for shape, slot in kept:
            trial.place(shape, slot)
        search = _Search(state, trial, request, holders_for(state, key, now))
        return search.run(), search.tried


def known_start(state: SchedulerState, key: EntityKey, request: GroupRequest, kept: Seats, now: float) -> float | None:
    """When an entity will fit beside the seats that are kept for others, if that follows from known ends."""
    holders = holders_for(state, key, now).with_known_end()
    with state.evaluator.trial() as trial:
        for shape, slot in kept:
            trial.place(shape, slot)
        place = _Search(state, trial, request, holders).first_by_ends()
    if place is None:
        return None
    return place.start if place.leaving else now


class _Search:
    """One search for a place, in an open trial."""

    def __init__(self, state: SchedulerState, trial: Trial, request: GroupRequest, holders: Holders) -> None:
        self.state = state
        self.cluster = state.cluster
        self.trial = trial
        self.request = request
        self.holders = holders
        self.tried = 0

    def run(self) -> Place | None:
        return self.first_by_ends() or self._by_counts()

    def first_by_ends(self) -> Place | None:
        """The place now, or once pods have gone whose ends are known."""
        placed = self._placed(NOBODY)
        return Place(placed, ()) if placed is not None else self._by_ends()

    def _placed(self, gone: Ints) -> Placed | None:
        """A placement once these pods are gone."""
        self.tried += 1
        mark = self.trial.mark()
        self.trial.evict_all(self.holders.uids_of(gone))
        try:
            return plan_greedily(self.request, self.trial, Budget(self.state.config.budget_steps))
        finally:
            self.trial.undo(mark)

    def _first(self, count: int, gone: Callable[[int], Ints]) -> Place | None:
        """The place in the smallest of `count` growing sets of pods in which there is one.

        Sets are tried in steps that double, because few pods have to leave as a rule, and then halved.
        """
        if count == 0:
            return None
        low, high = 0, 0
        while (placed := self._placed(gone(high))) is None:
            if high == count - 1:
                return None
            low, high = high + 1, min(2 * high + 1, count - 1)
        while low < high:
            middle = (low + high) // 2
            found = self._placed(gone(middle))
            if found is not None:
                placed, high = found, middle
            else:
                low = middle + 1
        return self._trimmed(placed, gone(high))

    def _first_on(self, slots: list[int], among: Ints) -> Place | None:
        """The place on the fewest of these slots, in this order, once those of some pods are gone that are there."""
        position = np.full(self.cluster.size, len(slots), dtype=np.int64)
        position[slots] = np.arange(len(slots))
        at = position[self.holders.slot[among]]
        return self._first(len(slots), lambda index: among[at <= index])

    # --- durations are known -----------------------------------------------------------------------

    def _by_ends(self) -> Place | None:
        """First the earliest end after which there is a place; then as few nodes as possible, the earliest first."""
        end, slot = self.holders.end, self.holders.slot
        known = np.flatnonzero(end < math.inf)
        ends = np.unique(end[known])
        first = self._first(len(ends), lambda index: known[end[known] <= ends[index]])
        start = first.start if first is not None else None
        if start is None:
            return None
        early = known[end[known] <= start]
        last = np.full(self.cluster.size, -math.inf)
        np.maximum.at(last, slot[early], end[early])
        names = self.cluster.names
        slots: list[int] = np.flatnonzero(last > -math.inf).tolist()
        return self._first_on(sorted(slots, key=lambda slot: (last[slot], names[slot])), early) or first

    # --- durations are not known -------------------------------------------------------------------

    def _by_counts(self) -> Place | None:
        everybody = np.arange(len(self.holders.uids))
        places = (self._first_on(slots, everybody) for slots in self._orders())
        return min((place for place in places if place is not None), key=lambda place: place.rank, default=None)

    def _orders(self) -> Iterator[list[int]]:
        """Orders in which nodes may be freed: those that give a seat for the fewest pods first, domain by domain."""
        size, names = self.cluster.size, self.cluster.names
        shape = self._largest_shape()
        seats = self.trial.seats(shape)
        gains = np.maximum(self.state.evaluator.empty_capacity(shape) - seats, 0)
        pods = np.bincount(self.holders.slot, minlength=size)
        youngest = np.zeros(size)
        np.maximum.at(youngest, self.holders.slot, self.holders.started)
        free = np.flatnonzero((pods[: len(gains)] > 0) & (gains > 0))
        rank = zip((pods[free] / gains[free]).tolist(), youngest[free].tolist(), free.tolist(), strict=True)
        order = [slot for _, _, slot in sorted(rank, key=lambda each: (each[0], each[1], names[each[2]]))]
        top, inner = self._topology_keys()
        if inner:
            order = [slot for domain in self._domains(order, inner, seats, gains, pods) for slot in domain]
        if not top:
            yield order
            return
        yield from self._domains(order, top, seats, gains, pods)[:MOST_DOMAINS]

    def _largest_shape(self) -> Shape:
        """The shape that takes most of a node; of equals the first in the request, whatever was known before it."""
        largest = np.maximum(self.cluster.alloc[:, : self.cluster.size].max(axis=1), 1)

        def share(shape: Shape) -> float:
            return float((shape.request_vector(self.cluster) / largest).max())

        return max(shapes_of(self.request).values(), key=share)

    def _topology_keys(self) -> tuple[str, str]:
        """The key that the whole request must keep to, and the one that groups below it must keep to."""
        top = self.request.topology
        inner = next((group.topology for group in groups(self.request) if group.topology not in ("", top)), "")
        return top, inner

    def _domains(self, order: list[int], key: str, seats: Ints, gains: Ints, pods_on: Ints) -> list[list[int]]:
        """The ordered nodes by domain, the domain that needs the fewest pods to leave first."""
        values = self.cluster.labels(key)
        need = self._need(key)
        by_domain: dict[int, list[int]] = {}
        for slot in order:
            if values[slot] > 0:
                by_domain.setdefault(int(values[slot]), []).append(slot)

        def cost(value: int) -> tuple[int, int, str]:
            have = int(seats[values[: len(seats)] == value].sum())
            pods = 0
            for slot in by_domain[value]:
                if have >= need:
                    break
                have += int(gains[slot])
                pods += int(pods_on[slot])
            return (max(0, need - have), pods, self.cluster.label_value(key, value))

        return [by_domain[value] for value in sorted(by_domain, key=cost)]

    def _need(self, key: str) -> int:
        """How many pods the first group with this topology key needs."""
        found = next((group for group in groups(self.request) if group.topology == key), self.request)
        return sum(leaf.need for leaf in open_leaves(found))

    # --- which pods really have to leave -----------------------------------------------------------

    def _trimmed(self, placed: Placed, gone: Ints) -> Place:
        """The place without the pods that may as well stay: those that end last stay first."""
        used = np.zeros(self.cluster.size, dtype=np.bool_)
        used[[assignment.index for assignment in placed.assignments]] = True
        on_used = self.holders.of(gone[used[self.holders.slot[gone]]].tolist())
        needed = self._needed(placed, on_used)
        independent = all(self.trial.independent(shape) for shape in shapes_of(self.request).values())
        if len(needed) < len(on_used) and not independent and not self._holds(placed, needed):
            needed = on_used
        return Place(placed, tuple(needed))

    def _needed(self, placed: Placed, gone: list[Holder]) -> list[Holder]:
        cluster, trial = self.cluster, self.trial
        shapes = {member.uid: member.shape for leaf in leaves(self.request) for member in leaf.members}
        planned = np.zeros((len(cluster.resources), cluster.size), dtype=np.int64)
        for assignment in placed.assignments:
            planned[:, assignment.index] += shapes[assignment.uid].request_vector(cluster)
        mark = trial.mark()
        trial.evict_all(holder.uid for holder in gone)
        free = cluster.alloc[:, : cluster.size] - cluster.used[:, : cluster.size] - planned
        trial.undo(mark)
        needed: list[Holder] = []
        for holder in sorted(gone, key=_end_last, reverse=True):
            vector = cluster.pods[holder.uid].footprint.vector
            rest = free[: len(vector), holder.slot] - vector
            if (rest[planned[: len(vector), holder.slot] > 0] >= 0).all():
                free[: len(vector), holder.slot] = rest
            else:
                needed.append(holder)
        return needed

    def _holds(self, placed: Placed, gone: Sequence[Holder]) -> bool:
        """Whether every pod of a placement passes the filters once these pods are gone, one after the other."""
        shapes = {member.uid: member.shape for leaf in leaves(self.request) for member in leaf.members}
        mark = self.trial.mark()
        self.trial.evict_all(holder.uid for holder in gone)
        try:
            for assignment in placed.assignments:
                shape = shapes[assignment.uid]
                if not self.trial.feasible(shape)[assignment.index]:
                    return False
                self.trial.place(shape, assignment.index)
            return True
        finally:
            self.trial.undo(mark)


def _end_last(holder: Holder) -> tuple[bool, float, float, str]:
    return (holder.end is None, holder.end or 0.0, holder.started, holder.uid)
