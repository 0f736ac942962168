"""Writes status: only the fields that differ, and only on the version of the object that was read."""

from __future__ import annotations

from typing import Any

from muster.api.resources import Resource
from muster.client.protocol import Client
from muster.controllers.objects import UnstructuredObject

JSON = dict[str, Any]


async def write_status(client: Client, resource: Resource, obj: UnstructuredObject, status: JSON) -> None:
    """Patch an object's status, if it differs. 409 when the object has changed meanwhile."""
    changes = merge_patch(obj.status, status)
    if not changes:
        return
    patch = {"metadata": {"resourceVersion": obj.metadata.resource_version}, "status": changes}
    await client.patch(resource, obj.metadata.name, patch, obj.metadata.namespace or None, subresource="status")


def merge_patch(old: JSON, new: JSON) -> JSON:
    """The merge patch that makes `old` into `new`."""
    changes: JSON = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = merge_patch(before, value)
            if inner:
                changes[key] = inner
        elif key not in old or before != value:
            changes[key] = value
    return changes


def condition(conditions: list[JSON], kind: str) -> JSON | None:
    return next((each for each in conditions if each.get("type") == kind), None)


def with_condition(conditions: list[JSON], new: JSON) -> list[JSON]:
    """The conditions with one set; its transition time moves only when its status does."""
    old = condition(conditions, new["type"])
    if old is None:
        return [*conditions, new]
    if old.get("status") == new["status"] and "lastTransitionTime" in old:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
        same = all(old.get(key) == value for key, value in new.items() if key != "lastUpdateTime")
        if same:
            return conditions
    return [new if each is old else each for each in conditions]
