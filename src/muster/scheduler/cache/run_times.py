"""When pods end, as far as it is known: by `activeDeadlineSeconds`, by the annotation
`scheduling.muster.dev/expected-duration`, or because they are being deleted.

A deadline is enforced by the kubelet; a duration is the owner's word. Where both are given the earlier end counts.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from muster.api import durations
from muster.api.types import Pod

LATE_SECONDS = 10.0  # what a kubelet and the watches may take to report an end
GRACE_SECONDS = 30  # `terminationGracePeriodSeconds` of a pod that names none


@lru_cache(maxsize=65_536)
def seconds_of(text: str | None) -> float | None:
    """Seconds since the epoch of a timestamp; None if there is none or it cannot be read."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _duration(text: str) -> float | None:
    try:
        return durations.seconds(text)
    except ValueError:
        return None


def expected_duration(pod: Pod) -> float | None:
    """The seconds that the annotation names; None without it, or if it cannot be read."""
    annotations = pod.metadata.annotations
    text = annotations.expected_duration if annotations is not None else None
    return _duration(text) if text is not None else None


def longest_run(pod: Pod) -> float | None:
    """For how many seconds the pod runs at most, as far as it is known."""
    expected, deadline = expected_duration(pod), pod.spec.active_deadline_seconds
    if expected is None and deadline is None:
        return None
    found = [float(limit) for limit in (expected, deadline) if limit is not None]
    return min(found, default=None)


def started_at(pod: Pod) -> float | None:
    """When the pod was started or, before the kubelet says so, when it was bound."""
    started = seconds_of(pod.status.start_time)
    if started is not None:
        return started
    bound = (c for c in pod.status.conditions or () if c.type == "PodScheduled" and c.status == "True")
    return next((seconds_of(condition.last_transition_time) for condition in bound), None)


def end_of(pod: Pod, now: float) -> float | None:
    """When a pod on a node is gone, as far as it is known; a pod that has not started yet starts now."""
    if pod.metadata.deletion_timestamp is not None:
        return seconds_of(pod.metadata.deletion_timestamp) or now
    longest = longest_run(pod)
    if longest is None:
        return None
    started = started_at(pod)
    return (now if started is None else started) + longest


def overstays_from(pod: Pod, now: float) -> float | None:
    """From when on a pod that is still there has broken its promise; one that its kubelet stops has a grace period."""
    end = end_of(pod, now)
    if end is None:
        return None
    deadline, expected = pod.spec.active_deadline_seconds, expected_duration(pod)
    leaving = pod.metadata.deletion_timestamp is not None
    if not leaving and deadline is not None and (expected is None or deadline <= expected):
        grace = pod.spec.termination_grace_period_seconds
        end += GRACE_SECONDS if grace is None else grace
    return end + LATE_SECONDS


def stays(pod: Pod) -> bool:
    """Whether a pod is part of its node: one of a DaemonSet, or one that the node itself runs."""
    return any(
        owner.controller and owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references or ()
    )


class PodTimes(NamedTuple):
    """What is known about one pod on a node."""

    started: float
    end: float | None
    overstays_from: float  # infinity without an end
    leaving: bool  # it is being deleted
    stays: bool


class RunTimes:
    """The times of pods, computed once for each form of a pod that has started."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Pod, PodTimes]] = {}

    def of(self, pod: Pod, now: float) -> PodTimes:
        """The times of a pod on a node; one that has not started yet starts now."""
        known = self._known.get(pod.metadata.uid)
        if known is not None and known[0] is pod:
            return known[1]
        started, end = started_at(pod), end_of(pod, now)
        until = overstays_from(pod, now) if end is not None else None
        times = PodTimes(
            now if started is None else started,
            end,
            math.inf if until is None else until,
            pod.metadata.deletion_timestamp is not None,
            stays(pod),
        )
        if started is not None:
            self._known[pod.metadata.uid] = (pod, times)
        return times

    def learn(self, pod: Pod, now: float) -> bool:
        """Compute the times of a pod that has started, unless they are known; whether that was necessary."""
        known = self._known.get(pod.metadata.uid)
        if (known is not None and known[0] is pod) or started_at(pod) is None:
            return False
        self.of(pod, now)
        return True

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._known.pop(uid, None)
