"""Jobs: run pods until enough of them have succeeded, or too many have failed, or time is up.

A pod that is deleted before it ends is replaced and does not count as failed: being preempted is no
failure. The template's `schedulingGroup` is kept; a Job without one gets a group of its own, which `job_group` makes
before the first pod.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import JOBS, POD_GROUPS, PODS, WORKLOADS
from muster.api.types import INDEX_FAILURES
from muster.client.clock import seconds_of, timestamp
from muster.controllers.adoption import adopt, orphans_of, release, selector_of
from muster.controllers.controller import Controller
from muster.controllers.job_counts import (
    INDEX_LABEL,
    JobCounts,
    format_indexes,
    index_of,
    met_rule,
    parse_indexes,
)
from muster.controllers.job_group import GroupBlocked, JobGroups, described_by, is_delegated, parent_of
from muster.controllers.job_group_objects import owner_reference
from muster.controllers.objects import PodView, UnstructuredObject, controller_of
from muster.controllers.pod_control import PodControl, pod_from
from muster.controllers.status import JSON, condition, with_condition, write_status

_MANAGER = "kubernetes.io/job-controller"
_FIRST_BACKOFF = 10.0
_LONGEST_BACKOFF = 360.0
_BLOCKED_SECONDS = 30.0  # a Job that waits for a Workload is woken by it; this is the fallback
_JOB_NAME = "batch.kubernetes.io/job-name"


class JobController(Controller):
    name = "job-controller"
    workers = 4

    def setup(self) -> None:
        self._jobs = self.watch_keys(JOBS)
        pods = self.watch(PODS)
        self._orphans = orphans_of(pods)
        self._control = PodControl(self.client, self.clock, pods, JOBS, self.events)
        self._counts: dict[str, JobCounts] = {}
        workloads, groups = self.watch(WORKLOADS), self.watch(POD_GROUPS)
        self.groups = JobGroups(self.client, self.events, self.context.gates, workloads, groups)
        self._children = self._jobs.index(
            "delegated-by-parent", lambda job: parent_of(job) if is_delegated(job) else None
        )
        workloads.on_change(self._workload_changed)
        pods.on_change(self._pod_changed)
        self._jobs.on_change(self._job_changed)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            if pod is None:
                continue
            owner = controller_of(pod.metadata)
            if owner is not None and owner.kind == JOBS.kind:
                if pod is new and owner.uid in self._counts:
                    self._counts[owner.uid].note((pod,), self.clock.now())
                self.queue.add((pod.metadata.namespace, owner.name))
            elif owner is None and (name := (pod.metadata.labels or {}).get(_JOB_NAME)):
                self.queue.add((pod.metadata.namespace, name))

    def _job_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._counts.pop(old.metadata.uid, None)
            self.groups.forget(old.metadata.uid)

    def _workload_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        """The group of a Job whose parent delegates is made from the parent's Workload, and follows it."""
        workload = new if new is not None else old
        parent = described_by(workload) if workload is not None else None
        for job in self._children.get(parent):
            self.queue.add((job.metadata.namespace, job.metadata.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        job: UnstructuredObject | None = self._jobs.get(*key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return None
        if job.spec.get("managedBy") not in (None, _MANAGER):
            return None
        if await self._claim(job):
            return None  # the pod's event queues the key again
        if finished_condition(job):
            return await self._expire(job)
        return await _Reconciliation(self, job).run()

    def pods_of(self, job: UnstructuredObject) -> list[PodView]:
        return self._control.pods_of(job.metadata.uid)

    @property
    def control(self) -> PodControl:
        return self._control

    def counts_of(self, job: UnstructuredObject, pods: list[PodView]) -> JobCounts:
        counts = self._counts.get(job.metadata.uid)
        if counts is None:
            counts = self._counts[job.metadata.uid] = JobCounts.from_status(
                job.spec, job.status, pods, self.clock.now()
            )
        else:
            counts.note(pods, self.clock.now())
        return counts

    async def _claim(self, job: UnstructuredObject) -> bool:
        """Adopt pods that the selector matches and let go of those that it does not; whether there were any."""
        if job.spec.get("selector") is None:
            return False
        ours = selector_of(job)
        named: list[PodView] = [
            pod
            for pod in self._orphans.get(job.metadata.namespace)
            if (pod.metadata.labels or {}).get(_JOB_NAME) == job.metadata.name
        ]
        orphans = [pod for pod in named if not pod.going and ours(pod.metadata)]
        strangers = [pod for pod in self.pods_of(job) if not ours(pod.metadata)]
        for pod in orphans:
            await adopt(self.client, PODS, pod.metadata, JOBS, job.metadata)
        for pod in strangers:
            await release(self.client, PODS, pod.metadata, job.metadata)
        return bool(orphans or strangers)

    async def _expire(self, job: UnstructuredObject) -> float | None:
        """Remove a finished Job when its time to live is over."""
        lifetime = job.spec.get("ttlSecondsAfterFinished")
        done = finished_condition(job)
        if lifetime is None or done is None:
            return None
        left = (seconds_of(done.get("lastTransitionTime")) or 0.0) + lifetime - self.clock.now()
        if left > 0:
            return left
        try:
            await self.client.delete(
                JOBS, job.metadata.name, job.metadata.namespace, uid=job.metadata.uid, propagation_policy="Foreground"
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        return None


class _Reconciliation:
    """One reconciliation of one unfinished Job."""

    def __init__(self, controller: JobController, job: UnstructuredObject) -> None:
        self.controller = controller
        self.control = controller.control
        self.job = job
        self.spec = job.spec
        self.now = controller.clock.now()
        self.pods = controller.pods_of(job)
        self.counts = controller.counts_of(job, self.pods)
        self.indexed = self.spec.get("completionMode") == "Indexed"
        self.active = [pod for pod in self.pods if not pod.finished and not self.control.going(pod)]
        self.leaving = self._leaving()
        self.conditions: list[JSON] = job.status.get("conditions") or []
        self.completed = self._completed_indexes() if self.indexed else set[int]()
        self.start: str | None = job.status.get("startTime")
        self.again: float | None = None

    def _leaving(self) -> list[PodView]:
        """Pods that still keep their place while they stop, where the Job replaces only pods that have ended."""
        if self.spec.get("podReplacementPolicy") != "Failed":
            return []
        return [pod for pod in self.pods if not pod.finished and self.control.going(pod)]

    def _completed_indexes(self) -> set[int]:
        wanted = int(self.spec.get("completions") or 0)
        done = parse_indexes(self.job.status.get("completedIndexes"))
        done |= {index for pod in self.pods if pod.status.phase == "Succeeded" and (index := index_of(pod)) is not None}
        return {index for index in done if index < wanted}

    @property
    def failed_indexes(self) -> set[int]:
        """Indexes that failed for good, where each has a limit; one that succeeded all the same is not among them."""
        return self.counts.indexes.failed - self.completed if self.counts.indexes is not None else set()

    @property
    def succeeded(self) -> int:
        return len(self.completed) if self.indexed else self.counts.total_succeeded

    async def run(self) -> float | None:
        suspended = bool(self.spec.get("suspend"))
        try:
            group = await self._group()
        except GroupBlocked as blocked:
            await self.controller.events.warning(JOBS, self.job.metadata, "SchedulingBlocked", str(blocked))
            return _BLOCKED_SECONDS
        await self._mark_suspended(suspended)
        if not suspended and self.start is None:
            self.start = timestamp(self.now)
        verdict = self._outcome()
        if verdict is not None:
            await self.control.delete(self.active, self.job.metadata)
            self.active = []
            await self._finish(*verdict)
        elif suspended:
            await self.control.delete(self.active, self.job.metadata)
            self.active = []
        else:
            await self._balance(group)
        await write_status(self.controller.client, JOBS, self.job, self._status())
        return self.again

    async def _group(self) -> JSON | None:
        status = self.job.status
        fresh = not self.pods and not any(status.get(key) for key in ("startTime", "succeeded", "failed"))
        new = fresh and condition(self.conditions, "Suspended") is None
        return await self.controller.groups.group_of(self.job, new)

    # Conditions

    def _outcome(self) -> tuple[str, str, str] | None:
        """(condition, reason, message) that ends the Job, or None."""
        rule = met_rule(self.spec.get("successPolicy"), self.completed)
        if rule is not None:
            return ("Complete", "SuccessPolicy", f"Matched rules at index {rule}")
        completions = self.spec.get("completions")
        if completions is None:
            done = self.succeeded > 0 and not self.active
        else:
            done = self.succeeded >= int(completions)
        if done:
            return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        if self.counts.fatal:
            return ("Failed", "PodFailurePolicy", self.counts.fatal)
        if self.failed_indexes:
            most = self.spec.get("maxFailedIndexes")
            if most is not None and len(self.failed_indexes) > most:
                why = "Job has exceeded the specified maximal number of failed indexes"
                return ("Failed", "MaxFailedIndexesExceeded", why)
            if len(self.failed_indexes | self.completed) >= int(completions or 0):
                return ("Failed", "FailedIndexes", "Job has failed indexes")
        if self.counts.total_failed > int(self.spec.get("backoffLimit", 6)):
            return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        deadline = self.spec.get("activeDeadlineSeconds")
        started = seconds_of(self.start)
        if deadline is not None and started is not None and not self.spec.get("suspend"):
            left = started + deadline - self.now
            if left <= 0:
                return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
            self._check_after(left)
        return None

    def _check_after(self, seconds: float) -> None:
        self.again = seconds if self.again is None else min(self.again, seconds)

    def _condition(self, kind: str, status: str, reason: str, message: str) -> None:
        now = timestamp(self.now)
        new = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": now,
            "lastTransitionTime": now,
        }
        self.conditions = with_condition(self.conditions, new)

    async def _finish(self, kind: str, reason: str, message: str) -> None:
        events = self.controller.events
        if kind == "Complete":
            self._condition("SuccessCriteriaMet", "True", reason, message)
            if any(not pod.finished for pod in self.pods):
                return  # complete when the last of them has stopped
            await events.normal(JOBS, self.job.metadata, "Completed", "Job completed")
        else:
            self._condition("FailureTarget", "True", reason, message)
            await events.warning(JOBS, self.job.metadata, reason, message)
        self._condition(kind, "True", reason, message)

    async def _mark_suspended(self, suspended: bool) -> None:
        old = condition(self.conditions, "Suspended")
        was = old is not None and old.get("status") == "True"
        if suspended and not was:
            self._condition("Suspended", "True", "JobSuspended", "Job suspended")
            self.start = None
            await self.controller.events.normal(JOBS, self.job.metadata, "Suspended", "Job suspended")
        elif was and not suspended:
            self._condition("Suspended", "False", "JobResumed", "Job resumed")
            self.start = timestamp(self.now)
            await self.controller.events.normal(JOBS, self.job.metadata, "Resumed", "Job resumed")

    # Pods

    async def _balance(self, group: JSON | None) -> None:
        parallelism = int(self.spec.get("parallelism", 1))
        completions = self.spec.get("completions")
        if completions is None:
            wanted = parallelism if self.succeeded == 0 else min(parallelism, len(self.active))
        else:
            wanted = min(parallelism, int(completions) - self.succeeded - len(self.failed_indexes))
        wanted = max(0, wanted - len(self.leaving))
        keep, surplus = self._kept(wanted)
        await self.control.delete(surplus, self.job.metadata)
        self.active = keep
        missing = wanted - len(keep)
        if missing <= 0:
            return
        wait = self._backoff() if self.counts.indexes is None else 0.0
        if wait > 0:
            self._check_after(wait)
            return
        made = self._new_pods(missing, group)
        await self.control.create(self.job.metadata, made)
        self.active = [
            pod for pod in self.controller.pods_of(self.job) if not pod.finished and not self.control.going(pod)
        ]

    def _kept(self, wanted: int) -> tuple[list[PodView], list[PodView]]:
        """Which active pods stay. Of one index only one does; those that are further along go last."""
        ordered = sorted(self.active, key=lambda pod: (not pod.ready, not pod.spec.node_name, _age(pod)))
        if not self.indexed:
            return ordered[:wanted], ordered[wanted:]
        keep: list[PodView] = []
        taken = self.completed | self.failed_indexes
        limit = int(self.spec.get("completions") or 0)
        numbered = [(index, pod) for pod in ordered if (index := index_of(pod)) is not None]
        for index, pod in sorted(numbered, key=lambda each: each[0]):
            if index < limit and index not in taken and len(keep) < wanted:
                taken.add(index)
                keep.append(pod)
        return keep, [pod for pod in ordered if pod not in keep]

    def _backoff(self) -> float:
        """How long to wait after failures before the next pod."""
        last = self.counts.last_failure
        if last is None:
            return 0.0
        delay = min(_FIRST_BACKOFF * 2 ** (len(self.counts.failed) - 1), _LONGEST_BACKOFF)
        return last + delay - self.now

    def _new_pods(self, missing: int, group: JSON | None) -> list[JSON]:
        template: JSON = self.spec.get("template") or {}
        name = self.job.metadata.name
        if not self.indexed:
            return [self._pod(template, f"{name}-", group) for _ in range(missing)]
        present = [*self.active, *self.leaving]
        taken = self.completed | self.failed_indexes
        taken |= {index for pod in present if (index := index_of(pod)) is not None}
        free = (index for index in range(int(self.spec.get("completions") or 0)) if index not in taken)
        now = islice((index for index in free if self._is_due(index)), missing)
        return [self._indexed_pod(template, index, group) for index in now]

    def _is_due(self, index: int) -> bool:
        """Whether an index with a limit of its own has waited long enough since its last failure."""
        failures = self.counts.indexes
        if failures is None or not failures.counts.get(index):
            return True
        delay = min(_FIRST_BACKOFF * 2 ** (failures.counts[index] - 1), _LONGEST_BACKOFF)
        left = failures.noticed[index] + delay - self.now
        if left > 0:
            self._check_after(left)
        return left <= 0

    def _pod(self, template: JSON, generate_name: str, group: JSON | None) -> JSON:
        pod = pod_from(template, JOBS, self.job.metadata, generate_name)
        if group is not None:
            pod["spec"]["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}
            reference = owner_reference("scheduling.k8s.io/v1beta1", "PodGroup", group)
            pod["metadata"]["ownerReferences"].append(reference)
        return pod

    def _indexed_pod(self, template: JSON, index: int, group: JSON | None) -> JSON:
        pod = self._pod(template, f"{self.job.metadata.name}-{index}-", group)
        pod["metadata"]["labels"][INDEX_LABEL] = str(index)
        annotations: dict[str, str] = pod["metadata"].setdefault("annotations", {})
        annotations[INDEX_LABEL] = str(index)
        if self.counts.indexes is not None:
            annotations[INDEX_FAILURES] = str(self.counts.indexes.counts.get(index, 0))
        if "." not in self.job.metadata.name:
            pod["spec"].setdefault("hostname", f"{self.job.metadata.name}-{index}"[-63:].lstrip("-"))
        return pod

    def _status(self) -> JSON:
        terminating = sum(1 for pod in self.pods if self.control.going(pod) and not pod.finished)
        status: JSON = {
            "ready": sum(1 for pod in self.active if pod.ready),
            "terminating": terminating,
            "uncountedTerminatedPods": {},
        }
        for key, number in (
            ("active", len(self.active)),
            ("succeeded", self.succeeded),
            ("failed", self.counts.total_failed),
        ):
            if number:
                status[key] = number
        if self.completed:
            status["completedIndexes"] = format_indexes(self.completed)
        if self.counts.indexes is not None:
            status["failedIndexes"] = format_indexes(self.failed_indexes)
        if self.start is not None:
            status["startTime"] = self.start
        if self.conditions:
            status["conditions"] = self.conditions
        done = condition(self.conditions, "Complete")
        if done is not None and done.get("status") == "True":
            status["completionTime"] = self.job.status.get("completionTime") or timestamp(self.now)
        return status


def finished_condition(job: UnstructuredObject) -> JSON | None:
    conditions: list[JSON] = job.status.get("conditions") or []
    for kind in ("Complete", "Failed"):
        found = condition(conditions, kind)
        if found is not None and found.get("status") == "True":
            return found
    return None


def _age(pod: PodView) -> Any:
    return pod.metadata.creation_timestamp or ""
