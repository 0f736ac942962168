"""One watch a resource, shared by all controllers: a cache of objects, indexes over it, and who hears of changes.

Handlers run after the cache changed, get (old, new) with None for absent, must not wait, and usually only put a
key into a work queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from muster.api.resources import PODS, PRIORITY_CLASSES, Resource
from muster.api.types import PriorityClass
from muster.client.clock import Clock
from muster.client.following import Snapshot, follow
from muster.client.protocol import Client
from muster.controllers.objects import MetadataOnly, PodView, UnstructuredObject

Key = tuple[str, str]  # namespace, name
Handler = Callable[[Any, Any], None]
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


class Informer:
    """The cache of one resource."""

    def __init__(self, resource: Resource, into: type[Any], label_selector: str = "") -> None:
        self.resource = resource
        self.into = into
        self.label_selector = label_selector
        self.objects: dict[Key, Any] = {}
        self.synced = asyncio.Event()
        self._handlers: list[Handler] = []
        self._indexes: dict[str, Index] = {}

    def on_change(self, handler: Handler) -> None:
        self._handlers.append(handler)

    def index(self, name: str, key_of: IndexKey) -> Index:
        """The index of that name; the first who asks says what it is by."""
        if name not in self._indexes:
            made = self._indexes[name] = Index(key_of)
            for key, obj in self.objects.items():
                made.move(key, None, obj)
        return self._indexes[name]

    def get(self, namespace: str, name: str) -> Any:
        return self.objects.get((namespace, name))

    def in_namespace(self, namespace: str) -> Iterator[Any]:
        return (obj for (where, _), obj in self.objects.items() if where == namespace)

    async def run(self, client: Client, clock: Clock) -> None:
        changes = follow(client, self.resource, pause=clock.sleep, into=self.into, label_selector=self.label_selector)
        async with aclosing(changes):
            async for change in changes:
                if isinstance(change, Snapshot):
                    self._replace(change.items)
                    self.synced.set()
                elif change.type == "DELETED":
                    self._set(_key(change.object), None, last=change.object)
                else:
                    self._set(_key(change.object), change.object)

    def _replace(self, items: list[Any]) -> None:
        fresh = {_key(obj): obj for obj in items}
        for key in [key for key in self.objects if key not in fresh]:
            self._set(key, None)
        for key, obj in fresh.items():
            self._set(key, obj)

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
    """All informers that the running controllers asked for."""

    def __init__(self, whole: frozenset[tuple[str, str]] = frozenset()) -> None:
        self._whole = whole
        self._informers: dict[tuple[str, str], Informer] = {}

    def of(self, resource: Resource, label_selector: str = "") -> Informer:
        """The informer of a resource; one for all its versions. The first who asks may narrow it by labels."""
        key = (resource.group, resource.plural)
        if key not in self._informers:
            self._informers[key] = Informer(resource, self._projection(key), label_selector)
        return self._informers[key]

    def _projection(self, key: tuple[str, str]) -> type[Any]:
        if key == (PODS.group, PODS.plural):
            return PodView
        if key == (PRIORITY_CLASSES.group, PRIORITY_CLASSES.plural):
            return PriorityClass
        return UnstructuredObject if key in self._whole else MetadataOnly

    @property
    def all(self) -> Mapping[tuple[str, str], Informer]:
        return self._informers

    async def run(self, client: Client, clock: Clock) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run(client, clock))

    async def wait_synced(self) -> None:
        for informer in list(self._informers.values()):
            await informer.synced.wait()
