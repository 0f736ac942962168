"""Namespace deletion: pods first, then all other content; the status says what remains, then the namespace goes.

Pods go first so that what guards them (network policies, quotas, service accounts) is there until they have ended.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from muster.api.errors import ApiError
from muster.api.resources import NAMESPACES, PODS, Resource
from muster.client.clock import timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import MetadataOnly, UnstructuredObject
from muster.controllers.status import JSON, with_condition

_FINALIZER = "kubernetes"
_DISCOVERY = "NamespaceDeletionDiscoveryFailure"
_PARSING = "NamespaceDeletionGroupVersionParsingFailure"
_DELETION = "NamespaceDeletionContentFailure"
_CONTENT = "NamespaceContentRemaining"
_FINALIZERS = "NamespaceFinalizersRemaining"
_LOOK_AGAIN = 0.5
_LOOK_AGAIN_STUCK = 5.0


class _Remaining(NamedTuple):
    """What is left of one resource."""

    resource: str
    instances: int
    finalizers: Counter[str]


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
        pods, others = [each for each in namespaced if each == PODS], [each for each in namespaced if each != PODS]
        left = await self._empty_all(pods, name) or await self._empty_all(others, name)
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

    async def _empty_all(self, resources: list[Resource], namespace: str) -> list[_Remaining]:
        found = await asyncio.gather(*(self._empty(each, namespace) for each in resources))
        return [each for each in found if each is not None]

    async def _current(self, name: str, uid: str) -> dict[str, Any] | None:
        try:
            found = await self.client.get(NAMESPACES, name)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return found if found["metadata"]["uid"] == uid else None

    async def _empty(self, resource: Resource, namespace: str) -> _Remaining | None:
        """Delete all objects of one resource; what remains."""
        page = await self.client.list(resource, namespace, into=MetadataOnly)
        fresh = [each for each in page.items if each.metadata.deletion_timestamp is None]
        if fresh:
            await self.client.request("DELETE", resource.path(namespace), {"propagationPolicy": "Background"})
            page = await self.client.list(resource, namespace, into=MetadataOnly)
        if not page.items:
            return None
        finalizers = Counter(name for each in page.items for name in each.metadata.finalizers or ())
        return _Remaining(f"{resource.plural}.{resource.group}", len(page.items), finalizers)

    async def _report(self, namespace: dict[str, Any], left: list[_Remaining]) -> bool:
        """Write what remains into the status; whether the status changed."""
        status: dict[str, Any] = namespace.get("status") or {}
        before: list[JSON] = status.get("conditions") or []
        conditions = before
        now = timestamp(self.clock.now())
        for kind, state, reason, message in _conditions(left):
            new = {"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": now}
            conditions = with_condition(conditions, new)
        if conditions == before:
            return False
        namespace["status"] = {**status, "conditions": conditions}
        await self.client.update(NAMESPACES, namespace, subresource="status")
        return True


def _conditions(left: list[_Remaining]) -> Iterator[tuple[str, str, str, str]]:
    """The conditions of a namespace that is being deleted: type, status, reason, message."""
    yield _DISCOVERY, "False", "ResourcesDiscovered", "All resources successfully discovered"
    yield _PARSING, "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"
    text = "All content successfully deleted, may be waiting on finalization"
    yield _DELETION, "False", "ContentDeleted", text
    instances = ", ".join(f"{each.resource} has {each.instances} resource instances" for each in left)
    yield _CONTENT, "True", "SomeResourcesRemain", f"Some resources are remaining: {instances}"
    finalizers: Counter[str] = sum((each.finalizers for each in left), Counter())
    if finalizers:
        listed = ", ".join(f"{name} in {finalizers[name]} resource instances" for name in sorted(finalizers))
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        yield _FINALIZERS, "True", "SomeFinalizersRemain", text
    else:
        yield _FINALIZERS, "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"
