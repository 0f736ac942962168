"""The queue of roots: who is next, who waits for what, and which change wakes whom.

A root is a single pod or the top of a tree of groups. Its place in line is a pure function of stored
facts (priority, creation time, uid), so a restart gives the same order; roots that are bound below their
minimum go first. A root that failed is parked under the shape it lacked room for. When room appears,
only the shapes are looked at, each once, and only as many roots wake as the counted room could serve;
a woken root that fails passes its turn on. Timers are the fallback.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import (
    ACTIVE,
    BACKOFF,
    PARKED,
    WAITING,
    CapacityHint,
    QueuedEntity,
    RequeueHints,
    Signature,
    SortKey,
)

FALLBACK_SECONDS = 60.0


BURST = 3  # so many failures


BURST_SECONDS = 1.0  # within so short a time, and the backoff is served


_K = TypeVar("_K")


Capacity = Callable[[CapacityHint], tuple[int, int]]  # (most seats in one domain, seats in all)


class SchedulingQueue:
    """Active, backoff, parked."""

    def __init__(self, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.entities: dict[EntityKey, QueuedEntity] = {}
        self.epoch = 0
        self._active: list[tuple[SortKey, int, QueuedEntity]] = []
        self._timers: list[tuple[float, SortKey, int, QueuedEntity]] = []
        self._by_capacity_hint: dict[Signature, dict[EntityKey, QueuedEntity]] = {}
        self._by_plugin: dict[str, dict[EntityKey, QueuedEntity]] = {}
        self._last_ticket = 0

    # --- coming and going --------------------------------------------------------------------------

    def add(self, entity: QueuedEntity, now: float) -> QueuedEntity:
        entity.since = now
        self.entities[entity.key] = entity
        return entity

    def remove(self, key: EntityKey) -> QueuedEntity | None:
        entity = self.entities.pop(key, None)
        if entity is not None:
            self._leave(entity)
            entity.state = WAITING
        return entity

    def _leave(self, entity: QueuedEntity) -> None:
        entity.ticket = 0
        if entity.state == PARKED:
            for want in entity.hints.capacity:
                self._discard(self._by_capacity_hint, want.signature, entity)
            for culprit in entity.hints.rejected_by:
                self._discard(self._by_plugin, culprit, entity)

    @staticmethod
    def _discard(index: dict[_K, dict[EntityKey, QueuedEntity]], key: _K, entity: QueuedEntity) -> None:
        bucket = index.get(key)
        if bucket is not None:
            bucket.pop(entity.key, None)
            if not bucket:
                del index[key]

    def _stamp(self, entity: QueuedEntity) -> int:
        self._last_ticket += 1
        entity.ticket = self._last_ticket
        return entity.ticket

    # --- moving ------------------------------------------------------------------------------------

    def set_aside(self, entity: QueuedEntity, state: str) -> None:
        """Out of the line without a timer: waiting for objects, for binds, for victims."""
        self._leave(entity)
        entity.state = state

    def activate(self, entity: QueuedEntity) -> None:
        """Into the line now."""
        self._leave(entity)
        entity.state = ACTIVE
        heapq.heappush(self._active, (entity.sort_key, self._stamp(entity), entity))

    def requeue(self, entity: QueuedEntity, now: float) -> None:
        """Back into the line because something changed; after a flurry of failures the backoff comes first."""
        flurry = len(entity.recent_failures) == BURST and now - entity.recent_failures[0] < BURST_SECONDS
        if flurry and now < entity.backoff_until:
            self._leave(entity)
            entity.state = BACKOFF
            self._set_timer(entity, entity.backoff_until)
        else:
            self.activate(entity)

    def add_unschedulable(self, entity: QueuedEntity, hints: RequeueHints, now: float) -> None:
        """A failed root waits for a change that could help it, with a timer as the fallback."""
        self._leave(entity)
        entity.failures += 1
        entity.recent_failures = (*entity.recent_failures, now)[-BURST:]
        entity.backoff_until = now + min(self.max_backoff, self.initial_backoff * 2 ** min(entity.failures - 1, 20))
        entity.hints = hints
        entity.epoch = self.epoch
        entity.state = PARKED
        for want in hints.capacity:
            self._by_capacity_hint.setdefault(want.signature, {})[entity.key] = entity
        for culprit in hints.rejected_by:
            self._by_plugin.setdefault(culprit, {})[entity.key] = entity
        self._set_timer(entity, max(entity.backoff_until, now + FALLBACK_SECONDS))

    def back_off(self, entity: QueuedEntity, now: float) -> None:
        """Back into the line, but not at once: someone else refused, and will not be faster for being asked again."""
        self._leave(entity)
        entity.state = BACKOFF
        self._set_timer(entity, now + self.initial_backoff)

    def _set_timer(self, entity: QueuedEntity, due: float) -> None:
        entity.due = due
        heapq.heappush(self._timers, (due, entity.sort_key, self._stamp(entity), entity))

    def reset_backoff(self, entity: QueuedEntity) -> None:
        """An attempt succeeded: forget its failures."""
        entity.failures = 0
        entity.recent_failures = ()

    # --- taking ------------------------------------------------------------------------------------

    def peek(self) -> QueuedEntity | None:
        """The next root in line."""
        while self._active:
            _, ticket, entity = self._active[0]
            if entity.ticket == ticket and entity.state == ACTIVE:
                return entity
            heapq.heappop(self._active)
        return None

    def pop(self) -> QueuedEntity | None:
        entity = self.peek()
        if entity is not None:
            heapq.heappop(self._active)
            entity.ticket = 0
            entity.attempts += 1
        return entity

    def in_order(self) -> list[QueuedEntity]:
        """Every root, as a person would list the queue."""
        return sorted(self.entities.values(), key=lambda entity: entity.sort_key)

    # --- time --------------------------------------------------------------------------------------

    def flush_timers(self, now: float) -> None:
        """Bring back the roots whose time has come."""
        while self._timers and self._timers[0][0] <= now:
            _, _, ticket, entity = heapq.heappop(self._timers)
            if entity.ticket == ticket:
                self.activate(entity)

    def next_due(self) -> float | None:
        """When the next timer runs out."""
        while self._timers:
            due, _, ticket, entity = self._timers[0]
            if entity.ticket == ticket:
                return due
            heapq.heappop(self._timers)
        return None

    # --- waking ------------------------------------------------------------------------------------

    def requeue_for_capacity(self, capacity: Capacity, now: float) -> None:
        """Nodes gained room: wake, shape by shape, as many roots as that room could serve."""
        self.epoch += 1
        for signature in list(self._by_capacity_hint):
            self._requeue_within(signature, capacity, now)

    def requeue_next(self, entity: QueuedEntity, capacity: Capacity, now: float) -> None:
        """A woken root failed; the next one that wants the same may be luckier."""
        for want in entity.hints.capacity:
            self._requeue_within(want.signature, capacity, now, at_most=1)

    def _requeue_within(self, signature: Signature, capacity: Capacity, now: float, at_most: int | None = None) -> None:
        untried = [entity for entity in self._by_capacity_hint.get(signature, {}).values() if entity.epoch < self.epoch]
        if not untried:
            return
        largest, total = capacity(_want(untried[0], signature))
        fitting = [entity for entity in untried if _want(entity, signature).seats <= largest]
        fitting.sort(key=lambda entity: entity.sort_key)
        for entity in fitting[:at_most]:
            if total <= 0:
                break
            total -= _want(entity, signature).seats
            entity.epoch = self.epoch
            self.requeue(entity, now)

    def requeue_for_events(self, culprits: Iterable[str], now: float) -> None:
        """A change of another sort happened: wake the roots whose failure it could cure."""
        for culprit in culprits:
            for entity in list(self._by_plugin.get(culprit, {}).values()):
                self.requeue(entity, now)


def _want(entity: QueuedEntity, signature: Signature) -> CapacityHint:
    return next(want for want in entity.hints.capacity if want.signature == signature)
