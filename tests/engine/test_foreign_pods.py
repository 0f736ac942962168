"""Pods of other schedulers: a gang waits a moment for those that are about to be bound, and not for long."""

from __future__ import annotations

import pytest

from muster.api.types import Pod
from muster.engine.foreign_pods import MOST_SETTLE, NEW_SECONDS, SETTLE, ForeignPods
from muster.scheduler.interface.events import ObjectDeleted, ObjectUpdated
from tests.build.objects import a_pod, of


@pytest.fixture
def foreign() -> ForeignPods:
    return ForeignPods(["muster"])


def judged(name: str) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    meta = {"name": name, "namespace": "ns", "uid": f"pod-{name}"}
    return of(Pod, {"metadata": meta, "spec": {"schedulerName": "other"}, "status": {"conditions": [condition]}})


def see(foreign: ForeignPods, pod: Pod, now: float) -> None:
    foreign.handled(ObjectUpdated("Pod", pod), now)


def test_without_pods_of_others_nothing_is_waited_for(foreign: ForeignPods):
    see(foreign, a_pod("own", scheduler="muster"), 1.0)
    assert foreign.settled_at(2.0) == 2.0


def test_a_new_pod_of_another_scheduler_is_waited_for_until_it_is_judged(foreign: ForeignPods):
    see(foreign, a_pod("new", scheduler="other"), 1.0)
    assert foreign.settled_at(2.0) == 2.0 + MOST_SETTLE
    see(foreign, judged("new"), 2.1)
    assert foreign.settled_at(2.0) == 2.0 + SETTLE
    foreign.handled(ObjectDeleted("Pod", "ns", "new", "pod-new"), 2.2)
    assert foreign.settled_at(2.0) == 2.0


def test_after_a_bind_of_another_scheduler_it_is_quiet_for_a_while_first(foreign: ForeignPods):
    see(foreign, a_pod("new", scheduler="other"), 1.0)
    see(foreign, a_pod("new", scheduler="other", node="n0"), 2.3)
    assert foreign.settled_at(2.0) == 2.3 + SETTLE
    assert foreign.settled_at(3.0) == 3.0


def test_a_pod_that_nobody_judges_is_not_waited_for_for_ever(foreign: ForeignPods):
    see(foreign, a_pod("orphan", scheduler="nobody"), 1.0)
    assert foreign.settled_at(1.0 + NEW_SECONDS) == 1.0 + NEW_SECONDS


def test_a_pod_that_was_running_when_it_was_first_seen_is_no_new_bind(foreign: ForeignPods):
    see(foreign, a_pod("old", scheduler="other", node="n0"), 2.0)
    assert foreign.settled_at(2.0) == 2.0


def test_a_scheduler_that_shares_the_lease_needs_no_wait():
    partners: set[str] = set()
    foreign = ForeignPods(["muster"], partners)
    partners.add("second")
    see(foreign, a_pod("new", scheduler="second"), 1.0)
    assert foreign.settled_at(2.0) == 2.0
