"""One watch a resource, shared by all controllers: a store of objects, indexes over it, and handlers of changes.

Handlers run after the store changed, get (old, new) with None for absent, must not wait, and usually only put a
key into a work queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from muster.api.resources import (
    CONTROLLER_REVISIONS,
    ENDPOINT_SLICES,
    PODS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    Resource,
)
from muster.api.types import PriorityClass
from muster.client.clock import Clock
from muster.client.protocol import Client
from muster.client.reflector import Reflector
from muster.controllers.objects import (
    EndpointSliceView,
    MetadataOnly,
    PodView,
    RevisionView,
    StorageClassView,
    UnstructuredObject,
)

Key = tuple[str, str]  # namespace, name
Handler = Callable[[Any, Any], None]
_PROJECTIONS: Mapping[tuple[str, str], type[Any]] = {
    (PODS.group, PODS.plural): PodView,
    (PRIORITY_CLASSES.group, PRIORITY_CLASSES.plural): PriorityClass,
    (CONTROLLER_REVISIONS.group, CONTROLLER_REVISIONS.plural): RevisionView,
    (ENDPOINT_SLICES.group, ENDPOINT_SLICES.plural): EndpointSliceView,
    (STORAGE_CLASSES.group, STORAGE_CLASSES.plural): StorageClassView,
}
IndexKey = Callable[[Any], Hashable | None]


class Index:
    """Objects by something else than their name."""

    def __init__(self, key_of: IndexKey) -> None:
        self._key_of = key_of
        self._keys: dict[Hashable, dict[Key, Any]] = {}

    def move(self, key: Key, old: Any, new: Any) -> None:
        before = self._key_of(old) if old is not None else None
        after = self._key_of(new) if new is not None else None
        if before is not None and before != after:
            held = self._keys.get(before)
            if held is not None:
                held.pop(key, None)
                if not held:
                    del self._keys[before]
        if after is not None:
            self._keys.setdefault(after, {})[key] = new

    def get(self, value: Hashable) -> list[Any]:
        return list(self._keys.get(value, {}).values())

    def __contains__(self, value: Hashable) -> bool:
        return value in self._keys


class ObjectStore:
    """The objects of one resource, which a reflector keeps up to date."""

    def __init__(
        self, client: Client, resource: Resource, clock: Clock, into: type[Any], label_selector: str = ""
    ) -> None:
        self.resource = resource
        self.served = True  # else it stays empty, and nothing is watched
        self.objects: dict[Key, Any] = {}
        self._reflector = Reflector(client, resource, self, clock, into=into, label_selector=label_selector)
        self.synced = self._reflector.synced
        self._handlers: list[Handler] = []
        self._indexes: dict[str, Index] = {}

    def on_change(self, handler: Handler) -> None:
        self._handlers.append(handler)

    def index(self, name: str, key_of: IndexKey) -> Index:
        """The index of that name; the first caller says what it is by."""
        if name not in self._indexes:
            made = self._indexes[name] = Index(key_of)
            for key, obj in self.objects.items():
                made.move(key, None, obj)
        return self._indexes[name]

    def get(self, namespace: str, name: str) -> Any:
        return self.objects.get((namespace, name))

    def in_namespace(self, namespace: str) -> Iterator[Any]:
        return (obj for (where, _), obj in self.objects.items() if where == namespace)

    async def run(self) -> None:
        """Keep the store up to date until cancelled."""
        await self._reflector.run()

    def replace(self, objects: list[Any]) -> None:
        fresh = {_key(obj): obj for obj in objects}
        for key in [key for key in self.objects if key not in fresh]:
            self._set(key, None)
        for key, obj in fresh.items():
            self._set(key, obj)

    def update(self, obj: Any) -> None:
        self._set(_key(obj), obj)

    def delete(self, obj: Any) -> None:
        self._set(_key(obj), None, last=obj)

    def _set(self, key: Key, new: Any, last: Any = None) -> None:
        old = self.objects.get(key)
        for index in self._indexes.values():
            index.move(key, old, new)
        if new is None:
            self.objects.pop(key, None)
            old = last if last is not None else old
        else:
            self.objects[key] = new
        if old is None and new is None:
            return
        for handler in self._handlers:
            handler(old, new)


def _key(obj: Any) -> Key:
    return (obj.metadata.namespace, obj.metadata.name)


class Informers:
    """The stores of all resources that the running controllers watch.

    `served` are the resources that the server has, as (group, plural); None: all that are asked for. The store of
    any other resource is empty and counts as listed, so that a controller of several kinds works for those there are.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        whole: frozenset[tuple[str, str]] = frozenset(),
        served: frozenset[tuple[str, str]] | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._whole = whole
        self._served = None if served is None else set(served)
        self._stores: dict[tuple[str, str], ObjectStore] = {}
        self._group: asyncio.TaskGroup | None = None  # while they run
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def of(self, resource: Resource, label_selector: str = "") -> ObjectStore:
        """The store of a resource; one for all its versions. The first caller may narrow it by labels."""
        key = (resource.group, resource.plural)
        if key not in self._stores:
            into = self._projection(key)
            store = self._stores[key] = ObjectStore(self._client, resource, self._clock, into, label_selector)
            if self._served is not None and key not in self._served:
                store.served = False
                store.synced.set()
            self._start(key)
        return self._stores[key]

    def serve(self, resource: Resource) -> None:
        """The server has begun to serve a resource: from now on it can be watched."""
        if self._served is not None:
            self._served.add((resource.group, resource.plural))

    def withdraw(self, resource: Resource) -> None:
        """The server has ceased to serve a resource: its objects are gone, and it is watched no more."""
        key = (resource.group, resource.plural)
        if self._served is not None:
            self._served.discard(key)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()
        if (store := self._stores.pop(key, None)) is not None:
            store.replace([])
            store.synced.set()

    def _start(self, key: tuple[str, str]) -> None:
        if self._group is not None and self._stores[key].served:
            self._tasks[key] = self._group.create_task(self._stores[key].run())

    def _projection(self, key: tuple[str, str]) -> type[Any]:
        return _PROJECTIONS.get(key) or (UnstructuredObject if key in self._whole else MetadataOnly)

    @property
    def all(self) -> Mapping[tuple[str, str], ObjectStore]:
        return self._stores

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            for key in list(self._stores):
                self._start(key)
            await asyncio.Event().wait()  # until cancelled; stores may come at any time

    async def wait_synced(self) -> None:
        for store in list(self._stores.values()):
            await store.synced.wait()
