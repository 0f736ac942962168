"""CustomResourceDefinitions: tells the other controllers of new kinds, and deletes the objects of a kind that goes.

The server itself decides about names. A definition that waits for a name is written again when another one has let go
of it, and the server looks again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from muster.client.clock import timestamp
from muster.controllers.controller import Context, Controller
from muster.controllers.finalizers import remove_finalizer
from muster.controllers.objects import MetadataOnly, UnstructuredObject

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_LOOK_AGAIN = 0.5
_AT_ONCE = 8  # namespaces emptied at the same time


class CustomResourceDefinitions(Controller):
    name = "customresourcedefinition-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._served: dict[str, Resource] = {}  # by the name of the definition

    def setup(self) -> None:
        self._definitions = self.watch_keys(CUSTOM_RESOURCE_DEFINITIONS)

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        name = key[1]
        found: UnstructuredObject | None = self._definitions.get("", name)
        self._announce(name, found)
        self._wake_waiting(name)
        if found is None:
            return None
        if found.metadata.deletion_timestamp is not None:
            return await self._finalize(found)
        if _is(found, "NamesAccepted", "False"):
            await self._write_again(name)
        return None

    def _announce(self, name: str, definition: UnstructuredObject | None) -> None:
        """Tell the other controllers which kind a definition stands for now."""
        resource = _resource(definition) if definition is not None else None
        before = self._served.get(name)
        if resource is not None:
            self._served[name] = resource
            self.context.collections.add(resource)
        elif before is not None:
            del self._served[name]
            self.context.collections.remove(before)

    # Names

    def _wake_waiting(self, changed: str) -> None:
        for (_, name), definition in self._definitions.objects.items():
            if name != changed and _is(definition, "NamesAccepted", "False"):
                self.queue.add_after(("", name), _LOOK_AGAIN)

    async def _write_again(self, name: str) -> None:
        """An empty change of the status: the server computes it anew, and stores it if it differs."""
        await self.client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"status": {}}, subresource="status")

    # Deletion

    async def _finalize(self, definition: UnstructuredObject) -> float | None:
        """Delete all objects of the kind; when none is left, let the definition go."""
        if CLEANUP not in (definition.metadata.finalizers or ()):
            return None
        resource = self._served.get(definition.metadata.name)
        if resource is not None:
            left = await self._delete_objects(resource)
            if left:
                await self._report(definition, left)
                return _LOOK_AGAIN
        await remove_finalizer(self.client, CUSTOM_RESOURCE_DEFINITIONS, definition.metadata, CLEANUP)
        return None

    async def _delete_objects(self, resource: Resource) -> int:
        """Ask for the end of every object; how many are left."""
        page = await self.client.list(resource, into=MetadataOnly)
        fresh = [each.metadata for each in page.items if each.metadata.deletion_timestamp is None]
        places = sorted({metadata.namespace for metadata in fresh})
        for start in range(0, len(places), _AT_ONCE):
            await asyncio.gather(*(self._empty(resource, each) for each in places[start : start + _AT_ONCE]))
        return len((await self.client.list(resource, into=MetadataOnly)).items) if page.items else 0

    async def _empty(self, resource: Resource, namespace: str) -> None:
        path = resource.path(namespace or None)
        await self.client.request("DELETE", path, {"propagationPolicy": "Background"})

    async def _report(self, definition: UnstructuredObject, left: int) -> None:
        if _is(definition, "Terminating", "True"):
            return
        current = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, definition.metadata.name)
        status: dict[str, Any] = current.setdefault("status", {})
        condition = {
            "type": "Terminating",
            "status": "True",
            "reason": "InstanceDeletionInProgress",
            "message": f"CustomResource deletion is in progress: {left} left",
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        others = [each for each in status.get("conditions") or () if each.get("type") != "Terminating"]
        status["conditions"] = [*others, condition]
        try:
            await self.client.update(CUSTOM_RESOURCE_DEFINITIONS, current, subresource="status")
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _is(definition: UnstructuredObject, condition: str, status: str) -> bool:
    found: list[dict[str, Any]] = definition.status.get("conditions") or []
    return any(each.get("type") == condition and each.get("status") == status for each in found)


def _resource(definition: UnstructuredObject) -> Resource | None:
    """The resource that a definition is served as, in one of its versions; None while it is not."""
    if not _is(definition, "Established", "True"):
        return None
    spec, names = definition.spec, definition.status.get("acceptedNames") or {}
    served = [version["name"] for version in spec.get("versions") or () if version.get("served")]
    if not served:
        return None
    return Resource(spec["group"], served[0], names["plural"], names["kind"], spec["scope"] == "Namespaced")
