"""Builds the parts of an engine in one call, once it is known what the server serves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS
from muster.api.types import Pod
from muster.client.clock import Clock
from muster.client.event_recorder import EventRecorder, SeriesFormat
from muster.client.protocol import Client
from muster.engine.api_calls.binding import BindConditions
from muster.engine.api_calls.binding_rights import BindingRights
from muster.engine.api_calls.event import DecidedEvents
from muster.engine.api_discovery import ServedApis
from muster.engine.api_dispatcher import ApiDispatcher
from muster.engine.binding_lease import BindingLease
from muster.engine.call_queue import CallQueue
from muster.engine.decision_log import DecisionLog
from muster.engine.event_source import EventSource
from muster.engine.foreign_pods import ForeignPods
from muster.engine.group_membership import membership
from muster.engine.ignored_fields import hide_gated_fields
from muster.engine.inbox import Inbox
from muster.engine.latest_objects import LatestObjects
from muster.engine.leader_election import Elector
from muster.engine.lease_thread import ElectorThread
from muster.engine.metrics import Metrics
from muster.engine.published_gates import annotation_of, groups_annotation
from muster.engine.settings import Settings
from muster.scheduler.interface.decisions import Bind, RecordEvent
from muster.scheduler.interface.keys import ObjectRef


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an engine is given from outside, and what exists before the server is known."""

    client: Client
    connect_leases: Callable[[], Client] | None  # a client for the thread that renews the lease; None: no thread
    settings: Settings
    config_source: dict[str, Any]
    clock: Clock
    inbox: Inbox
    latest: LatestObjects
    profile_of: Callable[[ObjectRef], str]
    metrics: Metrics
    profiles: Collection[str]
    bind_fault: Callable[[Bind], str]  # why a bind must not be sent any more


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The parts of a running engine."""

    served: ServedApis
    sources: Mapping[str, EventSource]  # by kind
    elector: Elector | ElectorThread | None
    writer: Client  # refuses to write while the lease is not surely ours
    queue: CallQueue
    binding_lease: BindingLease | None
    foreign_pods: ForeignPods | None  # where binds are coordinated with other schedulers
    dispatcher: ApiDispatcher
    decision_log: DecisionLog | None


def build(served: ServedApis, given: Surroundings) -> EngineParts:
    """Make the parts. Nothing is started, except that the decision log is opened."""
    settings, clock = given.settings, given.clock
    elector = _elector(served, given)
    writer = given.client.fenced(elector.guard) if elector is not None else given.client
    queue = CallQueue(settings.limits, given.inbox.crashed, given.metrics.call_ended, given.inbox.wakeup.set)
    events = DecidedEvents(
        EventRecorder(writer, clock, SeriesFormat(settings.instance)),
        api_version=served.api_version,
        profile_of=given.profile_of,
        enabled=served.events,
    )
    lease = _binding_lease(given, writer)
    conditions = BindConditions(BindingRights(clock), lease, given.bind_fault)
    dispatcher = ApiDispatcher(writer, served, queue, given.latest, events, clock, given.inbox.report, conditions)
    sources = _sources(served, given, dispatcher)
    if lease is not None:
        lease.follow(sources[PODS.kind])
    return EngineParts(
        served=served,
        sources=sources,
        elector=elector,
        writer=writer,
        queue=queue,
        binding_lease=lease,
        foreign_pods=ForeignPods(given.profiles, lease.partners) if lease is not None else None,
        dispatcher=dispatcher,
        decision_log=_decision_log(given),
    )


def _elector(served: ServedApis, given: Surroundings) -> Elector | ElectorThread | None:
    election = given.settings.election
    if election is None:
        return None
    published = groups_annotation(given.profiles if served.makes_groups else ())
    election = replace(election, annotations=annotation_of(given.settings.gates) | published)
    if given.connect_leases is None:
        return Elector(given.client, election, given.clock)
    return ElectorThread(given.connect_leases, election, given.clock)


def _binding_lease(given: Surroundings, writer: Client) -> BindingLease | None:
    if not given.settings.share_cluster:
        return None
    return BindingLease(writer, given.profiles, given.clock)


def _sources(served: ServedApis, given: Surroundings, dispatcher: ApiDispatcher) -> dict[str, EventSource]:
    latest = given.latest

    def label_changed(pod: Pod, note: str) -> None:
        meta = pod.metadata
        about = ObjectRef(PODS.kind, meta.namespace, meta.name, meta.uid)
        dispatcher.record(RecordEvent(about, "Warning", "PodGroupLabelChanged", "Scheduling", note))

    derived_for = given.profiles if served.makes_groups else ()
    members = membership(served.groups, label_changed, derived_for)

    hide = hide_gated_fields(given.settings.gates)
    adjust: dict[str, Callable[[Any], Any] | None] = {
        PODS.kind: members,
        POD_GROUPS.kind: hide,
        COMPOSITE_POD_GROUPS.kind: hide,
    }

    def forget_pod(uid: str) -> None:
        members.forget(uid)
        latest.forget(uid)

    return {
        kind: EventSource(
            given.client,
            resource,
            given.inbox.report,
            given.clock,
            known=latest.watched(kind),
            adjust=adjust.get(kind),
            forget=forget_pod if kind == PODS.kind else None,
        )
        for kind, resource in served.resources.items()
    }


def _decision_log(given: Surroundings) -> DecisionLog | None:
    path = given.settings.decision_log
    return DecisionLog.open(path, given.config_source, given.settings) if path is not None else None
