"""The explanation for a user who may not see the cluster: what the object's own conditions and events say.

The scheduler writes the facts of its verdict, shortened, on the objects themselves. Rights in one namespace are enough
to read them; the right that would tell more is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muster.api import resources as r
from muster.api.errors import ApiError

if TYPE_CHECKING:
    from muster.api.resources import Resource
    from muster.cli.source import Source
    from muster.client.protocol import Client, Obj
    from muster.engine.api_discovery import ServedApis
    from muster.scheduler.explanation import Explanation

MOST_EVENTS = 5
JOB_LABEL = "batch.kubernetes.io/job-name"


class About(NamedTuple):
    """An object that may tell something."""

    kind: str
    name: str
    obj: Obj


def with_few_rights(asked: Source, kind: str, namespace: str, name: str, refusal: ApiError) -> Explanation:
    """What can be said from inside one namespace."""

    async def ask(client: Client) -> tuple[list[About], list[str]]:
        from muster.engine.api_discovery import discover

        served = await discover(client)
        found = await _objects(client, served, kind, namespace, name)
        events = [note for about in found for note in await _events(client, about, namespace)]
        return found, events

    found, events = asked.call(ask)
    return _explanation(found, namespace, tuple(dict.fromkeys(events))[-MOST_EVENTS:], refusal.message)


async def _objects(client: Client, served: ServedApis, kind: str, namespace: str, name: str) -> list[About]:
    """The object and, for a pod or a Job, the group it is decided with: the one that knows most comes first."""
    resource = {"Pod": r.PODS, "Job": r.JOBS}.get(kind) or served.resources.get(kind)
    if resource is None:
        raise ApiError(404, "NotFound", f"the server has no {kind}")
    own = About(kind, name, await client.get(resource, name, namespace))
    if kind == "Job":
        pods = await client.list(r.PODS, namespace, label_selector=f"{JOB_LABEL}={name}")
        waiting = [pod for pod in pods.items if not (pod.get("spec") or {}).get("nodeName")] or pods.items
        return [*await _group_of(client, served, waiting[0], namespace), own] if waiting else [own]
    return [*await _group_of(client, served, own.obj, namespace), own] if kind == "Pod" else [own]


async def _group_of(client: Client, served: ServedApis, pod: Obj, namespace: str) -> list[About]:
    about = [About("Pod", pod["metadata"]["name"], pod)]
    group = ((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    group = group or (pod["metadata"].get("labels") or {}).get("scheduling.muster.dev/pod-group")
    resource: Resource | None = served.resources.get("PodGroup")
    if not group or resource is None:
        return about
    try:
        return [About("PodGroup", group, await client.get(resource, group, namespace)), *about]
    except ApiError:
        return about


async def _events(client: Client, about: About, namespace: str) -> list[str]:
    selector = f"regarding.name={about.name},regarding.kind={about.kind}"
    try:
        events = await client.list(r.EVENTS, namespace, field_selector=selector)
    except ApiError:
        return []
    return [f"{about.kind.lower()} {about.name}: {e.get('reason', '')}: {e.get('note', '')}" for e in events.items]


def _explanation(found: list[About], namespace: str, events: tuple[str, ...], refusal: str) -> Explanation:
    from muster.scheduler.explain import SCHEDULED
    from muster.scheduler.explanation import Explanation, Said

    told = [(about, each) for about in found for each in _conditions(about.obj) if each["type"] in SCHEDULED]
    about = told[0][0] if told else found[0]
    said = _said(told[0][1], Said) if told else None
    name = f"{about.kind.lower()} {about.name}"
    if said is None:
        verdict, sentence = "Unknown", f"{name} says nothing about its scheduling yet"
    elif said.status == "True":
        verdict, sentence = "Running", f"{name} was scheduled"
    else:
        verdict = said.reason
        sentence = f"{name} waits ({said.reason})" + (f": {said.message}" if said.message else "")
    meta = about.obj.get("metadata") or {}
    return Explanation(
        about.kind,
        namespace,
        about.name,
        verdict,
        sentence,
        int((about.obj.get("spec") or {}).get("priority") or 0),
        since=meta.get("creationTimestamp") or "",
        condition=said,
        events=events,
        missing=refusal,
    )


def _conditions(obj: Obj) -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []


def _said(condition: dict[str, Any], said: Any) -> Any:
    return said(
        condition["status"],
        condition.get("reason") or "",
        condition.get("message") or "",
        condition.get("lastTransitionTime") or "",
    )
