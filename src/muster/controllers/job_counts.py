"""Counts the succeeded and failed pods of a Job, each once, even after the pod is gone.

Pure: reads pods and the last written status. What the status already says is never lost, so that a
restarted controller goes on where the other one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.controllers.job_failures import FAIL_INDEX, FAIL_JOB, IGNORE, JSON, decide
from muster.controllers.objects import PodView

INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class IndexFailures:
    """The failures of each index of a Job that has a limit for each."""

    limit: int
    failed: set[int]  # for good
    counts: dict[int, int] = field(default_factory=dict[int, int])
    noticed: dict[int, float] = field(default_factory=dict[int, float])  # when the last failure was

    def note(self, pod: PodView, action: str, now: float) -> None:
        index = index_of(pod)
        if index is None:
            return
        before = (pod.metadata.annotations.index_failures or "") if pod.metadata.annotations is not None else ""
        count = (int(before) if before.isdigit() else 0) + (action != IGNORE)
        self.counts[index] = max(self.counts.get(index, 0), count)
        self.noticed[index] = now
        if action == FAIL_INDEX or self.counts[index] > self.limit:
            self.failed.add(index)


@dataclass(slots=True)
class JobCounts:
    """The finished pods of one Job that this process has seen, on top of those counted before."""

    policy: JSON | None = None
    succeeded_before: int = 0
    failed_before: int = 0
    succeeded: set[str] = field(default_factory=set[str])
    failed: dict[str, float] = field(default_factory=dict[str, float])  # uid -> when it was noticed
    ignored: set[str] = field(default_factory=set[str])
    fatal: str = ""  # message of a failure that ends the Job
    indexes: IndexFailures | None = None

    @classmethod
    def from_status(cls, spec: JSON, status: JSON, pods: Iterable[PodView], now: float) -> JobCounts:
        """From the written status and the pods that are still there, which it includes."""
        counts = cls(spec.get("podFailurePolicy"))
        if (limit := spec.get("backoffLimitPerIndex")) is not None:
            counts.indexes = IndexFailures(int(limit), parse_indexes(status.get("failedIndexes")))
        counts.note(pods, now)
        counts.succeeded_before = max(0, int(status.get("succeeded") or 0) - len(counts.succeeded))
        counts.failed_before = max(0, int(status.get("failed") or 0) - len(counts.failed))
        return counts

    def note(self, pods: Iterable[PodView], now: float) -> None:
        for pod in pods:
            if pod.status.phase == "Succeeded":
                self.succeeded.add(pod.metadata.uid)
            elif pod.status.phase == "Failed" and pod.metadata.uid not in self.failed:
                self._note_failure(pod, now)

    def _note_failure(self, pod: PodView, now: float) -> None:
        decision = decide(self.policy, pod)
        if self.indexes is not None and pod.metadata.uid not in self.ignored:
            self.indexes.note(pod, decision.action, now)
        if decision.action == IGNORE:
            self.ignored.add(pod.metadata.uid)
            return
        self.failed[pod.metadata.uid] = now
        if decision.action == FAIL_JOB:
            self.fatal = self.fatal or decision.message

    @property
    def total_succeeded(self) -> int:
        return self.succeeded_before + len(self.succeeded)

    @property
    def total_failed(self) -> int:
        return self.failed_before + len(self.failed)

    @property
    def last_failure(self) -> float | None:
        return max(self.failed.values(), default=None)


def index_of(pod: PodView) -> int | None:
    text = (pod.metadata.labels or {}).get(INDEX_LABEL, "")
    return int(text) if text.isdigit() else None


def parse_indexes(text: str | None) -> set[int]:
    """`1,3-5` as numbers."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last if dash else first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Numbers as `1,3-5`; two in a row are written as two."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(indexes), None]:
        if run and (index is None or index != run[-1] + 1):
            if len(run) > 2:
                parts.append(f"{run[0]}-{run[-1]}")
            else:
                parts.extend(map(str, run))
            run = []
        if index is not None:
            run.append(index)
    return ",".join(parts)


def met_rule(policy: JSON | None, completed: set[int]) -> int | None:
    """The number of the first rule of a success policy that the completed indexes meet."""
    rules: list[JSON] = (policy or {}).get("rules") or []
    for number, rule in enumerate(rules):
        text, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        wanted = parse_indexes(text) if text is not None else completed
        met = len(wanted & completed)
        if met >= (len(wanted) if count is None else int(count)):
            return number
    return None
