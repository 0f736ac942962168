"""What the Health page shows over time: samples of the board, and counts of what happened.

Samples are taken at fixed distances and thinned out when there are too many, so a long-running dashboard keeps its
whole past at a lower resolution. How long a gang took from complete to bound is read from the objects themselves: from
the creation of its last pod to the transition of its Scheduled condition, in whole seconds.
"""

from __future__ import annotations

from collections import Counter, deque
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from muster.scheduler.interface.events import Event, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.views.topology import GPU, default_pod

if TYPE_CHECKING:
    from muster.dashboard.board import Board
    from muster.scheduler.cycle.view import SchedulerView

SAMPLE_SECONDS = 5.0
MOST_SAMPLES = 720
MOST_EVICTIONS = 200
BOUNDS = (1, 2, 5, 10, 30, 60, 300, 1800)
SCHEDULED = ("PodGroupScheduled", "PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled")
DISRUPTION_TARGET = "DisruptionTarget"


class Sample(msgspec.Struct, frozen=True, rename="camel"):
    """The board at one time. Shares are between 0 and 1; a resource that no node has is left out."""

    at: float  # seconds since 1970
    waiting: int
    pending_pods: int
    pods: int
    used: dict[str, float]
    fragmented: float  # of what is free, the share that no whole pod of the default size can use


class Eviction(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that was chosen to leave."""

    at: str
    namespace: str
    pod: str
    node: str
    reason: str
    message: str


class History:
    """Samples and counts of one cluster."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.evictions: deque[Eviction] = deque(maxlen=MOST_EVICTIONS)
        self.evicted = 0
        self.verdicts: Counter[str] = Counter()  # conditions of groups, by reason, each time one changed
        self.waits: list[int] = [0] * (len(BOUNDS) + 1)  # gangs by seconds from complete to bound
        self._distance = SAMPLE_SECONDS
        self._conditions: dict[tuple[str, str], tuple[str, str]] = {}
        self._evicted: set[str] = set()
        self._bound: set[str] = set()

    def due(self, now: float) -> bool:
        """Whether it is time for another sample."""
        return not self.samples or now - self.samples[-1].at >= self._distance

    def sample(self, board: Board, now: float) -> None:
        """Keep the present state of the board."""
        view = board.scheduler.view()
        pending = sum(entry.pods for entry in view.queue_entries())
        used = _used(view)
        sample = Sample(now, board.waiting, pending, sum(board.pods_on_nodes.values()), used, fragmentation(view))
        self.samples.append(sample)
        if len(self.samples) > MOST_SAMPLES:
            self.samples = self.samples[::2]
            self._distance *= 2

    def observe(self, event: Event, board: Board) -> None:
        """Count what an event says, after the board took it in."""
        if not isinstance(event, ObjectUpdated):
            return
        if event.kind == "Pod":
            self._pod(event.object)
        elif event.kind in ("PodGroup", "CompositePodGroup"):
            self._group(event.object, board)

    def _pod(self, pod: Any) -> None:
        uid = pod.metadata.uid
        for condition in pod.status.conditions or ():
            if condition.type == DISRUPTION_TARGET and condition.status == "True" and uid not in self._evicted:
                self._evicted.add(uid)
                self.evicted += 1
                meta = pod.metadata
                at = condition.last_transition_time or ""
                found = (meta.namespace, meta.name, pod.spec.node_name, condition.reason, condition.message)
                self.evictions.append(Eviction(at, *found))

    def _group(self, group: Any, board: Board) -> None:
        uid = group.metadata.uid
        for condition in group.status.conditions or ():
            if condition.type not in SCHEDULED:
                continue
            value = (condition.status, condition.reason)
            if self._conditions.get((uid, condition.type)) != value:
                self._conditions[uid, condition.type] = value
                self.verdicts[condition.reason] += 1
            if condition.status == "True" and uid not in self._bound:
                self._bound.add(uid)
                self._count_wait(group, condition.last_transition_time, board)

    def _count_wait(self, group: Any, bound_at: str | None, board: Board) -> None:
        meta = group.metadata
        found = board.scheduler.view().groups.get(EntityKey(group.kind, meta.namespace, meta.name))
        if found is None or found.root() is not found or not bound_at:
            return
        members = [m.pod.metadata.creation_timestamp or "" for leaf in found.leaves() for m in leaf.running.values()]
        complete = max((meta.creation_timestamp or "", *members))
        seconds = seconds_of(bound_at) - seconds_of(complete)
        self.waits[next((i for i, bound in enumerate(BOUNDS) if seconds < bound), len(BOUNDS))] += 1


def seconds_of(text: str) -> float:
    """A time of the API as seconds since 1970; 0 for what is no time."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _used(view: SchedulerView) -> dict[str, float]:
    used: dict[str, float] = {}
    for name in ("cpu", "memory", GPU):
        total, requested = view.allocatable(name), view.requested(name)
        if total is not None and requested is not None and int(total.sum()):
            used[name] = round(float(requested.sum()) / float(total.sum()), 4)
    return used


def fragmentation(view: SchedulerView) -> float:
    """Of the free devices (or CPUs), the share that no pod of the default size can use."""
    if not view.has_nodes:
        return 0.0
    pod = default_pod(view)
    (resource, amount), *_ = pod.items()
    total, requested = view.allocatable(resource), view.requested(resource)
    if total is None or requested is None:
        return 0.0
    free = float((total - requested).clip(min=0).sum())
    size = float(amount) * (1000 if resource == "cpu" else 1)
    usable = float(view.seats(pod).sum()) * size
    return round(max(0.0, 1.0 - usable / free), 4) if free else 0.0
