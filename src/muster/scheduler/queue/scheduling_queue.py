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


FLURRY = 3  # so many failures


FLURRY_SECONDS = 1.0  # within so short a time, and the backoff is served


_K = TypeVar("_K")


Capacity = Callable[[CapacityHint], tuple[int, int]]  # (most seats in one domain, seats in all)


class SchedulingQueue:
    """Active, backoff, parked."""

    def __init__(self, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.roots: dict[EntityKey, QueuedEntity] = {}
        self.epoch = 0
        self._active: list[tuple[SortKey, int, QueuedEntity]] = []
        self._timers: list[tuple[float, SortKey, int, QueuedEntity]] = []
        self._parked: dict[Signature, dict[EntityKey, QueuedEntity]] = {}
        self._by_culprit: dict[str, dict[EntityKey, QueuedEntity]] = {}
        self._tickets = 0

    # --- coming and going --------------------------------------------------------------------------

    def add(self, root: QueuedEntity, now: float) -> QueuedEntity:
        root.since = now
        self.roots[root.key] = root
        return root

    def drop(self, key: EntityKey) -> QueuedEntity | None:
        root = self.roots.pop(key, None)
        if root is not None:
            self._leave(root)
            root.state = WAITING
        return root

    def _leave(self, root: QueuedEntity) -> None:
        root.ticket = 0
        if root.state == PARKED:
            for want in root.lack.wants:
                self._discard(self._parked, want.signature, root)
            for culprit in root.lack.culprits:
                self._discard(self._by_culprit, culprit, root)

    @staticmethod
    def _discard(index: dict[_K, dict[EntityKey, QueuedEntity]], key: _K, root: QueuedEntity) -> None:
        bucket = index.get(key)
        if bucket is not None:
            bucket.pop(root.key, None)
            if not bucket:
                del index[key]

    def _stamp(self, root: QueuedEntity) -> int:
        self._tickets += 1
        root.ticket = self._tickets
        return root.ticket

    # --- moving ------------------------------------------------------------------------------------

    def set_aside(self, root: QueuedEntity, state: str) -> None:
        """Out of the line without a timer: waiting for objects, for binds, for victims."""
        self._leave(root)
        root.state = state

    def activate(self, root: QueuedEntity) -> None:
        """Into the line now."""
        self._leave(root)
        root.state = ACTIVE
        heapq.heappush(self._active, (root.sort_key, self._stamp(root), root))

    def wake(self, root: QueuedEntity, now: float) -> None:
        """Back into the line because something changed; after a flurry of failures the backoff comes first."""
        flurry = len(root.recent) == FLURRY and now - root.recent[0] < FLURRY_SECONDS
        if flurry and now < root.ready_at:
            self._leave(root)
            root.state = BACKOFF
            self._set_timer(root, root.ready_at)
        else:
            self.activate(root)

    def park(self, root: QueuedEntity, lack: RequeueHints, now: float) -> None:
        """A failed root waits for a change that could help it, with a timer as the fallback."""
        self._leave(root)
        root.failures += 1
        root.recent = (*root.recent, now)[-FLURRY:]
        root.ready_at = now + min(self.max_backoff, self.initial_backoff * 2 ** min(root.failures - 1, 20))
        root.lack = lack
        root.epoch = self.epoch
        root.state = PARKED
        for want in lack.wants:
            self._parked.setdefault(want.signature, {})[root.key] = root
        for culprit in lack.culprits:
            self._by_culprit.setdefault(culprit, {})[root.key] = root
        self._set_timer(root, max(root.ready_at, now + FALLBACK_SECONDS))

    def delay(self, root: QueuedEntity, now: float) -> None:
        """Back into the line, but not at once: someone else refused, and will not be faster for being asked again."""
        self._leave(root)
        root.state = BACKOFF
        self._set_timer(root, now + self.initial_backoff)

    def _set_timer(self, root: QueuedEntity, due: float) -> None:
        root.due = due
        heapq.heappush(self._timers, (due, root.sort_key, self._stamp(root), root))

    def settle(self, root: QueuedEntity) -> None:
        """An attempt succeeded: forget its failures."""
        root.failures = 0
        root.recent = ()

    # --- taking ------------------------------------------------------------------------------------

    def peek(self) -> QueuedEntity | None:
        """The next root in line."""
        while self._active:
            _, ticket, root = self._active[0]
            if root.ticket == ticket and root.state == ACTIVE:
                return root
            heapq.heappop(self._active)
        return None

    def pop(self) -> QueuedEntity | None:
        root = self.peek()
        if root is not None:
            heapq.heappop(self._active)
            root.ticket = 0
            root.attempts += 1
        return root

    def in_order(self) -> list[QueuedEntity]:
        """Every root, as a person would list the queue."""
        return sorted(self.roots.values(), key=lambda root: root.sort_key)

    # --- time --------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Bring back the roots whose time has come."""
        while self._timers and self._timers[0][0] <= now:
            _, _, ticket, root = heapq.heappop(self._timers)
            if root.ticket == ticket:
                self.activate(root)

    def next_due(self) -> float | None:
        """When the next timer runs out."""
        while self._timers:
            due, _, ticket, root = self._timers[0]
            if root.ticket == ticket:
                return due
            heapq.heappop(self._timers)
        return None

    # --- waking ------------------------------------------------------------------------------------

    def room_appeared(self, capacity: Capacity, now: float) -> None:
        """Nodes gained room: wake, shape by shape, as many roots as that room could serve."""
        self.epoch += 1
        for signature in list(self._parked):
            self._wake_within(signature, capacity, now)

    def pass_on(self, root: QueuedEntity, capacity: Capacity, now: float) -> None:
        """A woken root failed; the next one that wants the same may be luckier."""
        for want in root.lack.wants:
            self._wake_within(want.signature, capacity, now, at_most=1)

    def _wake_within(self, signature: Signature, capacity: Capacity, now: float, at_most: int | None = None) -> None:
        untried = [root for root in self._parked.get(signature, {}).values() if root.epoch < self.epoch]
        if not untried:
            return
        largest, total = capacity(_want(untried[0], signature))
        fitting = [root for root in untried if _want(root, signature).seats <= largest]
        fitting.sort(key=lambda root: root.sort_key)
        for root in fitting[:at_most]:
            if total <= 0:
                break
            total -= _want(root, signature).seats
            root.epoch = self.epoch
            self.wake(root, now)

    def cured(self, culprits: Iterable[str], now: float) -> None:
        """A change of another sort happened: wake the roots whose failure it could cure."""
        for culprit in culprits:
            for root in list(self._by_culprit.get(culprit, {}).values()):
                self.wake(root, now)


def _want(root: QueuedEntity, signature: Signature) -> CapacityHint:
    return next(want for want in root.lack.wants if want.signature == signature)
