"""Discovers which resources the server has, so that the garbage collector covers new kinds without a list here."""

from __future__ import annotations

from typing import Any

from muster.api.resources import Resource
from muster.client.protocol import Client

_NEEDED = frozenset(("list", "watch", "delete"))


async def discover(client: Client) -> tuple[Resource, ...]:
    """Every resource that can be listed, watched and deleted, each in its preferred version."""
    found = await _resources(client, "/api/v1", "", "v1")
    seen = {(each.group, each.plural) for each in found}
    groups: list[dict[str, Any]] = (await client.request("GET", "/apis")).get("groups") or []
    for group in groups:
        for version in group.get("versions") or ():
            for each in await _resources(client, f"/apis/{version['groupVersion']}", group["name"], version["version"]):
                if (each.group, each.plural) not in seen:
                    seen.add((each.group, each.plural))
                    found.append(each)
    return tuple(found)


async def _resources(client: Client, path: str, group: str, version: str) -> list[Resource]:
    answer = await client.request("GET", path)
    return [
        Resource(group, version, each["name"], each["kind"], bool(each.get("namespaced")))
        for each in answer.get("resources") or ()
        if "/" not in each["name"] and set(each.get("verbs") or ()) >= _NEEDED
    ]
