"""Waiting classes: entities that ask for the same at the same priority and have failed; one verdict is about all.

The classes keep what their shapes request in one array, so that one pass over it tells which classes a change of some
nodes could concern. A class is looked at again only for changes that are newer than its stamp: the moment at which it
was last known not to fit.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, with_rows
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import QueuedEntity, RequeueHints, SortKey
from muster.scheduler.queue.gain import Gain

_MOST_CELLS = 1 << 20  # of one comparison between requests and room


class Kind(NamedTuple):
    """What decides which room counts for a class."""

    priority: int
    holder: EntityKey | None  # seats nominated for this entity count as free
    preempts: bool
    proven: bool  # its failure was proven, so only a gain of its own kind can end it


Room = Callable[[Kind], Ints]  # what is free or can be made free, [resource row, slot]


class WaitingClass:
    """Entities with equal hints, in the order of the line."""

    __slots__ = ("_heap", "entities", "hints", "rows", "stamp", "version")

    def __init__(self, hints: RequeueHints) -> None:
        self.hints = hints
        self.entities: dict[EntityKey, QueuedEntity] = {}
        self.rows: list[int] = []
        self.stamp = hints.stamp
        self.version = hints.version  # of the cluster when it was last tried
        self._heap: list[tuple[SortKey, EntityKey]] = []

    @property
    def kind(self) -> Kind:
        hints = self.hints
        return Kind(hints.priority, hints.holder, hints.preempts, hints.proven)

    def add(self, entity: QueuedEntity) -> None:
        self.entities[entity.key] = entity
        heapq.heappush(self._heap, (entity.sort_key, entity.key))

    def first(self) -> QueuedEntity:
        """The next one in line; a class is never empty."""
        while True:
            sort_key, key = self._heap[0]
            entity = self.entities.get(key)
            if entity is not None and entity.sort_key == sort_key:
                return entity
            heapq.heappop(self._heap)
            if entity is not None:  # what decides its place in line has changed
                heapq.heappush(self._heap, (entity.sort_key, key))

    def in_order(self) -> list[QueuedEntity]:
        return sorted(self.entities.values(), key=lambda entity: entity.sort_key)


class WaitingClasses:
    """All classes by their key, and one row for each shape of each."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, WaitingClass] = {}
        self._undecided: dict[Hashable, WaitingClass] = {}  # of these, the ones whose last attempt had no verdict
        self._requests: Ints = np.zeros((64, 4), dtype=np.int64)  # [row, resource row]
        self._least: Ints = np.zeros((64, 4), dtype=np.int64)  # of the whole class, in each of its rows
        self._live: Bools = np.zeros(64, dtype=np.bool_)
        self._stamps: Ints = np.zeros(64, dtype=np.int64)
        self._kinds: Ints = np.zeros(64, dtype=np.int64)
        self._owners: list[WaitingClass | None] = [None for _ in range(64)]
        self._free = list(range(63, -1, -1))
        self._kind_numbers: dict[Kind, int] = {}
        self._kind_rows: Counter[Kind] = Counter()
        self._last_kind = 0

    def __iter__(self) -> Iterator[WaitingClass]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def keys(self) -> list[Hashable]:
        """In the order in which the classes began to wait."""
        return list(self._by_key)

    def undecided(self) -> list[WaitingClass]:
        """The classes for which neither a placement was found nor a proof that there is none."""
        return list(self._undecided.values())

    def get(self, key: Hashable) -> WaitingClass | None:
        return self._by_key.get(key)

    def __contains__(self, entity: QueuedEntity) -> bool:
        found = self._by_key.get(entity.hints.key)
        return found is not None and entity.key in found.entities

    # --- who waits ---------------------------------------------------------------------------------

    def add(self, entity: QueuedEntity) -> None:
        """The entity has just failed with the hints that it carries."""
        hints = entity.hints
        found = self._by_key.get(hints.key)
        if found is None:
            found = self._by_key[hints.key] = WaitingClass(hints)
            self._add_rows(found)
            if hints.undecided:
                self._undecided[hints.key] = found
        found.add(entity)
        found.version = hints.version
        self.set_stamp(found, hints.stamp)

    def discard(self, entity: QueuedEntity) -> None:
        found = self._by_key.get(entity.hints.key)
        if found is not None and found.entities.pop(entity.key, None) is not None and not found.entities:
            del self._by_key[entity.hints.key]
            self._undecided.pop(entity.hints.key, None)
            for row in found.rows:
                self._live[row], self._owners[row] = False, None
            self._free += found.rows
            self._kind_rows[found.kind] -= len(found.rows)
            if not self._kind_rows[found.kind]:
                del self._kind_rows[found.kind]
                self._kind_numbers.pop(found.kind, None)

    def set_stamp(self, waiting: WaitingClass, stamp: int) -> None:
        """The class is known not to fit at this moment."""
        waiting.stamp = max(waiting.stamp, stamp)
        self._stamps[waiting.rows] = waiting.stamp

    def _add_rows(self, waiting: WaitingClass) -> None:
        requests = waiting.hints.requests
        if requests is None:
            return
        while len(self._free) < len(requests):
            self._grow()
        if requests.shape[1] > self._requests.shape[1]:
            self._requests = np.ascontiguousarray(with_rows(self._requests.T, requests.shape[1]).T)
            self._least = np.ascontiguousarray(with_rows(self._least.T, requests.shape[1]).T)
        self._last_kind += 1
        number = self._kind_numbers.setdefault(waiting.kind, self._last_kind)
        self._kind_rows[waiting.kind] += len(requests)
        for request in requests:
            row = self._free.pop()
            waiting.rows.append(row)
            self._requests[row] = 0
            self._requests[row, : len(request)] = request
            self._least[row] = 0
            if waiting.hints.least is not None:
                self._least[row, : len(waiting.hints.least)] = waiting.hints.least
            self._live[row], self._kinds[row], self._owners[row] = True, number, waiting

    def _grow(self) -> None:
        size = len(self._live)
        self._requests = with_rows(self._requests, size * 2)
        self._least = with_rows(self._least, size * 2)
        self._live = np.concatenate([self._live, np.zeros(size, dtype=np.bool_)])
        self._stamps = np.concatenate([self._stamps, np.zeros(size, dtype=np.int64)])
        self._kinds = np.concatenate([self._kinds, np.zeros(size, dtype=np.int64)])
        self._owners += [None for _ in range(size)]
        self._free += range(size * 2 - 1, size - 1, -1)

    # --- whom a change could help ------------------------------------------------------------------

    def with_a_seat(self, gains: Mapping[Gain, int], room: Room) -> list[WaitingClass]:
        """The classes one of whose shapes has the resources for a pod on a slot that gained after their stamps."""
        if not gains:
            return []
        rows = np.flatnonzero(self._live & (self._stamps < max(gains.values())))
        found: dict[int, WaitingClass] = {}
        for kind, number in self._kind_numbers.items() if len(rows) else ():
            of_kind = rows[self._kinds[rows] == number]
            if len(of_kind):
                for row in map(int, self._fitting(of_kind, kind, gains, room)):
                    owner = self._owners[row]
                    assert owner is not None, "a live row has an owner"
                    found[id(owner)] = owner
        return list(found.values())

    def _fitting(self, rows: Ints, kind: Kind, gains: Mapping[Gain, int], room: Room) -> Ints:
        """The rows for whose request a newer gain has room, if all nodes together have room for their class."""
        newest: dict[int, int] = {}
        for gain, stamp in gains.items():
            if not kind.proven or gain.helps(kind.priority, preempts=kind.preempts):
                newest[gain.slot] = max(stamp, newest.get(gain.slot, 0))
        if not newest:
            return rows[:0]
        slots = np.fromiter(newest, dtype=np.int64)
        stamps = np.fromiter(newest.values(), dtype=np.int64)
        everywhere = room(kind)
        free = everywhere[:, slots]
        width = min(free.shape[0], self._requests.shape[1])
        possible = (self._requests[rows, :width] <= free[:width].max(axis=1)).all(axis=1)
        possible &= ~self._requests[rows, width:].any(axis=1)
        possible &= (self._least[rows, :width] <= everywhere[:width].sum(axis=1)).all(axis=1)
        rows = rows[possible]
        at_once = max(1, _MOST_CELLS // max(1, len(slots) * width))
        parts = [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
        fits = [
            ((self._requests[part, None, :width] <= free[:width].T[None]).all(axis=2))
            & (self._stamps[part, None] < stamps[None])
            for part in parts
        ]
        kept = [part[ok.any(axis=1)] for part, ok in zip(parts, fits, strict=True)]
        return np.concatenate(kept) if kept else rows[:0]
