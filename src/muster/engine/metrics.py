"""What dashboards made for kube-scheduler expect to find, measured here: same names, labels and buckets.

Everything is derived from what passes through the engine (events in, decisions out) or read from the brain
when someone scrapes; the brain counts a little, but knows no clock. Each engine has a registry of its own.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from muster.api.groups import COMPOSITE_INITIALLY_SCHEDULED, DISRUPTION_TARGET, POD_GROUP_INITIALLY_SCHEDULED
from muster.scheduler.interface.decisions import Bind, Decision, Evict, SetCondition
from muster.scheduler.interface.events import (
    BindFailed,
    BindSucceeded,
    Event,
    EvictionFailed,
    ObjectDeleted,
    ObjectUpdated,
)
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.verdict import DomainsEvaluated
from muster.scheduler.preemption.result import NO_VICTIMS, NOMINATED, REFUSED, UNDECIDED, PreemptionAttempt
from muster.scheduler.queue.entity import EntityState, QueuedEntity

M = TypeVar("M", Counter, Histogram)

LONG = [0.001 * 2**i for i in range(15)]
SLI = [0.01 * 2**i for i in range(20)]
ATTEMPTS = [1, 2, 4, 8, 16]
VICTIMS = [1, 2, 4, 8, 16, 32, 64]
PLACEMENTS = [1e-6 * 2**i for i in range(20)]
EVALUATION = [0.001 * 2**i for i in range(16)]
WORKLOAD_VICTIMS = [2**i for i in range(11)]
GROUP_CONDITIONS = (POD_GROUP_INITIALLY_SCHEDULED, COMPOSITE_INITIALLY_SCHEDULED)

# Where a root's state shows in `pending_pods`.
QUEUES = {
    EntityState.ACTIVE: "active",
    EntityState.BACKOFF: "backoff",
    EntityState.UNSCHEDULABLE: "unschedulable",
    EntityState.INCOMPLETE: "incomplete",
    EntityState.BINDING: "pending",
    EntityState.PREEMPTING: "pending",
}
# A round's outcome as a status code name, and as the result of a group's attempt.
_STATUSES = {
    NOMINATED: ("Success", "success"),
    NO_VICTIMS: ("Unschedulable", "unschedulable"),
    UNDECIDED: ("Unschedulable", "unschedulable"),
    REFUSED: ("Error", "error"),
}
_RESULTS = {"Scheduled": "scheduled", "Unschedulable": "unschedulable", "WaitingForVictims": "waiting_on_preemption"}


@dataclass(slots=True)
class Pending:
    """A pod that waits: since when, for whom, and which attempt the next one is."""

    since: float
    profile: str
    attempts: int = 1


@dataclass(slots=True)
class Execution:
    """An eviction under way: since when, whose deletions are not settled, and whether one was refused."""

    since: float
    left: set[str]
    refused: bool = False


class Executions:
    """Evictions from the decision to delete until every deletion is accepted or refused."""

    def __init__(self, seconds: Histogram) -> None:
        self._seconds = seconds
        self._open: dict[ObjectRef, Execution] = {}
        self._preemptors: dict[str, ObjectRef] = {}  # by victim

    def started(self, decision: Evict, now: float) -> None:
        if decision.given_back:
            return
        if self._preemptors.get(decision.pod.uid, decision.preemptor) != decision.preemptor:
            self.settled(decision.pod.uid, now)  # it leaves for somebody else now
        execution = self._open.setdefault(decision.preemptor, Execution(now, set()))
        execution.left.add(decision.pod.uid)
        self._preemptors[decision.pod.uid] = decision.preemptor

    def settled(self, uid: str, now: float, *, refused: bool = False) -> None:
        """A victim is leaving, is gone, or stays: its deletion was refused or called off."""
        preemptor = self._preemptors.pop(uid, None)
        if preemptor is None:
            return
        execution = self._open[preemptor]
        execution.left.discard(uid)
        execution.refused |= refused
        if not execution.left:
            del self._open[preemptor]
            result = "Error" if execution.refused else "Success"
            self._seconds.labels(preemptor.kind.lower(), result).observe(now - execution.since)


class Children(Generic[M]):
    """A metric's children by their labels, for those that every pod counts in: asking the metric takes a lock."""

    def __init__(self, metric: M) -> None:
        self._metric = metric
        self._found: dict[tuple[str, ...], M] = {}

    def labels(self, *values: str) -> M:
        child = self._found.get(values)
        if child is None:
            child = self._found[values] = self._metric.labels(*values)
        return child


class Metrics:
    """The counters of one engine."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.profile_of: Callable[[ObjectRef], str] = lambda about: ""
        self.is_root: Callable[[ObjectRef], bool] = lambda about: True
        self._pending: dict[str, Pending] = {}  # by uid
        self._pods()
        self._groups()
        self._placements()
        self._writes()

    def _pods(self) -> None:
        counter, histogram = self._counter, self._histogram
        self.attempts = Children(counter("schedule_attempts", "Attempts to schedule pods.", ("result", "profile")))
        self.attempt_seconds = Children(
            histogram(
                "scheduling_attempt_duration_seconds", "Time of an attempt, per pod.", LONG, ("result", "profile")
            )
        )
        self.algorithm_seconds = histogram(
            "scheduling_algorithm_duration_seconds", "Time the brain took for a turn.", LONG
        )
        self.sli_seconds = Children(
            histogram(
                "pod_scheduling_sli_duration_seconds",
                "From when a pod was first seen until it was bound.",
                SLI,
                ("attempts",),
            )
        )
        self.pod_attempts = histogram("pod_scheduling_attempts", "Attempts until a pod was bound.", ATTEMPTS)
        self.incoming = Children(counter("queue_incoming_pods", "Pods that entered the queue.", ("queue", "event")))
        self.preemptions = counter("preemption_attempts", "Times that eviction was considered for a pod.")
        self.victims = histogram("preemption_victims", "Victims chosen for one pod.", VICTIMS)

    def _groups(self) -> None:
        counter, histogram = self._counter, self._histogram
        self.group_attempts = counter(
            "podgroup_schedule_attempts", "Attempts to schedule groups, by outcome.", ("result", "profile")
        )
        self.group_seconds = histogram(
            "podgroup_scheduling_attempt_duration_seconds", "Time of a group's attempt.", LONG, ("result", "profile")
        )
        self.group_algorithm_seconds = histogram(
            "podgroup_scheduling_algorithm_duration_seconds", "Time the brain took for a group's turn.", LONG
        )
        self.workload_preemptions = counter(
            "workload_preemption_attempts", "Times that eviction was considered for a group.", ("result",)
        )
        self.workload_victims = histogram(
            "workload_preemption_victims", "Victims chosen for one group.", WORKLOAD_VICTIMS
        )
        self.disruptions = histogram(
            "preemption_workload_disruptions", "Units that one eviction disrupts.", WORKLOAD_VICTIMS, ("preemptor",)
        )
        self.evaluation_seconds = histogram(
            "preemption_evaluation_duration_seconds",
            "Time of a turn that considered eviction.",
            EVALUATION,
            ("preemptor", "result"),
        )
        self.executions = Executions(
            histogram(
                "preemption_execution_duration_seconds",
                "From the decision to delete victims until every deletion was accepted or refused.",
                EVALUATION,
                ("preemptor", "result"),
            )
        )
        self.pdb_violations = counter(
            "preemption_pdb_violations", "Pods chosen although their budget forbids it.", ("preemptor",)
        )

    def _placements(self) -> None:
        counter, histogram = self._counter, self._histogram
        self.generated = counter("generated_placements", "Domains that pod groups could be placed in.", ("profile",))
        self.evaluations = counter(
            "placement_evaluations", "Domains judged for pod groups, by outcome.", ("result", "profile")
        )
        self.placement_seconds = histogram(
            "placement_evaluation_duration_seconds",
            "Time per domain of a turn that judged domains.",
            PLACEMENTS,
            ("result", "profile"),
        )

    def _writes(self) -> None:
        told = ("call_type", "result")
        self.calls = Children(self._counter("async_api_call_execution", "Writes that ended, by what they were.", told))
        self.call_seconds = Children(
            self._histogram("async_api_call_execution_duration_seconds", "Time of a write.", LONG, told)
        )
        self.leading = Gauge(
            "leader_election_master_status", "1 while this process leads.", ("name",), registry=self.registry
        )

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"scheduler_{name}", text, tuple(labels), registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: list[Any], labels: Iterable[str] = ()) -> Histogram:
        return Histogram(f"scheduler_{name}", text, tuple(labels), buckets=buckets, registry=self.registry)

    # --- what passes through -----------------------------------------------------------------------

    def handled(self, event: Event, now: float) -> None:
        """An event on its way into the brain."""
        if isinstance(event, ObjectUpdated):
            if event.kind == "Pod":
                self._pod_seen(event.object, now)
                if event.object.metadata.deletion_timestamp is not None:
                    self.executions.settled(event.object.metadata.uid, now)
        elif isinstance(event, BindSucceeded):
            self._bound(event.uid, now)
        elif isinstance(event, BindFailed):
            pod = self._pending.get(event.uid)
            self.attempts.labels("error", pod.profile if pod else "").inc()
        elif isinstance(event, EvictionFailed):
            self.workload_preemptions.labels("error").inc()
            self.executions.settled(event.uid, now, refused=True)
        elif isinstance(event, ObjectDeleted) and event.kind == "Pod":
            self._pending.pop(event.uid, None)
            self.executions.settled(event.uid, now)

    def _pod_seen(self, pod: Any, now: float) -> None:
        uid = pod.metadata.uid
        if not pod.spec.node_name and uid not in self._pending:
            self._pending[uid] = Pending(now, pod.spec.scheduler_name)
            self.incoming.labels("active", "PodAdd").inc()

    def _bound(self, uid: str, now: float) -> None:
        pod = self._pending.pop(uid, None) or Pending(now, "")
        self.attempts.labels("scheduled", pod.profile).inc()
        self.sli_seconds.labels(str(pod.attempts) if pod.attempts < 15 else "15+").observe(now - pod.since)
        self.pod_attempts.observe(pod.attempts)

    def decided(self, decisions: list[Decision], now: float, seconds: float) -> None:
        """A turn of the brain, when it was and how long it took."""
        self.algorithm_seconds.observe(seconds)
        counts = Tally(type(decision) for decision in decisions)
        seats = counts[Bind]
        for decision in decisions:
            if isinstance(decision, SetCondition):
                self._said(decision, seconds)
                if decision.type == DISRUPTION_TARGET and decision.status == "False":
                    self.executions.settled(decision.about.uid, now, refused=True)
            elif isinstance(decision, Bind):
                profile = self.profile_of(decision.pod)
                self.attempt_seconds.labels("scheduled", profile).observe(seconds / seats)
            elif isinstance(decision, Evict):
                self.executions.started(decision, now)

    def considered(self, rounds: list[PreemptionAttempt], seconds: float) -> None:
        """What a turn considered evicting, and how long the turn took."""
        for found in rounds:
            status, result = _STATUSES[found.result]
            self.evaluation_seconds.labels(found.preemptor, status).observe(seconds)
            if found.preemptor == "pod":
                self.preemptions.inc()
            else:
                self.workload_preemptions.labels(result).inc()
            if found.result == NOMINATED:
                (self.victims if found.preemptor == "pod" else self.workload_victims).observe(found.pods)
                self.disruptions.labels(found.preemptor).observe(found.disruptions)
                self.pdb_violations.labels(found.preemptor).inc(found.budget_violations)

    def judged(self, judged: list[DomainsEvaluated], seconds: float) -> None:
        """The domains that a turn judged; all of them at once, so each took its share of the turn."""
        share = seconds / max(1, sum(found.domains for found in judged))
        for found in judged:
            self.generated.labels(found.profile).inc(found.domains)
            for result, count in (("feasible", found.feasible), ("infeasible", found.domains - found.feasible)):
                if count:
                    self.evaluations.labels(result, found.profile).inc(count)
                    self.placement_seconds.labels(result, found.profile).observe(share)

    def _said(self, decision: SetCondition, seconds: float) -> None:
        if decision.about.kind == "Pod":
            if decision.type == "PodScheduled" and decision.status == "False":
                result = "unschedulable" if decision.reason == "Unschedulable" else "error"
                profile = self.profile_of(decision.about)
                pod = self._pending.get(decision.about.uid)
                if pod is not None:
                    pod.attempts += 1
                self.attempts.labels(result, profile).inc()
                self.attempt_seconds.labels(result, profile).observe(seconds)
        elif decision.type in GROUP_CONDITIONS and self.is_root(decision.about):
            result, profile = _RESULTS.get(decision.reason, "error"), self.profile_of(decision.about)
            self.group_attempts.labels(result, profile).inc()
            self.group_seconds.labels(result, profile).observe(seconds)
            self.group_algorithm_seconds.observe(seconds)

    def wrote(self, call: str, fault: str, seconds: float) -> None:
        """A write has ended."""
        result = "error" if fault else "success"
        self.calls.labels(call, result).inc()
        self.call_seconds.labels(call, result).observe(seconds)


class BrainView(Collector):
    """What is read from the brain at the moment of a scrape: queues and sizes."""

    def __init__(self, brain: Any, writes: Callable[[], int]) -> None:
        self._brain = brain
        self._writes = writes

    def collect(self) -> Iterator[Metric]:
        calls = GaugeMetricFamily("scheduler_pending_async_api_calls", "Writes that have not ended.")
        calls.add_metric([], self._writes())
        yield calls
        world = getattr(self._brain, "state", None)
        if world is None:
            return
        yield from self._queues()
        sizes = GaugeMetricFamily("scheduler_cache_size", "Objects the scheduler knows.", labels=["type"])
        sizes.add_metric(["nodes"], len(world.cluster.index))
        sizes.add_metric(["pods"], len(world.cluster.pods))
        sizes.add_metric(["assumed_pods"], world.assumed.in_flight())
        yield sizes

    def _queues(self) -> Iterator[Metric]:
        pods: Tally[str] = Tally()
        entities: Tally[tuple[str, str]] = Tally()
        blamed: Tally[str] = Tally()
        for root in self._brain.state.queue.entities.values():
            queue = "gated" if root.state is EntityState.INCOMPLETE and _is_gated(root) else QUEUES[root.state]
            count = root.group.pending_below if root.group is not None else 1
            pods[queue] += count
            entities[queue, "pod" if root.group is None else "podgroup"] += 1
            if root.state is EntityState.UNSCHEDULABLE:
                for culprit in root.hints.rejected_by:
                    blamed[str(culprit)] += count
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pods that wait, by queue.", labels=["queue"])
        for queue in ("active", "backoff", "unschedulable", "gated", "incomplete", "pending"):
            pending.add_metric([queue], pods[queue])
        yield pending
        queued = GaugeMetricFamily("scheduler_queued_entities", "Pods and groups in line.", labels=["queue", "type"])
        for labels, count in sorted(entities.items()):
            queued.add_metric(list(labels), count)
        yield queued
        blame = GaugeMetricFamily("scheduler_unschedulable_pods", "Parked pods by who refused.", labels=["plugin"])
        for culprit, count in sorted(blamed.items()):
            blame.add_metric([culprit], count)
        yield blame


def _is_gated(root: QueuedEntity) -> bool:
    return bool(root.group.gated if root.group is not None else root.member is not None and root.member.gated)
