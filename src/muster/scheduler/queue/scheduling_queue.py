"""The scheduling queue: which entity is next, which waits for what, and which change requeues which.

The order is a pure function of stored facts (priority, creation time, uid), so a restart gives the same one; entities
that are bound below their minimum go first. An entity that failed is listed under the shapes it lacked room for and
the plugins that rejected it. When nodes gain room each shape is counted once, and only as many entities are requeued
as the counted room could serve; a requeued entity that fails lets the next one try. Timers are the fallback.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import (
    TRANSITIONS,
    CapacityHint,
    EntityState,
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
    """All queued entities by key, a heap of the active ones, timers, and indexes of the unschedulable ones."""

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

    # --- adding and removing -----------------------------------------------------------------------

    def add(self, entity: QueuedEntity, now: float) -> QueuedEntity:
        """Queue a new entity; it is incomplete until it is moved."""
        entity.since = now
        self.entities[entity.key] = entity
        return entity

    def remove(self, key: EntityKey) -> QueuedEntity | None:
        entity = self.entities.pop(key, None)
        if entity is not None:
            self._leave(entity)
            entity.state = EntityState.INCOMPLETE
        return entity

    # --- the state machine -------------------------------------------------------------------------

    def set_incomplete(self, entity: QueuedEntity) -> None:
        """Objects that the entity needs are missing, or one of its pods has a scheduling gate."""
        self._move(entity, EntityState.INCOMPLETE)

    def set_binding(self, entity: QueuedEntity) -> None:
        """Binds of the entity are in flight."""
        assert entity.binds_in_flight, f"{entity.key} has no binds in flight"
        self._move(entity, EntityState.BINDING)

    def set_preempting(self, entity: QueuedEntity) -> None:
        """Victims of the entity are leaving; free capacity is looked for by the preemption itself."""
        self._move(entity, EntityState.PREEMPTING)

    def activate(self, entity: QueuedEntity) -> None:
        """In line now."""
        self._move(entity, EntityState.ACTIVE)
        heapq.heappush(self._active, (entity.sort_key, self._new_ticket(entity), entity))

    def requeue(self, entity: QueuedEntity, now: float) -> None:
        """In line because something changed; after a burst of failures the backoff is served first."""
        recent = entity.recent_failures
        burst = len(recent) == BURST and now - recent[0] < BURST_SECONDS
        if burst and now < entity.backoff_until:
            self._move(entity, EntityState.BACKOFF)
            self._set_timer(entity, entity.backoff_until)
        else:
            self.activate(entity)

    def add_unschedulable(self, entity: QueuedEntity, hints: RequeueHints, now: float) -> None:
        """A failed entity waits for a change that could help it, with a timer as the fallback."""
        self._move(entity, EntityState.UNSCHEDULABLE)
        entity.failures += 1
        entity.recent_failures = (*entity.recent_failures, now)[-BURST:]
        delay = self.initial_backoff * 2 ** min(entity.failures - 1, 20)
        entity.backoff_until = now + min(self.max_backoff, delay)
        entity.hints = hints
        entity.epoch = self.epoch
        for hint in hints.capacity:
            self._by_capacity_hint.setdefault(hint.signature, {})[entity.key] = entity
        for plugin in hints.rejected_by:
            self._by_plugin.setdefault(plugin, {})[entity.key] = entity
        self._set_timer(entity, max(entity.backoff_until, now + FALLBACK_SECONDS))

    def retry(self, entity: QueuedEntity) -> None:
        """In line once the backoff of its last failure is over, whether anything changes or not."""
        self._move(entity, EntityState.BACKOFF)
        self._set_timer(entity, entity.backoff_until)

    def back_off(self, entity: QueuedEntity, until: float) -> None:
        """In line at this time: its binds failed, and trying at once would only fail again."""
        self._move(entity, EntityState.BACKOFF)
        self._set_timer(entity, until)

    def reset_backoff(self, entity: QueuedEntity) -> None:
        """An attempt succeeded: forget its failures."""
        entity.failures = 0
        entity.recent_failures = ()

    def _move(self, entity: QueuedEntity, to: EntityState) -> None:
        assert to in TRANSITIONS[entity.state], f"{entity.key} cannot go from {entity.state.name} to {to.name}"
        self._leave(entity)
        entity.state = to

    def _leave(self, entity: QueuedEntity) -> None:
        entity.ticket = 0
        if entity.state is EntityState.UNSCHEDULABLE:
            for hint in entity.hints.capacity:
                self._discard(self._by_capacity_hint, hint.signature, entity)
            for plugin in entity.hints.rejected_by:
                self._discard(self._by_plugin, plugin, entity)

    @staticmethod
    def _discard(index: dict[_K, dict[EntityKey, QueuedEntity]], key: _K, entity: QueuedEntity) -> None:
        listed = index.get(key)
        if listed is not None:
            listed.pop(entity.key, None)
            if not listed:
                del index[key]

    def _new_ticket(self, entity: QueuedEntity) -> int:
        self._last_ticket += 1
        entity.ticket = self._last_ticket
        return entity.ticket

    def _set_timer(self, entity: QueuedEntity, due: float) -> None:
        entity.due = due
        heapq.heappush(self._timers, (due, entity.sort_key, self._new_ticket(entity), entity))

    # --- taking ------------------------------------------------------------------------------------

    def peek(self) -> QueuedEntity | None:
        """The next entity in line."""
        while self._active:
            _, ticket, entity = self._active[0]
            if entity.ticket == ticket and entity.state is EntityState.ACTIVE:
                return entity
            heapq.heappop(self._active)
        return None

    def pop(self) -> QueuedEntity | None:
        """Take the next entity in line for its cycle; it stays ACTIVE until the cycle moves it."""
        entity = self.peek()
        if entity is not None:
            heapq.heappop(self._active)
            entity.ticket = 0
            entity.attempts += 1
        return entity

    def in_order(self) -> list[QueuedEntity]:
        """Every entity in the order of the line, whatever its state."""
        return sorted(self.entities.values(), key=lambda entity: entity.sort_key)

    # --- timers ------------------------------------------------------------------------------------

    def flush_timers(self, now: float) -> None:
        """Activate the entities whose timers have run out."""
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

    # --- requeueing --------------------------------------------------------------------------------

    def requeue_for_capacity(self, capacity: Capacity, now: float) -> None:
        """Nodes gained room: requeue, shape by shape, as many entities as that room could serve."""
        self.epoch += 1
        for signature in list(self._by_capacity_hint):
            self._requeue_within(signature, capacity, now)

    def requeue_next(self, entity: QueuedEntity, capacity: Capacity, now: float) -> None:
        """A requeued entity failed; the next one that lacks the same may fit."""
        for hint in entity.hints.capacity:
            self._requeue_within(hint.signature, capacity, now, at_most=1)

    def _requeue_within(self, signature: Signature, capacity: Capacity, now: float, at_most: int | None = None) -> None:
        listed = self._by_capacity_hint.get(signature, {})
        untried = [entity for entity in listed.values() if entity.epoch < self.epoch]
        if not untried:
            return
        largest, total = capacity(_hint_of(untried[0], signature))
        fitting = [entity for entity in untried if _hint_of(entity, signature).seats <= largest]
        fitting.sort(key=lambda entity: entity.sort_key)
        for entity in fitting[:at_most]:
            if total <= 0:
                break
            total -= _hint_of(entity, signature).seats
            entity.epoch = self.epoch
            self.requeue(entity, now)

    def requeue_for_events(self, plugins: Iterable[str], now: float) -> None:
        """What these plugins rejected may pass now."""
        for plugin in plugins:
            for entity in list(self._by_plugin.get(plugin, {}).values()):
                self.requeue(entity, now)

    # --- checks ------------------------------------------------------------------------------------

    def check(self) -> None:
        """An entity is BINDING exactly while binds are in flight; one that waits for a change has a timer."""
        for entity in self.entities.values():
            binding = entity.state is EntityState.BINDING
            assert binding == bool(entity.binds_in_flight), f"{entity.key} is {entity.state.name}"
            if entity.state in (EntityState.UNSCHEDULABLE, EntityState.BACKOFF):
                assert entity.ticket, f"{entity.key} is {entity.state.name} and has no timer"


def _hint_of(entity: QueuedEntity, signature: Signature) -> CapacityHint:
    return next(hint for hint in entity.hints.capacity if hint.signature == signature)
