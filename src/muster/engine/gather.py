"""A snapshot of a live cluster: one list of every kind a decision needs, straight into projections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.api.groups import GROUP, HUB
from muster.api.resources import Resource
from muster.api.versions import convert
from muster.client.protocol import Client
from muster.engine.membership import ByField, ByLabel
from muster.engine.served import CRDS, OLD, discover
from muster.scheduler.interface.events import KINDS
from muster.scheduler.simulation.snapshot import Snapshot

PAGE = 5000


async def gather(client: Client, taken_at: str = "") -> Snapshot:
    """Everything the scheduler would know now. Raises ApiError 403, naming every right that is missing."""
    served = await discover(client)
    kinds = [resource for kind, resource in served.resources.items() if kind in KINDS]
    found = await asyncio.gather(*(_list(client, resource) for resource in kinds), return_exceptions=True)
    objects = dict(_seen(zip(kinds, found, strict=True)))
    member = ByLabel(lambda pod, why: None) if served.groups == CRDS else ByField()
    objects["Pod"] = [member(pod) for pod in objects.get("Pod", ())]
    schedulers = sorted({pod.spec.scheduler_name for pod in objects["Pod"] if pod.spec.scheduler_name})
    return Snapshot(objects, tuple(schedulers), taken_at)


def _seen(answers: Iterable[tuple[Resource, list[Any] | BaseException]]) -> Iterable[tuple[str, list[Any]]]:
    """The lists by kind, if there is one of every kind."""
    seen: list[tuple[str, list[Any]]] = []
    hidden: list[str] = []
    for resource, answer in answers:
        if isinstance(answer, ApiError) and answer.code == 403:
            hidden.append(resource.plural)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            seen.append((resource.kind, answer))
    if hidden:
        text = f"listing {', '.join(sorted(hidden))} in the whole cluster is forbidden to this user"
        raise ApiError(403, "Forbidden", text)
    return seen


async def _list(client: Client, resource: Resource) -> list[Any]:
    kind = KINDS[resource.kind]
    old = resource.group == GROUP and resource.version == OLD
    found: list[Any] = []
    token = ""
    while True:
        page = await client.list(resource, limit=PAGE, continue_token=token, into=None if old else kind)
        found += [msgspec.convert(convert(item, HUB), kind) if old else item for item in page.items]
        token = page.continue_token
        if not token:
            return found
