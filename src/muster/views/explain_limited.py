"""An explanation for a user who may only read one namespace: what the objects' own conditions and events say.

The scheduler writes a short form of its verdict on the objects themselves. The right that is missing for a full
explanation is named in the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muster.api import resources as r
from muster.api.errors import ApiError
from muster.api.manifests import CRD_LABEL

if TYPE_CHECKING:
    from muster.client.protocol import Client, Obj
    from muster.engine.api_discovery import ServedApis
    from muster.scheduler.explain.explanation import Explanation, ReportedCondition

MOST_EVENTS = 5
JOB_LABEL = "batch.kubernetes.io/job-name"


class NamedObject(NamedTuple):
    """An object of the API, with its kind and name."""

    kind: str
    name: str
    obj: Obj


async def explain_limited(client: Client, kind: str, namespace: str, name: str, refusal: ApiError) -> Explanation:
    """The explanation that can be given from inside one namespace."""
    from muster.engine.api_discovery import discover

    served = await discover(client)
    found = await _objects(client, served, kind, namespace, name)
    events = [text for each in found for text in await _events(client, each, namespace)]
    return _explanation(found, namespace, tuple(dict.fromkeys(events))[-MOST_EVENTS:], refusal.message)


async def _objects(client: Client, served: ServedApis, kind: str, namespace: str, name: str) -> list[NamedObject]:
    """The object and, for a pod or a Job, the group that it is scheduled with; the group comes first."""
    resource = {"Pod": r.PODS, "Job": r.JOBS}.get(kind) or served.resources.get(kind)
    if resource is None:
        raise ApiError(404, "NotFound", f"the server has no {kind}")
    own = NamedObject(kind, name, await client.get(resource, name, namespace))
    if kind == "Job":
        pods = await client.list(r.PODS, namespace, label_selector=f"{JOB_LABEL}={name}")
        pending = [pod for pod in pods.items if not _spec(pod).get("nodeName")] or pods.items
        return [*await _group_of(client, served, pending[0], namespace), own] if pending else [own]
    return [*await _group_of(client, served, own.obj, namespace), own] if kind == "Pod" else [own]


async def _group_of(client: Client, served: ServedApis, pod: Obj, namespace: str) -> list[NamedObject]:
    found = [NamedObject("Pod", pod["metadata"]["name"], pod)]
    named: Obj = _spec(pod).get("schedulingGroup") or {}
    labels: Obj = pod["metadata"].get("labels") or {}
    group: str | None = named.get("podGroupName") or labels.get(CRD_LABEL)
    resource = served.resources.get("PodGroup")
    if not group or resource is None:
        return found
    try:
        return [NamedObject("PodGroup", group, await client.get(resource, group, namespace)), *found]
    except ApiError:
        return found


async def _events(client: Client, about: NamedObject, namespace: str) -> list[str]:
    selector = f"regarding.name={about.name},regarding.kind={about.kind}"
    try:
        events = await client.list(r.EVENTS, namespace, field_selector=selector)
    except ApiError:
        return []
    return [f"{about.kind.lower()} {about.name}: {e.get('reason', '')}: {e.get('note', '')}" for e in events.items]


def _explanation(found: list[NamedObject], namespace: str, events: tuple[str, ...], refusal: str) -> Explanation:
    from muster.scheduler.explain.explain import SCHEDULED
    from muster.scheduler.explain.explanation import Explanation

    scheduled = [(each, c) for each in found for c in _conditions(each.obj) if c["type"] in SCHEDULED]
    about = scheduled[0][0] if scheduled else found[0]
    condition = _reported(scheduled[0][1]) if scheduled else None
    name = f"{about.kind.lower()} {about.name}"
    if condition is None:
        verdict, sentence = "Unknown", f"{name} says nothing about its scheduling yet"
    elif condition.status == "True":
        verdict, sentence = "Running", f"{name} was scheduled"
    else:
        verdict = condition.reason
        sentence = f"{name} waits ({condition.reason})" + (f": {condition.message}" if condition.message else "")
    meta: Obj = about.obj.get("metadata") or {}
    return Explanation(
        about.kind,
        namespace,
        about.name,
        verdict,
        sentence,
        int(_spec(about.obj).get("priority") or 0),
        since=meta.get("creationTimestamp") or "",
        condition=condition,
        events=events,
        missing=refusal,
    )


def _spec(obj: Obj) -> dict[str, Any]:
    return obj.get("spec") or {}


def _conditions(obj: Obj) -> list[dict[str, Any]]:
    status: Obj = obj.get("status") or {}
    return status.get("conditions") or []


def _reported(condition: dict[str, Any]) -> ReportedCondition:
    from muster.scheduler.explain.explanation import ReportedCondition

    return ReportedCondition(
        condition["status"],
        condition.get("reason") or "",
        condition.get("message") or "",
        condition.get("lastTransitionTime") or "",
    )
