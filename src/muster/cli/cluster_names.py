"""Names of a cluster's objects for the shell's completion.

The shell waits for the answer, so little is asked and not for long; where there is no cluster, nothing is offered and
nothing is said.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import click

from muster.api.groups import GROUP, HUB
from muster.api.manifests import CRD_GROUP
from muster.api.resources import COMPOSITE_POD_GROUPS, JOBS, NODES, POD_GROUPS, PODS, Resource

PATIENCE = 2.0  # seconds, as long as one waits at a prompt
MOST = 500

_VERSIONS = ((GROUP, "v1beta1"), (GROUP, HUB), (CRD_GROUP, HUB))
_KINDS = {"podgroup": POD_GROUPS, "compositepodgroup": COMPOSITE_POD_GROUPS, "job": JOBS, "pod": PODS}


def nodes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of nodes."""
    return _begin(_listed(ctx, [NODES]), incomplete)


def groups(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of groups."""
    return _begin(_listed(ctx, [POD_GROUPS, COMPOSITE_POD_GROUPS]), incomplete)


def targets(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """KIND/NAME: first the kinds, then the names of the kind that was chosen."""
    kind, slash, _rest = incomplete.partition("/")
    if not slash:
        return _begin([f"{each}/" for each in _KINDS], incomplete)
    resource = _KINDS.get(kind)
    return _begin([f"{kind}/{name}" for name in _listed(ctx, [resource])], incomplete) if resource else []


def _begin(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _listed(ctx: click.Context, resources: list[Resource]) -> list[str]:
    with contextlib.suppress(Exception):
        return asyncio.run(asyncio.wait_for(_ask(ctx.params, resources), PATIENCE))
    return []


async def _ask(params: dict[str, Any], resources: list[Resource]) -> list[str]:
    from muster.client.http import HTTPClient
    from muster.client.kubeconfig import load

    config = load(params.get("kubeconfig"), params.get("context"))
    namespace = params.get("namespace") or config.namespace or "default"
    found: list[str] = []
    async with HTTPClient(config) as client:
        for resource in resources:
            found += await _names(client, resource, namespace if resource.namespaced else None)
    return sorted(found)


async def _names(client: Any, resource: Resource, namespace: str | None) -> list[str]:
    """The names in one collection; groups may be served under several versions, or under none."""
    from muster.api.errors import ApiError

    served = [resource]
    if resource.group == GROUP:
        served = [resource._replace(group=group, version=version) for group, version in _VERSIONS]
    for each in served:
        try:
            page = await client.list(each, namespace, limit=MOST)
        except ApiError:
            continue
        return [str(item["metadata"]["name"]) for item in page.items]
    return []
