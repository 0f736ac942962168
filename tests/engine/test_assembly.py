"""The parts of an engine, built from what the server serves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.api.resources import NAMESPACES, NODES, PODS, Resource
from muster.api.types import Pod
from muster.engine.api_discovery import CRDS, NATIVE, ServedApis
from muster.engine.assembly import Surroundings, build
from muster.engine.group_membership import LABEL
from muster.engine.inbox import Inbox
from muster.engine.latest_objects import LatestObjects, profile_lookup
from muster.engine.leader_election import Election, Elector, LeadershipLost
from muster.engine.lease_thread import ElectorThread
from muster.engine.metrics import Metrics
from muster.engine.settings import Settings
from muster.scheduler.interface.keys import ObjectRef
from tests.client.clocks import StoppedClock

GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


class Recording:
    """A client that notes its writes."""

    def __init__(self, guard: Any = None) -> None:
        self.guard = guard

    def fenced(self, guard: Any) -> Recording:
        return Recording(guard)

    async def create(self, *args: Any) -> dict[str, Any]:
        self.guard()
        return {}


def served(groups: str = NATIVE) -> ServedApis:
    return ServedApis(groups, {each.kind: each for each in (PODS, NODES, NAMESPACES, GROUPS)})


def surroundings(**settings: Any) -> Surroundings:
    latest = LatestObjects()
    return Surroundings(
        client=Recording(),  # type: ignore[arg-type]
        connect_leases=None,
        settings=Settings(**settings),
        config_source={},
        clock=StoppedClock(),
        inbox=Inbox(),
        latest=latest,
        profile_of=profile_lookup(latest, ["muster"]),
        metrics=Metrics(),
        profiles=["muster"],
        bind_fault=lambda bind: "",
    )


def a_pod(uid: str, version: int, group: str) -> Pod:
    meta = {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": str(version), "labels": {LABEL: group}}
    return msgspec.convert({"metadata": meta, "spec": {"schedulerName": "muster"}}, Pod)


def test_every_served_kind_has_a_source_that_feeds_the_latest_objects():
    given = surroundings()
    parts = build(served(), given)

    parts.sources["Pod"].update(a_pod("u1", 7, "g"))

    assert list(parts.sources) == ["Pod", "Node", "Namespace", "PodGroup"]
    assert given.latest.version_of(ObjectRef("Pod", "ns", "p", "u1")) == "7"
    assert len(given.inbox) == 1


async def test_with_crds_the_first_label_counts_until_the_pod_is_gone():
    given = surroundings()
    parts = build(served(CRDS), given)
    pods = parts.sources["Pod"]

    pods.update(a_pod("u1", 7, "first"))
    pods.update(a_pod("u1", 8, "second"))
    assert pods.known["ns", "p"].spec.scheduling_group.pod_group_name == "first"
    assert parts.queue.pending() == 1, "the change is reported as an event"

    pods.delete(a_pod("u1", 9, "second"))
    pods.update(a_pod("u1", 10, "second"))
    assert pods.known["ns", "p"].spec.scheduling_group.pod_group_name == "second"
    await parts.queue.cancel()


def test_without_an_election_nothing_is_fenced():
    given = surroundings()
    parts = build(served(), given)

    assert parts.elector is None
    assert parts.writer is given.client


async def test_with_an_election_writes_are_refused_until_the_lease_is_held():
    parts = build(served(), surroundings(election=Election("me")))

    assert isinstance(parts.elector, Elector)
    with pytest.raises(LeadershipLost):
        await parts.writer.create(PODS, {})


def test_with_a_client_for_leases_the_elector_has_a_thread():
    given = dataclasses.replace(surroundings(election=Election("me")), connect_leases=Recording)  # type: ignore[arg-type]

    assert isinstance(build(served(), given).elector, ElectorThread)


def test_the_decision_log_is_opened_with_its_header(tmp_path: Path):
    parts = build(served(), surroundings(decision_log=tmp_path / "log"))

    assert parts.decision_log is not None
    parts.decision_log.close()
    assert (tmp_path / "log").read_bytes().count(b"\n") == 1


def test_parts_cannot_be_exchanged():
    parts = build(served(), surroundings())

    with pytest.raises(dataclasses.FrozenInstanceError):
        parts.elector = None  # type: ignore[misc]
