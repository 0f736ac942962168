"""A snapshot of a live cluster: one list of every kind that a decision needs, decoded into the scheduler's types."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.paging import list_all
from muster.client.protocol import Client
from muster.engine.api_discovery import CRDS, NATIVE, NONE, discover
from muster.engine.changeable_fields import changeable_fields
from muster.engine.event_source import to_hub
from muster.engine.group_membership import membership
from muster.engine.published_gates import groups_made_for, published_gates
from muster.scheduler.interface.events import KINDS
from muster.scheduler.simulation.snapshot import Snapshot

PAGE = 5000  # asked once, so large pages save round trips


async def take_snapshot(client: Client, taken_at: str = "") -> Snapshot:
    """Everything the scheduler would know now. Raises ApiError 403, naming every right that is missing."""
    served = await discover(client)
    kinds = [resource for kind, resource in served.resources.items() if kind in KINDS]
    found = await asyncio.gather(*(_objects(client, resource) for resource in kinds), return_exceptions=True)
    objects = dict(_listed(zip(kinds, found, strict=True)))
    derived_for = await groups_made_for(client) if served.groups != NONE else ()
    member = membership(CRDS if served.groups == CRDS else NATIVE, lambda pod, why: None, derived_for)
    objects["Pod"] = [member(pod) for pod in objects.get("Pod", ())]
    schedulers = sorted({pod.spec.scheduler_name for pod in objects["Pod"] if pod.spec.scheduler_name})
    changeable = await changeable_fields(client, served.groups)
    gates = (await published_gates(client)).switched()
    return Snapshot(objects, tuple(schedulers), taken_at, changeable, gates, served.groups == CRDS)


def _listed(answers: Iterable[tuple[Resource, list[Any] | BaseException]]) -> Iterable[tuple[str, list[Any]]]:
    """The lists by kind, if there is one of every kind."""
    listed: list[tuple[str, list[Any]]] = []
    forbidden: list[str] = []
    for resource, answer in answers:
        if isinstance(answer, ApiError) and answer.code == 403:
            forbidden.append(resource.plural)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            listed.append((resource.kind, answer))
    if forbidden:
        text = f"listing {', '.join(sorted(forbidden))} in the whole cluster is forbidden to this user"
        raise ApiError(403, "Forbidden", text)
    return listed


async def _objects(client: Client, resource: Resource) -> list[Any]:
    kind, convert = KINDS[resource.kind], to_hub(resource)
    page = await list_all(client, resource, size=PAGE, into=kind if convert is None else None)
    return page.items if convert is None else [msgspec.convert(convert(item), kind) for item in page.items]
