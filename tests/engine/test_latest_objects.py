"""The latest known state of an object: the watch's, or our own write where that is newer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api import groups, types
from muster.engine.latest_objects import REMEMBERED, LatestObjects, profile_lookup
from muster.scheduler.interface.keys import ObjectRef

POD = ObjectRef("Pod", "ns", "p", "u1")


def watched(
    latest: LatestObjects, version: str, *, status: str = "", uid: str = "u1", scheduler: str = "muster"
) -> None:
    conditions = [{"type": "PodScheduled", "status": status}] if status else []
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": version, "generation": 3},
        "spec": {"schedulerName": scheduler},
        "status": {"conditions": conditions},
    }
    latest.watched("Pod")["ns", "p"] = msgspec.convert(body, types.Pod)


def answer(version: str, status: str, uid: str = "u1") -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "resourceVersion": version},
        "status": {"conditions": [{"type": "PodScheduled", "status": status}]},
    }


@pytest.fixture
def latest() -> LatestObjects:
    return LatestObjects()


def test_of_an_unknown_object_nothing_is_known(latest: LatestObjects):
    assert latest.look("Pod", "ns", "p") is None
    assert latest.version_of(POD) is None
    assert latest.status_of(POD, "PodScheduled") is None
    assert latest.generation_of(POD) == 0


def test_the_watch_shows_version_generation_and_conditions(latest: LatestObjects):
    watched(latest, "7", status="False")

    assert latest.version_of(POD) == "7"
    assert latest.generation_of(POD) == 3
    assert latest.status_of(POD, "PodScheduled") == "False"
    assert latest.status_of(POD, "Ready") is None


def test_our_own_write_counts_until_the_watch_shows_it(latest: LatestObjects):
    watched(latest, "7", status="False")
    latest.answered(answer("8", "True"))
    assert (latest.version_of(POD), latest.status_of(POD, "PodScheduled")) == ("8", "True")

    watched(latest, "9", status="False")
    assert (latest.version_of(POD), latest.status_of(POD, "PodScheduled")) == ("9", "False")


def test_another_object_of_the_name_is_not_taken_for_it(latest: LatestObjects):
    watched(latest, "7", status="False", uid="another")

    assert latest.version_of(POD) is None
    assert latest.status_of(POD, "PodScheduled") is None


def test_what_is_forgotten_is_no_longer_known(latest: LatestObjects):
    latest.answered(answer("8", "True"))
    latest.forget("u1")

    assert latest.version_of(POD) is None


def test_the_oldest_own_writes_are_forgotten(latest: LatestObjects):
    for number in range(REMEMBERED + 1):
        latest.answered(answer("8", "True", uid=f"u{number}"))

    assert latest.version_of(ObjectRef("Pod", "ns", "p", "u0")) is None
    assert latest.version_of(POD) == "8"


def test_a_group_without_a_parent_is_a_root(latest: LatestObjects):
    for name, parent in (("top", None), ("child", "tree")):
        spec = {"schedulingPolicy": {"basic": {}}, "parentCompositePodGroupName": parent}
        body = {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}
        latest.watched("PodGroup")["ns", name] = msgspec.convert(body, groups.PodGroup)

    assert latest.is_root(ObjectRef("PodGroup", "ns", "top"))
    assert not latest.is_root(ObjectRef("PodGroup", "ns", "child"))
    assert latest.is_root(ObjectRef("PodGroup", "ns", "unknown"))


@pytest.mark.parametrize(("scheduler", "profile"), [("second", "second"), ("foreign", "first")])
def test_a_pods_profile_is_its_schedulers_or_the_first(latest: LatestObjects, scheduler: str, profile: str):
    watched(latest, "7", scheduler=scheduler)
    profile_of = profile_lookup(latest, {"first": None, "second": None})

    assert profile_of(POD) == profile
    assert profile_of(ObjectRef("PodGroup", "ns", "p")) == "first"
