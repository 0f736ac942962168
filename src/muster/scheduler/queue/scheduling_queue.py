"""The scheduling queue: which entity is next, and which waits for what.

The order is a pure function of stored facts (priority, creation time, uid), so a restart gives the same one; entities
that are bound below their minimum go first. An entity that failed joins the waiting class of those that ask for the
same; who is requeued after a change is decided by `cycle.wake_up`, class by class. Backoffs are timers. One
more timer is the fallback for all that wait: every class is then checked once, whatever was signalled.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import TRANSITIONS, EntityState, QueuedEntity, RequeueHints, SortKey
from muster.scheduler.queue.waiting_classes import WaitingClass, WaitingClasses

FALLBACK_SECONDS = 60.0
UNDECIDED_SECONDS = 60.0  # the longest time between a change and the next attempt of what is undecided
BURST = 3  # so many failures
BURST_SECONDS = 1.0  # within so short a time, and the backoff is served

_WAITING = (EntityState.UNSCHEDULABLE, EntityState.PREEMPTING)


class SchedulingQueue:
    """All queued entities by key, a heap of the active ones, timers, and the classes of those that wait."""

    def __init__(self, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.entities: dict[EntityKey, QueuedEntity] = {}
        self.waiting = WaitingClasses()  # changed by the methods below, apart from stamps
        self._active: list[tuple[SortKey, int, QueuedEntity]] = []
        self._timers: list[tuple[float, SortKey, int, QueuedEntity]] = []
        self._woken: dict[EntityKey, QueuedEntity] = {}  # in line because a change could help them
        self._fallback_due: float | None = None  # None while nothing waits
        self._unchecked: list[Hashable] = []  # classes that the fallback has not looked at yet, last one first
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
        """A failed entity waits for a change that could help it. Others of its class need not be tried before that."""
        self._move(entity, EntityState.UNSCHEDULABLE)
        entity.failures += 1
        entity.recent_failures = (*entity.recent_failures, now)[-BURST:]
        entity.backoff_until = now + min(self.max_backoff, self._delay(entity))
        entity.hints = hints
        self._wait(entity, now)
        for other in [woken for woken in self._woken.values() if woken.hints.key == hints.key]:
            self._move(other, EntityState.UNSCHEDULABLE)
            self._wait(other, now)

    def retry_at(self, entity: QueuedEntity) -> float:
        """When an undecided entity may be tried again for any change at all."""
        return entity.recent_failures[-1] + min(UNDECIDED_SECONDS, self._delay(entity))

    def _delay(self, entity: QueuedEntity) -> float:
        return self.initial_backoff * 2 ** min(max(entity.failures, 1) - 1, 20)

    def await_room(self, entity: QueuedEntity, hints: RequeueHints, now: float) -> None:
        """An entity whose victims are leaving is tried again when it may do without them."""
        assert entity.state is EntityState.PREEMPTING, f"{entity.key} is {entity.state.name}"
        self.waiting.discard(entity)
        entity.hints = hints
        self._wait(entity, now)

    def _wait(self, entity: QueuedEntity, now: float) -> None:
        self.waiting.add(entity)
        if self._fallback_due is None:
            self._fallback_due = now + FALLBACK_SECONDS

    def wake(self, entity: QueuedEntity, now: float, *, by_timer: bool = False) -> None:
        """In line because a change could help it, or because the fallback timer found that it might fit."""
        if entity.state is EntityState.PREEMPTING:
            self.activate(entity)
        else:
            self.requeue(entity, now)
        if entity.state is EntityState.ACTIVE:
            self._woken[entity.key] = entity
            entity.woken, entity.by_timer = True, by_timer

    @property
    def has_woken(self) -> bool:
        """Whether an entity that was woken has not had its cycle yet."""
        return bool(self._woken)

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
        self._woken.pop(entity.key, None)
        entity.woken = entity.by_timer = False
        if entity.state in _WAITING:
            self.waiting.discard(entity)

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
            self._woken.pop(entity.key, None)
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
        fallback = self._fallback_due if len(self.waiting) else None
        while self._timers:
            due, _, ticket, entity = self._timers[0]
            if entity.ticket == ticket:
                return due if fallback is None else min(due, fallback)
            heapq.heappop(self._timers)
        return fallback

    def start_fallback(self, now: float) -> None:
        """If the fallback timer has run out, all waiting classes are to be checked; it starts again while any wait."""
        if self._fallback_due is not None and self._fallback_due <= now:
            self._fallback_due = now + FALLBACK_SECONDS if len(self.waiting) else None
            self._unchecked = list(reversed(self.waiting.keys()))

    @property
    def has_unchecked(self) -> bool:
        """Whether the fallback has classes left to look at."""
        return bool(self._unchecked)

    def next_unchecked(self) -> WaitingClass | None:
        """The next class that the fallback looks at, in the order in which they began to wait."""
        while self._unchecked:
            waiting = self.waiting.get(self._unchecked.pop())
            if waiting is not None:
                return waiting
        return None

    # --- checks ------------------------------------------------------------------------------------

    def check(self) -> None:
        """An entity is BINDING exactly while binds are in flight; one that waits for a change is in its class."""
        for entity in self.entities.values():
            binding = entity.state is EntityState.BINDING
            assert binding == bool(entity.binds_in_flight), f"{entity.key} is {entity.state.name}"
            if entity.state is EntityState.BACKOFF:
                assert entity.ticket, f"{entity.key} is in backoff and has no timer"
            assert (entity in self.waiting) == (entity.state in _WAITING), f"{entity.key} is {entity.state.name}"
        assert not len(self.waiting) or self._fallback_due is not None, "nothing checks what waits"
        assert self._woken.keys() <= {key for key, one in self.entities.items() if one.state is EntityState.ACTIVE}
