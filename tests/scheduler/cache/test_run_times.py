"""When pods end, as far as it is known."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from muster.api import types
from muster.scheduler.cache import run_times
from muster.scheduler.cache.run_times import RunTimes
from tests.build.objects import a_pod

BEGIN = 1_767_225_600.0


def a_run(duration: str | None = None, **fields: Any) -> types.Pod:
    pod = a_pod("p", node="n0", **fields)
    meta = msgspec.structs.replace(pod.metadata, annotations=types.PodAnnotations(duration))
    return msgspec.structs.replace(pod, metadata=meta)


@pytest.mark.parametrize(
    ("duration", "deadline", "longest"),
    [(None, None, None), ("90s", None, 90), (None, 60, 60), ("90s", 60, 60), ("30s", 60, 30), ("soon", None, None)],
)
def test_the_earlier_of_deadline_and_duration_counts(duration: str | None, deadline: int | None, longest: float | None):
    pod = a_run(duration, **({"activeDeadlineSeconds": deadline} if deadline else {}))
    assert run_times.longest_run(pod) == longest
    assert run_times.end_of(pod, BEGIN + 7) == (None if longest is None else BEGIN + longest)


def test_a_pod_that_has_not_started_starts_now():
    pod = a_run("90s")
    pod = msgspec.structs.replace(pod, status=types.PodStatus(phase="Pending"))
    assert run_times.started_at(pod) is None
    assert run_times.end_of(pod, BEGIN + 7) == BEGIN + 97


def test_before_the_kubelet_says_so_a_pod_started_when_it_was_bound():
    bound = types.Condition("PodScheduled", "True", last_transition_time="2026-01-01T00:00:05Z")
    pod = msgspec.structs.replace(a_run(), status=types.PodStatus(phase="Pending", conditions=(bound,)))
    assert run_times.started_at(pod) == BEGIN + 5


def test_a_pod_that_is_being_deleted_ends_at_its_deletion_timestamp():
    pod = a_pod("p", node="n0", deleting=True, activeDeadlineSeconds=5)
    assert run_times.end_of(pod, BEGIN) == run_times.seconds_of("2030-01-01T00:00:00Z")


def test_a_promise_is_broken_ten_seconds_after_the_end_and_a_deadline_after_the_grace_period_too():
    assert run_times.overstays_from(a_run("90s"), BEGIN) == BEGIN + 100
    assert run_times.overstays_from(a_run(activeDeadlineSeconds=90), BEGIN) == BEGIN + 130
    assert (
        run_times.overstays_from(a_run(activeDeadlineSeconds=90, terminationGracePeriodSeconds=0), BEGIN) == BEGIN + 100
    )
    assert run_times.overstays_from(a_run("60s", activeDeadlineSeconds=90), BEGIN) == BEGIN + 70
    assert run_times.overstays_from(a_run(), BEGIN) is None


def test_pods_of_a_daemon_set_and_of_the_node_itself_stay():
    assert run_times.stays(a_pod("p", owner="DaemonSet/d"))
    assert run_times.stays(a_pod("p", owner="Node/n0"))
    assert not run_times.stays(a_pod("p", owner="Job/j"))
    assert not run_times.stays(a_pod("p"))


def test_times_are_those_of_the_latest_form_of_a_pod():
    times = RunTimes()
    first, second = a_run("90s"), a_run("30s")
    assert times.of(first, BEGIN).end == BEGIN + 90
    assert times.of(second, BEGIN).end == BEGIN + 30
    assert times.of(a_run(), BEGIN) == (BEGIN, None, math.inf, False, False)


def test_a_pod_that_has_not_started_is_looked_at_each_time():
    times = RunTimes()
    pod = msgspec.structs.replace(a_run("90s"), status=types.PodStatus(phase="Pending"))
    assert times.of(pod, BEGIN).end == BEGIN + 90
    assert times.of(pod, BEGIN + 10).end == BEGIN + 100
    times.forget(pod.metadata.uid)
    assert times.of(pod, BEGIN).end == BEGIN + 90


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_what_is_no_time_is_none(text: str | None):
    assert run_times.seconds_of(text) is None
