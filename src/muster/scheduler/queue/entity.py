"""A queued entity, its states, and the hints which name the changes that can end its wait.

An entity is a single pod or a tree of groups. All moves between states are methods of the `SchedulingQueue`:

    new ─1─▶ INCOMPLETE ─3─▶ ACTIVE ─7─▶ BINDING ─10─▶ removed        BINDING ─9─▶ ACTIVE, or BACKOFF
    new ─2─────────────────▶ ACTIVE ─8─▶ PREEMPTING ─13─▶ ACTIVE
                             ACTIVE ─6─▶ UNSCHEDULABLE ─4─▶ ACTIVE
                                         UNSCHEDULABLE ─11─▶ BACKOFF ─12─▶ ACTIVE
    any, without binds in flight ─5─▶ INCOMPLETE        any ─10─▶ removed        any ─14─▶ BINDING

9 leads to BACKOFF after a refused bind, and a backoff that is not over (`state.bind_failures`) is served by 3 and 4 as
well. 14 happens when a tree takes in a group whose binds are in flight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey


class EntityState(Enum):
    """The state of a queued entity."""

    INCOMPLETE = "incomplete"  # pods, groups or the end of a scheduling gate are missing
    ACTIVE = "active"  # in line for its scheduling cycle
    BACKOFF = "backoff"  # in line when its timer runs out
    UNSCHEDULABLE = "unschedulable"  # waits for a change named in its hints; a timer is the fallback
    BINDING = "binding"  # binds are in flight
    PREEMPTING = "preempting"  # victims are leaving


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
Signature = tuple[int, str | None, bool]


class CapacityHint(NamedTuple):
    """Room that an unschedulable entity lacked: seats of one shape, inside one domain of a topology key if it has one.

    A weak hint (several shapes or groups failed together) only asks whether the nodes that changed have a seat for
    the shape at all.
    """

    shape: Shape
    seats: int
    topology: str | None = None
    weak: bool = False

    @property
    def signature(self) -> Signature:
        return (self.shape.id, self.topology, self.weak)


@dataclass(frozen=True, slots=True)
class RequeueHints:
    """Which changes could make an unschedulable entity schedulable."""

    capacity: tuple[CapacityHint, ...] = ()
    rejected_by: frozenset[str] = frozenset()  # plugins


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
    due: float = 0.0  # when a timer brings it back
    hints: RequeueHints = field(default_factory=RequeueHints)
    epoch: int = 0  # the latest change of the cluster that this entity was tried after
    ticket: int = 0  # its valid entry in a heap; 0 for none
    since: float = 0.0  # when it was queued
    verdict: str = ""  # the reason of the last outcome
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

    def set_outcome(self, verdict: str, message: str) -> None:
        """What became of the last attempt, or what the entity waits for."""
        self.verdict, self.message = verdict, message
