"""A client whose writes stop dead: none starts unless the guard says that we may still write.

Reading is always allowed: it is how one finds out what became of a write.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from muster.api.resources import Resource
from muster.client.protocol import Client, Obj, Page, PatchType, WatchEvent
from muster.engine.leader import LeadershipLost


class FencedClient:
    """A whole `Client`."""

    def __init__(self, client: Client, may_write: Callable[[], bool]) -> None:
        self._client = client
        self._may_write = may_write

    def _check(self) -> None:
        if not self._may_write():
            raise LeadershipLost("no write may start: the lease is not surely ours")

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        return await self._client.get(resource, name, namespace)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        into: type[Any] | None = None,
    ) -> Page:
        return await self._client.list(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
            into=into,
        )

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int | None = None,
        into: type[Any] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        return self._client.watch(
            resource,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            timeout_seconds=timeout_seconds,
            into=into,
        )

    async def create(self, resource: Resource, obj: Obj, namespace: str | None = None, *, dry_run: bool = False) -> Obj:
        self._check()
        return await self._client.create(resource, obj, namespace, dry_run=dry_run)

    async def update(
        self, resource: Resource, obj: Obj, *, subresource: str | None = None, dry_run: bool = False
    ) -> Obj:
        self._check()
        return await self._client.update(resource, obj, subresource=subresource, dry_run=dry_run)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        self._check()
        return await self._client.patch(
            resource,
            name,
            patch,
            namespace,
            type=type,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
            dry_run=dry_run,
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Obj:
        self._check()
        return await self._client.delete(
            resource,
            name,
            namespace,
            uid=uid,
            resource_version=resource_version,
            grace_period_seconds=grace_period_seconds,
            propagation_policy=propagation_policy,
        )

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self._check()
        await self._client.bind(namespace, name, uid, node)

    async def request(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Obj:
        self._check()
        return await self._client.request(method, path, body, query)

    async def close(self) -> None:
        """The client belongs to someone else."""
