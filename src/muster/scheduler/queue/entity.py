"""A queued entity, its states, and the hints which name the changes that can end its wait.

An entity is a single pod or a tree of groups. All moves between states are methods of the `SchedulingQueue`:

    new ─1─▶ INCOMPLETE ─3─▶ ACTIVE ─7─▶ BINDING ─10─▶ removed        BINDING ─9─▶ ACTIVE, or BACKOFF
    new ─2─────────────────▶ ACTIVE ─8─▶ PREEMPTING ─13─▶ ACTIVE
                             ACTIVE ─6─▶ UNSCHEDULABLE ─4─▶ ACTIVE
                                         UNSCHEDULABLE ─11─▶ BACKOFF ─12─▶ ACTIVE
    any, without binds in flight ─5─▶ INCOMPLETE        any ─10─▶ removed        any ─14─▶ BINDING

9 leads to BACKOFF after a refused bind, and a backoff that is not over (`state.bind_failures`) is served by 3 and 4 as
well. By 4 and 11 only an entity is woken whose verdict can have changed (`cycle.wake_up`), at once unless it
failed several times in a row; a fallback timer checks all that wait by counting and normally wakes nobody. 14 happens
when a tree takes in a group whose binds are in flight.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest


class EntityState(Enum):
    """The state of a queued entity."""

    INCOMPLETE = "incomplete"  # pods, groups or the end of a scheduling gate are missing
    ACTIVE = "active"  # in line for its scheduling cycle
    BACKOFF = "backoff"  # in line when its timer runs out
    UNSCHEDULABLE = "unschedulable"  # waits for a change named in its hints; a timer is the fallback
    BINDING = "binding"  # binds are in flight
    PREEMPTING = "preempting"  # victims are leaving

    __hash__ = object.__hash__  # there is one object of each, and every move looks states up


_ANY = frozenset(EntityState)
_S = EntityState
TRANSITIONS: dict[EntityState, frozenset[EntityState]] = {
    _S.INCOMPLETE: frozenset((_S.INCOMPLETE, _S.ACTIVE, _S.BACKOFF, _S.BINDING)),
    _S.ACTIVE: _ANY,
    _S.BACKOFF: frozenset((_S.BACKOFF, _S.ACTIVE, _S.INCOMPLETE, _S.BINDING)),
    _S.UNSCHEDULABLE: frozenset((_S.ACTIVE, _S.BACKOFF, _S.INCOMPLETE, _S.BINDING)),
    _S.BINDING: frozenset((_S.BINDING, _S.ACTIVE, _S.BACKOFF, _S.INCOMPLETE)),
    _S.PREEMPTING: frozenset((_S.PREEMPTING, _S.ACTIVE, _S.UNSCHEDULABLE, _S.INCOMPLETE, _S.BINDING)),
}

SortKey = tuple[int, int, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class RequeueHints:
    """Which changes could make an unschedulable entity schedulable, as its last attempt left it.

    Entities with equal keys ask for the same at the same priority: what one failed for, the others fail for.
    """

    key: Hashable = None
    request: GroupRequest | None = None  # what has to fit; None if only the entity's own objects can help
    requests: Ints | None = None  # of each shape, what one pod requests: [shape, resource row]
    least: Ints | None = None  # what the missing pods request together at least, per resource row
    priority: int = 0
    holder: EntityKey | None = None  # seats nominated for this entity count as free
    preempts: bool = False  # room that evictions could make counts as well
    proven: bool = True  # there is a proof that nothing fits; otherwise every gain of room could help
    undecided: bool = False  # a placement may exist, so that lost room can change the verdict as well
    plugins: frozenset[str] = frozenset()  # filters that concern its pods and name events that can end a rejection
    has_terms: bool = False  # where its pods fit depends on pods that their terms select
    rejected_by: frozenset[str] = frozenset()  # plugins
    stamp: int = 0  # of the latest change that the attempt knew of
    version: int = 0  # of the state that it was tried in


_NO_HINTS = RequeueHints()


@dataclass(slots=True, eq=False)
class QueuedEntity:
    """One entity of the queue. Only the queue changes its state, hints and timers."""

    key: EntityKey
    group: Group | None = None
    member: Member | None = None
    state: EntityState = EntityState.INCOMPLETE
    priority: int = 0
    created: str = ""
    uid: str = ""
    partly_bound: bool = False  # bound below its minimum: goes before everything else
    attempts: int = 0
    failures: int = 0  # consecutive, for the backoff
    recent_failures: tuple[float, ...] = ()  # times of the last ones
    backoff_until: float = 0.0
    due: float = 0.0  # when its backoff ends
    hints: RequeueHints = _NO_HINTS
    woken: bool = False  # in line because a change could help it
    by_timer: bool = False  # in line because the fallback timer found that it might fit
    ticket: int = 0  # its valid entry in a heap; 0 for none
    since: float = 0.0  # when it was queued
    reason: str = ""  # of the last outcome, as its condition says it
    message: str = ""

    @property
    def sort_key(self) -> SortKey:
        return (0 if self.partly_bound else 1, -self.priority, self.created, self.uid)

    @property
    def binds_in_flight(self) -> int:
        """Binds of its pods that the API has not answered yet."""
        if self.group is not None:
            return self.group.in_flight
        return int(self.member is not None and self.member.in_flight)

    def set_outcome(self, reason: str, message: str) -> None:
        """What became of the last attempt, or what the entity waits for."""
        self.reason, self.message = reason, message
