"""A queued entity and the hints that say which change can end its wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey

WAITING, ACTIVE, BACKOFF, PARKED, BINDING, PREEMPTING = (
    "waiting",
    "active",
    "backoff",
    "parked",
    "binding",
    "preempting",
)


SortKey = tuple[int, int, str, str]


Signature = tuple[int, str | None, bool]


class CapacityHint(NamedTuple):
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
class RequeueHints:
    """Why a root is parked, in the terms in which changes are judged."""

    capacity: tuple[CapacityHint, ...] = ()
    rejected_by: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class QueuedEntity:
    """One entity of the queue."""

    key: EntityKey
    group: Group | None = None
    member: Member | None = None
    state: str = WAITING
    priority: int = 0
    created: str = ""
    uid: str = ""
    partly_bound: bool = False  # bound below its minimum: goes before everything else
    attempts: int = 0
    failures: int = 0  # consecutive, for the backoff
    recent_failures: tuple[float, ...] = ()  # times of the last failures
    backoff_until: float = 0.0  # end of the backoff
    due: float = 0.0  # when a timer brings it back
    hints: RequeueHints = field(default_factory=RequeueHints)
    epoch: int = 0  # the latest change of the cluster that this root was tried after
    ticket: int = 0  # invalidates older heap entries
    since: float = 0.0  # waiting in the queue since
    in_flight: set[str] = field(default_factory=set[str])  # uids whose bind is under way
    retry_budget: bool = False  # the next attempt may search ten times as long
    verdict: str = ""  # the last outcome in one word, for those who look
    message: str = ""

    @property
    def sort_key(self) -> SortKey:
        return (0 if self.partly_bound else 1, -self.priority, self.created, self.uid)
