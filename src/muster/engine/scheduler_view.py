"""What the engine asks of a scheduler, and what its metrics read of one.

This is the only module of the engine that looks into a `Brain`. Everything metrics need goes through `SchedulerView`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from muster.scheduler.cycle import Brain
from muster.scheduler.decisions import Decision
from muster.scheduler.events import Event
from muster.scheduler.preemption.round import Round
from muster.scheduler.queue import Root
from muster.scheduler.world import Judged


class SchedulerProtocol(Protocol):
    """What the engine asks of a scheduler: take an event, run a scheduling cycle, say when the next one is due."""

    def handle(self, event: Event, now: float) -> None: ...

    def next(self, now: float) -> list[Decision]: ...

    def wake_at(self, now: float) -> float | None: ...


class QueueEntry(NamedTuple):
    """A pod or a tree of groups in the scheduling queue."""

    state: str
    type: str  # pod or podgroup
    pods: int  # pending pods
    gated: bool
    rejected_by: tuple[str, ...]  # the plugins of an unschedulable entry


class CacheSizes(NamedTuple):
    """How many objects the scheduler's cache holds."""

    nodes: int
    pods: int
    assumed_pods: int


class SchedulerView(Protocol):
    """What metrics read of a scheduler."""

    def queue_entries(self) -> Iterable[QueueEntry]: ...

    def cache_sizes(self) -> CacheSizes: ...

    def take_preemption_attempts(self) -> list[Round]:
        """The preemptions that were considered since the last call."""
        ...

    def take_domains_evaluated(self) -> list[Judged]:
        """The topology domains that were evaluated since the last call."""
        ...


def view_of(scheduler: SchedulerProtocol) -> SchedulerView | None:
    """The view of Muster's own scheduler; None of any other."""
    return _BrainView(scheduler) if isinstance(scheduler, Brain) else None


class _BrainView:
    def __init__(self, scheduler: Brain) -> None:
        self._scheduler = scheduler

    def queue_entries(self) -> Iterator[QueueEntry]:
        for root in self._scheduler.world.queue.roots.values():
            group = root.group
            rejected_by = tuple(str(culprit) for culprit in root.lack.culprits) if root.state == "parked" else ()
            type_, pods = ("pod", 1) if group is None else ("podgroup", group.pending_below)
            yield QueueEntry(root.state, type_, pods, _is_gated(root), rejected_by)

    def cache_sizes(self) -> CacheSizes:
        world = self._scheduler.world
        assumed = sum(len(root.in_flight) for root in world.queue.roots.values())
        return CacheSizes(len(world.cluster.index), len(world.cluster.pods), assumed)

    def take_preemption_attempts(self) -> list[Round]:
        return self._scheduler.take_rounds()

    def take_domains_evaluated(self) -> list[Judged]:
        return self._scheduler.take_judged()


def _is_gated(root: Root) -> bool:
    return bool(root.group.gated if root.group is not None else root.member is not None and root.member.gated)
