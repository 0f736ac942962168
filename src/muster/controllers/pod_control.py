"""Creates and deletes the pods of controllers, and remembers what the watch has not shown yet.

A controller that trusted its cache alone would create a pod twice when the cache lags behind. So pods it
created count until the watch has shown them, and pods it deleted no longer count from the moment it asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from muster.api.errors import ApiError
from muster.api.resources import PODS, Resource
from muster.api.types import ObjectMeta, PodMeta
from muster.client.clock import Clock
from muster.client.protocol import Client
from muster.controllers.events import ControllerEvents
from muster.controllers.informers import ObjectStore
from muster.controllers.objects import PodView, controller_uid

_AT_ONCE = 32
_EVENTS_AT_ONCE = 10  # of the pods created at once, how many get an event each
_FORGET_AFTER = 300.0


class PodWords(NamedTuple):
    """What events say about pods, with `pod`, `owner` and `error` to fill in."""

    created: str = "Created pod: {pod}"
    not_created: str = "Error creating: {error}"
    deleted: str = "Deleted pod: {pod}"


class PodControl:
    """The pods of all objects of one kind of controller."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        pods: ObjectStore,
        owner: Resource,
        events: ControllerEvents,
        words: PodWords | None = None,
    ) -> None:
        self._words = words or PodWords()
        self._client = client
        self._clock = clock
        self._pods = pods
        self._owner = owner
        self._events = events
        self._owned = pods.index("by-controller", controller_uid)
        self._made: dict[str, dict[str, tuple[float, PodView]]] = {}  # owner uid -> pod uid -> when, what
        self._removed: dict[str, float] = {}
        pods.on_change(self._seen)

    def _seen(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            owner = controller_uid(pod) if pod is not None else None
            if pod is None or owner is None:
                continue
            made = self._made.get(owner)
            if made is not None and made.pop(pod.metadata.uid, None) is not None and not made:
                del self._made[owner]
        if new is None and old is not None:
            self._removed.pop(old.metadata.uid, None)

    def pods_of(self, owner_uid: str) -> list[PodView]:
        """The pods an owner has: those seen, and those it made that have not been seen."""
        pods: list[PodView] = self._owned.get(owner_uid)
        now = self._clock.now()
        for made_at, pod in self._made.get(owner_uid, {}).values():
            if now - made_at < _FORGET_AFTER:
                pods.append(pod)
        return pods

    def going(self, pod: PodView) -> bool:
        """Whether a pod is being deleted, as the watch shows or because we asked for it."""
        return pod.going or pod.metadata.uid in self._removed

    async def create(self, owner: ObjectMeta, pods: Iterable[dict[str, Any]]) -> None:
        """Create pods, some at a time; the first failure stops the rest and is raised."""
        waiting = list(pods)
        recorded = 0
        batch = 1
        while waiting:
            # Slow start: if the first is refused, the others are not sent.
            now, waiting = waiting[:batch], waiting[batch:]
            results = await asyncio.gather(*(self._create(owner, pod) for pod in now), return_exceptions=True)
            failures = [each for each in results if isinstance(each, BaseException)]
            if failures:
                pod: str = now[results.index(failures[0])]["metadata"].get("name") or ""
                text = self._words.not_created.format(pod=pod, owner=owner.name, error=failures[0])
                await self._events.warning(self._owner, owner, "FailedCreate", text)
                raise failures[0]
            for name in results[: max(0, _EVENTS_AT_ONCE - recorded)]:
                text = self._words.created.format(pod=name, owner=owner.name)
                await self._events.normal(self._owner, owner, "SuccessfulCreate", text)
                recorded += 1
            batch = min(batch * 2, _AT_ONCE)

    async def _create(self, owner: ObjectMeta, pod: dict[str, Any]) -> str:
        created = await self._client.create(PODS, pod, owner.namespace)
        uid, name = created["metadata"]["uid"], created["metadata"]["name"]
        seen: PodView | None = self._pods.get(owner.namespace, name)
        if seen is None or seen.metadata.uid != uid:
            self._made.setdefault(owner.uid, {})[uid] = (self._clock.now(), _projected(created))
        return name

    async def delete(self, pods: Iterable[PodView], owner: ObjectMeta) -> None:
        """Delete pods of an owner; the first ones get an event each."""
        leaving = [pod for pod in pods if not self.going(pod)]
        for start in range(0, len(leaving), _AT_ONCE):
            await asyncio.gather(*(self._delete(pod) for pod in leaving[start : start + _AT_ONCE]))
        for pod in leaving[:_EVENTS_AT_ONCE]:
            text = self._words.deleted.format(pod=pod.metadata.name, owner=owner.name)
            await self._events.normal(self._owner, owner, "SuccessfulDelete", text)

    async def _delete(self, pod: PodView) -> None:
        self._removed[pod.metadata.uid] = self._clock.now()
        try:
            await self._client.delete(PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        except ApiError as error:
            self._removed.pop(pod.metadata.uid, None)
            if error.code not in (404, 409):
                raise
        except BaseException:
            self._removed.pop(pod.metadata.uid, None)
            raise


def _projected(pod: dict[str, Any]) -> PodView:
    meta = pod["metadata"]
    return PodView(
        PodMeta(
            name=meta["name"],
            namespace=meta["namespace"],
            uid=meta["uid"],
            labels=meta.get("labels"),
            creation_timestamp=meta.get("creationTimestamp"),
        )
    )


def controller_reference(resource: Resource, metadata: ObjectMeta) -> dict[str, Any]:
    """An owner reference with `controller: true`."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(template: dict[str, Any], resource: Resource, owner: ObjectMeta, generate_name: str) -> dict[str, Any]:
    """A pod of a template, owned by its controller."""
    meta: dict[str, Any] = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": generate_name,
        "namespace": owner.namespace,
        "labels": dict(meta.get("labels") or {}),
        "ownerReferences": [controller_reference(resource, owner)],
    }
    if meta.get("annotations"):
        metadata["annotations"] = dict(meta["annotations"])
    if meta.get("finalizers"):
        metadata["finalizers"] = list(meta["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(template.get("spec") or {})}
