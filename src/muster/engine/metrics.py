"""The metrics of kube-scheduler, measured in the engine: same names, labels and buckets.

Everything here is derived from what passes through the engine: events in, decisions out, API calls. What is read from
the scheduler at the moment of a scrape is in `scheduler_collector`. Each engine has a registry of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

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

M = TypeVar("M", Counter, Histogram)

LONG = [0.001 * 2**i for i in range(15)]
SLI = [0.01 * 2**i for i in range(20)]
ATTEMPTS = [1, 2, 4, 8, 16]
VICTIMS = [1, 2, 4, 8, 16, 32, 64]
PLACEMENTS = [1e-6 * 2**i for i in range(20)]
EVALUATION = [0.001 * 2**i for i in range(16)]
WORKLOAD_VICTIMS = [2**i for i in range(11)]
GROUP_CONDITIONS = (POD_GROUP_INITIALLY_SCHEDULED, COMPOSITE_INITIALLY_SCHEDULED)

# The outcome of a preemption attempt as a status code, and as the result of a group's attempt.
_STATUSES = {
    NOMINATED: ("Success", "success"),
    NO_VICTIMS: ("Unschedulable", "unschedulable"),
    UNDECIDED: ("Unschedulable", "unschedulable"),
    REFUSED: ("Error", "error"),
}
_RESULTS = {"Scheduled": "scheduled", "Unschedulable": "unschedulable", "WaitingForVictims": "waiting_on_preemption"}


@dataclass(slots=True)
class PendingTimer:
    """A pending pod: since when, its profile, and the number of the next attempt."""

    since: float
    profile: str
    attempts: int = 1


@dataclass(slots=True)
class EvictionTiming:
    """The evictions for one preemptor: since when, whose deletions are open, and whether one failed."""

    since: float
    left: set[str]
    failed: bool = False


class EvictionTimings:
    """Evictions from the decision to delete until every deletion is accepted or refused."""

    def __init__(self, seconds: Histogram) -> None:
        self._seconds = seconds
        self._open: dict[ObjectRef, EvictionTiming] = {}
        self._preemptors: dict[str, ObjectRef] = {}  # by victim

    def started(self, decision: Evict, now: float) -> None:
        if decision.given_back:
            return
        if self._preemptors.get(decision.pod.uid, decision.preemptor) != decision.preemptor:
            self.settled(decision.pod.uid, now)  # it is evicted for another preemptor now
        execution = self._open.setdefault(decision.preemptor, EvictionTiming(now, set()))
        execution.left.add(decision.pod.uid)
        self._preemptors[decision.pod.uid] = decision.preemptor

    def settled(self, uid: str, now: float, *, failed: bool = False) -> None:
        """A victim is being deleted, is gone, or stays because its deletion failed or was cancelled."""
        preemptor = self._preemptors.pop(uid, None)
        if preemptor is None:
            return
        execution = self._open[preemptor]
        execution.left.discard(uid)
        execution.failed |= failed
        if not execution.left:
            del self._open[preemptor]
            result = "Error" if execution.failed else "Success"
            self._seconds.labels(preemptor.kind.lower(), result).observe(now - execution.since)


class LabelledMetric(Generic[M]):
    """A metric with its children by label values, for what is counted per pod: asking the metric takes a lock."""

    def __init__(self, metric: M) -> None:
        self._metric = metric
        self._found: dict[tuple[str, ...], M] = {}

    def labels(self, *values: str) -> M:
        child = self._found.get(values)
        if child is None:
            child = self._found[values] = self._metric.labels(*values)
        return child


class Metrics:
    """The counters of one engine.

    `profile_of` gives the profile that schedules an object; `is_root` says whether a group has no parent, because only
    the attempt of a whole tree is counted.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        profile_of: Callable[[ObjectRef], str] = lambda about: "",
        is_root: Callable[[ObjectRef], bool] = lambda about: True,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self._profile_of = profile_of
        self._is_root = is_root
        self._pending: dict[str, PendingTimer] = {}  # by uid
        self._pods()
        self._groups()
        self._placements()
        self._calls()

    def _pods(self) -> None:
        counter, histogram = self._counter, self._histogram
        self.attempts = LabelledMetric(
            counter("schedule_attempts", "Attempts to schedule pods.", ("result", "profile"))
        )
        self.attempt_seconds = LabelledMetric(
            histogram(
                "scheduling_attempt_duration_seconds", "Time of an attempt, per pod.", LONG, ("result", "profile")
            )
        )
        self.algorithm_seconds = histogram("scheduling_algorithm_duration_seconds", "Time of a scheduling cycle.", LONG)
        self.sli_seconds = LabelledMetric(
            histogram(
                "pod_scheduling_sli_duration_seconds",
                "From when a pod was first seen until it was bound.",
                SLI,
                ("attempts",),
            )
        )
        self.pod_attempts = histogram("pod_scheduling_attempts", "Attempts until a pod was bound.", ATTEMPTS)
        self.incoming = LabelledMetric(
            counter("queue_incoming_pods", "Pods that entered the queue.", ("queue", "event"))
        )
        self.bind_failures = LabelledMetric(
            counter("bind_failures", "Binds that did not take place, by cause.", ("cause",))
        )
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
            "podgroup_scheduling_algorithm_duration_seconds", "Time of a group's scheduling cycle.", LONG
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
            "Time of a scheduling cycle that considered preemption.",
            EVALUATION,
            ("preemptor", "result"),
        )
        self.executions = EvictionTimings(
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
        self.proofs = counter(
            "infeasibility_proofs", "Proofs of infeasibility by the outcome of their independent check.", ("result",)
        )
        self.missed_wakeups = counter(
            "missed_wakeups", "Entities that only the fallback timer found to be schedulable; each is a bug."
        )
        self.reservation_events = counter(
            "reservation_events", "Reservations made, moved and ended; pods that overstayed in kept room.", ("event",)
        )
        self.held_seat_events = counter(
            "held_seat_events", "Seats held for expected members, taken by them, lost and timed out.", ("event",)
        )
        self.evaluations = counter(
            "placement_evaluations", "Domains evaluated for pod groups, by outcome.", ("result", "profile")
        )
        self.placement_seconds = histogram(
            "placement_evaluation_duration_seconds",
            "Time per domain of a scheduling cycle that evaluated domains.",
            PLACEMENTS,
            ("result", "profile"),
        )

    def _calls(self) -> None:
        labels = ("call_type", "result")
        self.calls = LabelledMetric(self._counter("async_api_call_execution", "API calls that ended, by type.", labels))
        self.call_seconds = LabelledMetric(
            self._histogram("async_api_call_execution_duration_seconds", "Time of an API call.", LONG, labels)
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
        """An event on its way to the scheduler."""
        if isinstance(event, ObjectUpdated):
            if event.kind == "Pod":
                self._pod_seen(event.object, now)
                if event.object.metadata.deletion_timestamp is not None:
                    self.executions.settled(event.object.metadata.uid, now)
        elif isinstance(event, BindSucceeded):
            self._bound(event.uid, now)
        elif isinstance(event, BindFailed):
            self.bind_failures.labels(event.cause).inc()
            pod = self._pending.get(event.uid)
            self.attempts.labels("error", pod.profile if pod else "").inc()
        elif isinstance(event, EvictionFailed):
            self.workload_preemptions.labels("error").inc()
            self.executions.settled(event.uid, now, failed=True)
        elif isinstance(event, ObjectDeleted) and event.kind == "Pod":
            self._pending.pop(event.uid, None)
            self.executions.settled(event.uid, now)

    def _pod_seen(self, pod: Any, now: float) -> None:
        uid = pod.metadata.uid
        if not pod.spec.node_name and uid not in self._pending:
            self._pending[uid] = PendingTimer(now, pod.spec.scheduler_name)
            self.incoming.labels("active", "PodAdd").inc()

    def _bound(self, uid: str, now: float) -> None:
        pod = self._pending.pop(uid, None) or PendingTimer(now, "")
        self.attempts.labels("scheduled", pod.profile).inc()
        self.sli_seconds.labels(str(pod.attempts) if pod.attempts < 15 else "15+").observe(now - pod.since)
        self.pod_attempts.observe(pod.attempts)

    def decided(self, decisions: list[Decision], now: float, seconds: float) -> None:
        """The decisions of a scheduling cycle, when it was and how long it took."""
        self.algorithm_seconds.observe(seconds)
        binds = sum(isinstance(decision, Bind) for decision in decisions)
        for decision in decisions:
            if isinstance(decision, SetCondition):
                self._condition_set(decision, seconds)
                if decision.type == DISRUPTION_TARGET and decision.status == "False":
                    self.executions.settled(decision.about.uid, now, failed=True)
            elif isinstance(decision, Bind):
                profile = self._profile_of(decision.pod)
                self.attempt_seconds.labels("scheduled", profile).observe(seconds / binds)
            elif isinstance(decision, Evict):
                self.executions.started(decision, now)

    def preemptions_considered(self, attempts: list[PreemptionAttempt], seconds: float) -> None:
        """The preemptions that a scheduling cycle considered, and how long the cycle took."""
        for found in attempts:
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

    def domains_evaluated(self, evaluated: list[DomainsEvaluated], seconds: float) -> None:
        """The domains of a scheduling cycle; they are evaluated together, so each took an equal share of the cycle."""
        share = seconds / max(1, sum(found.domains for found in evaluated))
        for found in evaluated:
            self.generated.labels(found.profile).inc(found.domains)
            for result, count in (("feasible", found.feasible), ("infeasible", found.domains - found.feasible)):
                if count:
                    self.evaluations.labels(result, found.profile).inc(count)
                    self.placement_seconds.labels(result, found.profile).observe(share)

    def wakeups_missed(self, count: int) -> None:
        """Entities that the fallback timer found to be schedulable in a scheduling cycle."""
        self.missed_wakeups.inc(count)

    def proofs_checked(self, results: dict[str, int]) -> None:
        """What became of the proofs of infeasibility of a scheduling cycle."""
        for result, count in results.items():
            self.proofs.labels(result).inc(count)

    def held_seats_changed(self, results: dict[str, int]) -> None:
        """What became of seats for expected members in a scheduling cycle."""
        for event, count in results.items():
            self.held_seat_events.labels(event).inc(count)

    def reservations_changed(self, results: dict[str, int]) -> None:
        """What became of reservations in a scheduling cycle."""
        for event, count in results.items():
            self.reservation_events.labels(event).inc(count)

    def _condition_set(self, decision: SetCondition, seconds: float) -> None:
        if decision.about.kind == "Pod":
            if decision.type == "PodScheduled" and decision.status == "False":
                result = "unschedulable" if decision.reason == "Unschedulable" else "error"
                profile = self._profile_of(decision.about)
                pod = self._pending.get(decision.about.uid)
                if pod is not None:
                    pod.attempts += 1
                self.attempts.labels(result, profile).inc()
                self.attempt_seconds.labels(result, profile).observe(seconds)
        elif decision.type in GROUP_CONDITIONS and self._is_root(decision.about):
            result, profile = _RESULTS.get(decision.reason, "error"), self._profile_of(decision.about)
            self.group_attempts.labels(result, profile).inc()
            self.group_seconds.labels(result, profile).observe(seconds)
            self.group_algorithm_seconds.observe(seconds)

    def call_ended(self, call_type: str, error: str, seconds: float) -> None:
        """An API call has ended."""
        result = "error" if error else "success"
        self.calls.labels(call_type, result).inc()
        self.call_seconds.labels(call_type, result).observe(seconds)
