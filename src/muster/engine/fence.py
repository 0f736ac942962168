"""A client whose writes stop dead: none starts unless the guard says that we may still write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.api.resources import Resource
from muster.client.protocol import Client, Obj, PatchType
from muster.engine.leader import LeadershipLost


class FencedClient:
    """The writing half of a `Client`, and `get` for looking up what became of a write."""

    def __init__(self, client: Client, may_write: Callable[[], bool]) -> None:
        self._client = client
        self._may_write = may_write

    def _check(self) -> None:
        if not self._may_write():
            raise LeadershipLost("no write may start: the lease is not surely ours")

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        return await self._client.get(resource, name, namespace)

    async def create(self, resource: Resource, obj: Obj, namespace: str | None = None) -> Obj:
        self._check()
        return await self._client.create(resource, obj, namespace)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType = "merge",
        subresource: str | None = None,
    ) -> Obj:
        self._check()
        return await self._client.patch(resource, name, patch, namespace, type=type, subresource=subresource)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> Obj:
        self._check()
        return await self._client.delete(resource, name, namespace, uid=uid, resource_version=resource_version)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self._check()
        await self._client.bind(namespace, name, uid, node)
