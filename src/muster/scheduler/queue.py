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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from muster.scheduler.planning.demand import GroupKey

if TYPE_CHECKING:
    from muster.scheduler.groups import Group, Member
    from muster.scheduler.shapes import Shape

WAITING, ACTIVE, BACKOFF, PARKED, BINDING, PREEMPTING = (
    "waiting",
    "active",
    "backoff",
    "parked",
    "binding",
    "preempting",
)

FALLBACK_SECONDS = 60.0
FLURRY = 3  # so many failures
FLURRY_SECONDS = 1.0  # within so short a time, and the backoff is served

SortKey = tuple[int, int, str, str]
Signature = tuple[int, str | None, bool]
_K = TypeVar("_K")


class Want(NamedTuple):
    """Room that a parked root lacked: so many seats of one shape, inside one domain of a key if it has one.

    A weak want is only a hint (several shapes or groups failed together): it asks whether the nodes that
    changed have a seat for the shape at all.
    """

    shape: Shape
    seats: int
    topology: str | None = None
    weak: bool = False

    @property
    def signature(self) -> Signature:
        return (self.shape.id, self.topology, self.weak)


@dataclass(slots=True)
class Lack:
    """Why a root is parked, in the terms in which changes are judged."""

    wants: tuple[Want, ...] = ()
    culprits: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Root:
    """One entity of the queue."""

    key: GroupKey
    group: Group | None = None
    member: Member | None = None
    state: str = WAITING
    priority: int = 0
    created: str = ""
    uid: str = ""
    broken: bool = False  # bound below its minimum: goes before everything else
    attempts: int = 0
    failures: int = 0  # consecutive, for the backoff
    recent: tuple[float, ...] = ()  # times of the last failures
    ready_at: float = 0.0  # end of the backoff
    due: float = 0.0  # when a timer brings it back
    lack: Lack = field(default_factory=Lack)
    epoch: int = 0  # the latest change of the cluster that this root was tried after
    ticket: int = 0  # invalidates older heap entries
    since: float = 0.0  # waiting in the queue since
    in_flight: set[str] = field(default_factory=set[str])  # uids whose bind is under way
    retry_budget: bool = False  # the next attempt may search ten times as long
    verdict: str = ""  # the last outcome in one word, for those who look
    message: str = ""

    @property
    def sort_key(self) -> SortKey:
        return (0 if self.broken else 1, -self.priority, self.created, self.uid)


Capacity = Callable[[Want], tuple[int, int]]  # (most seats in one domain, seats in all)


class Queue:
    """Active, backoff, parked."""

    def __init__(self, initial_backoff: float = 1.0, max_backoff: float = 10.0) -> None:
        self.initial_backoff = initial_backoff
        self.max_backoff = max_backoff
        self.roots: dict[GroupKey, Root] = {}
        self.epoch = 0
        self._active: list[tuple[SortKey, int, Root]] = []
        self._timers: list[tuple[float, SortKey, int, Root]] = []
        self._parked: dict[Signature, dict[GroupKey, Root]] = {}
        self._by_culprit: dict[str, dict[GroupKey, Root]] = {}
        self._tickets = 0

    # --- coming and going --------------------------------------------------------------------------

    def add(self, root: Root, now: float) -> Root:
        root.since = now
        self.roots[root.key] = root
        return root

    def drop(self, key: GroupKey) -> Root | None:
        root = self.roots.pop(key, None)
        if root is not None:
            self._leave(root)
            root.state = WAITING
        return root

    def _leave(self, root: Root) -> None:
        root.ticket = 0
        if root.state == PARKED:
            for want in root.lack.wants:
                self._discard(self._parked, want.signature, root)
            for culprit in root.lack.culprits:
                self._discard(self._by_culprit, culprit, root)

    @staticmethod
    def _discard(index: dict[_K, dict[GroupKey, Root]], key: _K, root: Root) -> None:
        bucket = index.get(key)
        if bucket is not None:
            bucket.pop(root.key, None)
            if not bucket:
                del index[key]

    def _stamp(self, root: Root) -> int:
        self._tickets += 1
        root.ticket = self._tickets
        return root.ticket

    # --- moving ------------------------------------------------------------------------------------

    def set_aside(self, root: Root, state: str) -> None:
        """Out of the line without a timer: waiting for objects, for binds, for victims."""
        self._leave(root)
        root.state = state

    def activate(self, root: Root) -> None:
        """Into the line now."""
        self._leave(root)
        root.state = ACTIVE
        heapq.heappush(self._active, (root.sort_key, self._stamp(root), root))

    def wake(self, root: Root, now: float) -> None:
        """Back into the line because something changed; after a flurry of failures the backoff comes first."""
        flurry = len(root.recent) == FLURRY and now - root.recent[0] < FLURRY_SECONDS
        if flurry and now < root.ready_at:
            self._leave(root)
            root.state = BACKOFF
            self._set_timer(root, root.ready_at)
        else:
            self.activate(root)

    def park(self, root: Root, lack: Lack, now: float) -> None:
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

    def delay(self, root: Root, now: float) -> None:
        """Back into the line, but not at once: someone else refused, and will not be faster for being asked again."""
        self._leave(root)
        root.state = BACKOFF
        self._set_timer(root, now + self.initial_backoff)

    def _set_timer(self, root: Root, due: float) -> None:
        root.due = due
        heapq.heappush(self._timers, (due, root.sort_key, self._stamp(root), root))

    def settle(self, root: Root) -> None:
        """An attempt succeeded: forget its failures."""
        root.failures = 0
        root.recent = ()

    # --- taking ------------------------------------------------------------------------------------

    def peek(self) -> Root | None:
        """The next root in line."""
        while self._active:
            _, ticket, root = self._active[0]
            if root.ticket == ticket and root.state == ACTIVE:
                return root
            heapq.heappop(self._active)
        return None

    def pop(self) -> Root | None:
        root = self.peek()
        if root is not None:
            heapq.heappop(self._active)
            root.ticket = 0
            root.attempts += 1
        return root

    def in_order(self) -> list[Root]:
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

    def pass_on(self, root: Root, capacity: Capacity, now: float) -> None:
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


def _want(root: Root, signature: Signature) -> Want:
    return next(want for want in root.lack.wants if want.signature == signature)
