"""The status of ResourceQuotas: what is allowed and what is in use, counted anew when something came or went."""

from __future__ import annotations

import asyncio
from typing import Any

from muster.api import quota
from muster.api.resources import RESOURCE_QUOTAS, Resource
from muster.controllers.controller import Controller
from muster.controllers.objects import PodView, UnstructuredObject
from muster.controllers.status import JSON, write_status

_BATCH = 0.2  # seconds in which changes are gathered
_LOOK_AGAIN = 300.0
_PAGE = 500


class ResourceQuotaController(Controller):
    name = "resourcequota-controller"
    workers = 2

    def setup(self) -> None:
        self._quotas = self.watch_keys(RESOURCE_QUOTAS)
        self._by_namespace = self._quotas.index("by-namespace", lambda each: each.metadata.namespace)
        for resource in self.context.collections:
            self._follow(resource)
        # What is withdrawn counts no more once its objects are gone, which the watch has shown before.
        self.context.collections.on_change(self._follow, lambda resource: None)

    def _follow(self, resource: Resource) -> None:
        if resource.namespaced:
            self.watch(resource).on_change(self._watcher(resource))

    def _watcher(self, resource: Resource) -> Any:
        def changed(old: Any, new: Any) -> None:
            found = new if new is not None else old
            if found is None or (old is not None and new is not None and not _counts_otherwise(old, new)):
                return
            where: str = found.metadata.namespace
            for each in self._by_namespace.get(where):
                if (resource.group, resource.plural) in quota.counted_resources(each.spec.get("hard") or ()):
                    self.queue.add_after((where, each.metadata.name), _BATCH)

        return changed

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: UnstructuredObject | None = self._quotas.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        hard: JSON = found.spec.get("hard") or {}
        amounts: list[quota.Amounts] = []
        for group, plural in sorted(quota.counted_resources(hard)):
            resource = self.context.collections.get(group, plural)
            if resource is not None:
                amounts += await self._usage(resource, found)
        used = quota.rendered(quota.total(amounts, hard))
        await write_status(self.client, RESOURCE_QUOTAS, found, {"hard": hard, "used": used})
        return _LOOK_AGAIN

    async def _usage(self, resource: Resource, found: UnstructuredObject) -> list[quota.Amounts]:
        """What the objects of one resource count for; in pages, so that a full namespace does not hold the loop."""
        amounts: list[quota.Amounts] = []
        token = ""
        while True:
            page = await self.client.list(resource, found.metadata.namespace, limit=_PAGE, continue_token=token)
            amounts += [
                quota.usage(resource.group, resource.plural, each)
                for each in page.items
                if quota.in_scope(found.spec, resource.plural, each)
            ]
            token = page.continue_token
            if not token:
                return amounts
            await asyncio.sleep(0)


def _counts_otherwise(old: Any, new: Any) -> bool:
    """Whether an object is another one than before, or a pod that has ended."""
    if old.metadata.uid != new.metadata.uid:
        return True
    return isinstance(old, PodView) and isinstance(new, PodView) and old.finished != new.finished
