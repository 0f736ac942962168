"""What a line of a recording changes in the objects of the cluster it was made in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from muster.dashboard.board import Objects
from muster.scheduler.interface.decisions import Bind, Decision
from muster.scheduler.interface.events import BindFailed, Event, ObjectDeleted, ObjectUpdated
from muster.scheduler.simulation.decision_log import Line, LoggedCycle, LoggedEvent


def changes_of(line: Line, objects: Objects) -> Iterator[Event]:
    """What a line changes in the objects of the cluster: an event as it is, the binds of a cycle as bound pods."""
    if isinstance(line, LoggedCycle):
        yield from _bound(line.decisions, objects)
    elif isinstance(line, LoggedEvent):
        if isinstance(line.event, BindFailed):
            yield from _unbound(line.event, objects)
        else:
            yield line.event


def _bound(decisions: list[Decision], objects: Objects) -> Iterator[Event]:
    for decision in decisions:
        if isinstance(decision, Bind):
            pod = objects.get("Pod", {}).get((decision.pod.namespace, decision.pod.name))
            if pod is not None and pod.metadata.uid == decision.pod.uid:
                yield ObjectUpdated("Pod", _on(pod, decision.node))


def _unbound(event: BindFailed, objects: Objects) -> Iterator[Event]:
    for pod in list(objects.get("Pod", {}).values()):
        if pod.metadata.uid == event.uid and pod.spec.node_name == event.node:
            # A scheduler does not believe that a bound pod is unbound again; this one begins anew.
            yield ObjectDeleted("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            yield ObjectUpdated("Pod", _on(pod, ""))


def _on(pod: Any, node: str) -> Any:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def apply_change(objects: Objects, event: Event) -> None:
    """Keep the objects of a cluster current by one change."""
    if isinstance(event, ObjectUpdated):
        meta = event.object.metadata
        objects.setdefault(event.kind, {})[meta.namespace, meta.name] = event.object
    elif isinstance(event, ObjectDeleted):
        objects.get(event.kind, {}).pop((event.namespace, event.name), None)
