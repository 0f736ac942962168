"""Adds and removes one finalizer, only on the version of the object that was read."""

from __future__ import annotations

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.api.types import ObjectMeta
from muster.client.protocol import Client


async def add_finalizer(client: Client, resource: Resource, metadata: ObjectMeta, finalizer: str) -> None:
    await _write(client, resource, metadata, [*(metadata.finalizers or ()), finalizer])


async def remove_finalizer(client: Client, resource: Resource, metadata: ObjectMeta, finalizer: str) -> None:
    await _write(client, resource, metadata, [each for each in metadata.finalizers or () if each != finalizer])


async def _write(client: Client, resource: Resource, metadata: ObjectMeta, finalizers: list[str]) -> None:
    patch = {
        "metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "finalizers": finalizers or None,
        }
    }
    try:
        await client.patch(resource, metadata.name, patch, metadata.namespace or None)
    except ApiError as error:
        if error.code != 404:
            raise
