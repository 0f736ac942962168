"""Metrics that are read from the scheduler when someone scrapes: queues and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from muster.scheduler.cycle.view import SchedulerView
from muster.scheduler.queue.entity import EntityState

# The value of the label `queue` for each state of a queue entry.
QUEUES = {
    EntityState.ACTIVE: "active",
    EntityState.BACKOFF: "backoff",
    EntityState.UNSCHEDULABLE: "unschedulable",
    EntityState.INCOMPLETE: "incomplete",
    EntityState.BINDING: "pending",
    EntityState.PREEMPTING: "pending",
}


class SchedulerCollector(Collector):
    """Reads a scheduler's view, if it has one, and the number of API calls that have not ended."""

    def __init__(self, view: Callable[[], SchedulerView] | None, pending_calls: Callable[[], int]) -> None:
        self._view = view
        self._pending_calls = pending_calls

    def collect(self) -> Iterator[Metric]:
        calls = GaugeMetricFamily("scheduler_pending_async_api_calls", "API calls that have not ended.")
        calls.add_metric([], self._pending_calls())
        yield calls
        if self._view is None:
            return
        view = self._view()
        yield from self._queues(view)
        sizes = GaugeMetricFamily("scheduler_cache_size", "Objects the scheduler knows.", labels=["type"])
        for type_, count in view.cache_sizes()._asdict().items():
            sizes.add_metric([type_], count)
        yield sizes
        yield GaugeMetricFamily(
            "scheduler_held_seats", "Seats held for expected members.", value=len(view.held_seats())
        )
        seats = GaugeMetricFamily("scheduler_reserved_seats", "Seats kept for groups that wait.", labels=["profile"])
        count = GaugeMetricFamily("scheduler_reservations", "Groups that room is kept for.", labels=["profile"])
        held: dict[str, list[int]] = {}
        for reservation in view.reservations():
            held.setdefault(reservation.scheduler, []).append(len(reservation.seats))
        for profile, found in sorted(held.items()):
            count.add_metric([profile], len(found))
            seats.add_metric([profile], sum(found))
        yield count
        yield seats

    def _queues(self, view: SchedulerView) -> Iterator[Metric]:
        pods: Counter[str] = Counter()
        entities: Counter[tuple[str, str]] = Counter()
        rejected: Counter[str] = Counter()
        for entry in view.queue_entries():
            queue = QUEUES[entry.state]
            if queue == "incomplete" and entry.gated:
                queue = "gated"
            pods[queue] += entry.pods
            entities[queue, entry.type] += 1
            for plugin in entry.rejected_by:
                rejected[plugin] += entry.pods
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait, by queue.", labels=["queue"])
        for queue in ("active", "backoff", "unschedulable", "gated", "incomplete", "pending"):
            pending.add_metric([queue], pods[queue])
        yield pending
        queued = GaugeMetricFamily("scheduler_queued_entities", "Pods and groups in line.", labels=["queue", "type"])
        for labels, count in sorted(entities.items()):
            queued.add_metric(list(labels), count)
        yield queued
        plugins = GaugeMetricFamily(
            "scheduler_unschedulable_pods", "Unschedulable pods by the plugins that rejected them.", labels=["plugin"]
        )
        for plugin, count in sorted(rejected.items()):
            plugins.add_metric([plugin], count)
        yield plugins
