"""Namespace deletion: deletes the content, reports what remains in the status, then finalizes the namespace."""

from __future__ import annotations

import asyncio
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import NAMESPACES, Resource
from muster.client.clock import timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import MetadataOnly, UnstructuredObject

_FINALIZER = "kubernetes"
_LOOK_AGAIN = 0.5
_LOOK_AGAIN_STUCK = 5.0


class NamespaceDeletion(Controller):
    name = "namespace-controller"
    workers = 4

    def setup(self) -> None:
        self._namespaces = self.watch_keys(NAMESPACES)

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        name = key[1]
        known: UnstructuredObject | None = self._namespaces.get("", name)
        if known is None or known.metadata.deletion_timestamp is None:
            return None
        namespaced = [each for each in self.context.collections if each.namespaced]
        left = [each for each in await asyncio.gather(*(self._empty(each, name) for each in namespaced)) if each]
        namespace = await self._current(name, known.metadata.uid)
        if namespace is None:
            return None
        if left:
            changed = await self._report(namespace, left)
            return _LOOK_AGAIN if changed else _LOOK_AGAIN_STUCK
        finalizers: list[str] = (namespace.get("spec") or {}).get("finalizers") or []
        namespace["spec"] = {"finalizers": [each for each in finalizers if each != _FINALIZER]}
        await self.client.request("PUT", NAMESPACES.path(name=name, subresource="finalize"), namespace)
        return None

    async def _current(self, name: str, uid: str) -> dict[str, Any] | None:
        try:
            found = await self.client.get(NAMESPACES, name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return found if found["metadata"]["uid"] == uid else None

    async def _empty(self, resource: Resource, namespace: str) -> str:
        """Delete all objects of one resource; a text about what remains."""
        page = await self.client.list(resource, namespace, into=MetadataOnly)
        fresh = [each for each in page.items if each.metadata.deletion_timestamp is None]
        if fresh:
            await self.client.request("DELETE", resource.path(namespace), {"propagationPolicy": "Background"})
            page = await self.client.list(resource, namespace, into=MetadataOnly)
        if not page.items:
            return ""
        group = f".{resource.group}" if resource.group else "."
        return f"{resource.plural}{group} has {len(page.items)} resource instances"

    async def _report(self, namespace: dict[str, Any], left: list[str]) -> bool:
        """Write what remains into the status; whether the status changed."""
        message = "Some resources are remaining: " + ", ".join(left)
        status: dict[str, Any] = namespace.get("status") or {}
        conditions: list[dict[str, Any]] = status.get("conditions") or []
        if any(each.get("message") == message for each in conditions):
            return False
        new = {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "reason": "SomeResourcesRemain",
            "message": message,
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        kept = [each for each in conditions if each.get("type") != new["type"]]
        namespace["status"] = {**status, "conditions": [*kept, new]}
        await self.client.update(NAMESPACES, namespace, subresource="status")
        return True
