"""The garbage collector: deletes objects whose owners are gone, and works off the finalizers of propagation policies.

Reads only metadata, of every kind the server has, also of those that are defined while it runs. An owner counts as
absent only when a GET says so, because a watch may be behind. A group that is being deleted stays until its members
have ended (`podgroup_protection`); members that have no other owner go now, or both would wait for each other for ever.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from muster.api.errors import ApiError
from muster.api.groups import COMPOSITE_PROTECTION, POD_GROUP_PROTECTION
from muster.api.resources import Resource
from muster.api.types import ObjectMeta, OwnerReference
from muster.controllers.controller import Controller
from muster.controllers.finalizers import remove_finalizer
from muster.controllers.informers import ObjectStore
from muster.controllers.objects import json_of

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_IGNORED = frozenset((("", "events"), ("events.k8s.io", "events")))
_REMEMBERED = 4096
_PROTECTED = frozenset((POD_GROUP_PROTECTION, COMPOSITE_PROTECTION))

Item = tuple[str, str, str, str]  # group, plural, namespace, name


class GarbageCollector(Controller):
    name = "garbage-collector"
    workers = 8

    def setup(self) -> None:
        self._resources: dict[tuple[str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._uids: dict[str, tuple[Item, ObjectMeta]] = {}
        self._dependents: dict[str, set[Item]] = {}
        self._absent: OrderedDict[str, None] = OrderedDict()
        for resource in self.context.collections:
            self._add(resource)
        self.context.collections.on_change(self._add, self._remove)

    def _add(self, resource: Resource) -> None:
        group_and_plural = (resource.group, resource.plural)
        if group_and_plural not in _IGNORED:
            self._resources[group_and_plural] = resource
            self._by_kind[(resource.group, resource.kind)] = resource
            self._subscribe(resource, self.watch(resource))

    def _remove(self, resource: Resource) -> None:
        self._resources.pop((resource.group, resource.plural), None)
        self._by_kind.pop((resource.group, resource.kind), None)

    def _subscribe(self, resource: Resource, store: ObjectStore) -> None:
        def changed(old: Any, new: Any) -> None:
            before = old.metadata if old is not None else None
            after = new.metadata if new is not None else None
            self._changed(resource, before, after)

        store.on_change(changed)

    def _changed(self, resource: Resource, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._gone(_item(resource, old), old)
        if new is None:
            return
        item = _item(resource, new)
        if old is not None and old.uid == new.uid and old.owner_references != new.owner_references:
            self._unlink(item, old.owner_references or ())
        self._uids[new.uid] = (item, new)
        for owner in new.owner_references or ():
            self._dependents.setdefault(owner.uid, set()).add(item)
        if _needs_work(new):
            self.queue.add(item)

    def _gone(self, item: Item, metadata: ObjectMeta) -> None:
        self._uids.pop(metadata.uid, None)
        self._remember_absent(metadata.uid)
        self._unlink(item, metadata.owner_references or ())
        for dependent in self._dependents.get(metadata.uid, ()):
            self.queue.add(dependent)

    def _unlink(self, item: Item, owners: Iterable[OwnerReference]) -> None:
        for owner in owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.discard(item)
                if not dependents:
                    del self._dependents[owner.uid]
            if (known := self._uids.get(owner.uid)) is not None:
                self.queue.add(known[0])  # it may wait for its last dependent

    def _remember_absent(self, uid: str) -> None:
        self._absent[uid] = None
        while len(self._absent) > _REMEMBERED:
            self._absent.popitem(last=False)

    # One object

    async def reconcile(self, key: Item) -> float | None:
        group, plural, namespace, name = key
        resource = self._resources.get((group, plural))
        found = self.watch(resource).get(namespace, name) if resource is not None else None
        if resource is None or found is None:
            return None
        metadata: ObjectMeta = found.metadata
        if metadata.deletion_timestamp is not None:
            await self._process_deletion(resource, metadata)
        if metadata.owner_references and (
            metadata.deletion_timestamp is None or FOREGROUND not in (metadata.finalizers or ())
        ):
            await self._check_owners(resource, metadata)
        return None

    async def _process_deletion(self, resource: Resource, metadata: ObjectMeta) -> None:
        """Remove the finalizer of the propagation policy (orphan, foregroundDeletion) when its work is done."""
        finalizers = metadata.finalizers or ()
        dependents = self._dependents_of(metadata.uid)
        if ORPHAN in finalizers:
            await asyncio.gather(*(self._disown(kind, child, {metadata.uid}) for kind, child in dependents))
            await remove_finalizer(self.client, resource, metadata, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [(kind, child) for kind, child in dependents if _blocks(child, metadata.uid)]
            for kind, child in dependents:
                # One that waits for its own dependents has been asked to go; its end comes through the watch.
                if not _deletes_dependents(child):
                    self.queue.add(_item(kind, child))
            if not blocking:
                await remove_finalizer(self.client, resource, metadata, FOREGROUND)
        elif _PROTECTED.intersection(finalizers):
            for kind, child in dependents:
                self.queue.add(_item(kind, child))

    def _dependents_of(self, uid: str) -> list[tuple[Resource, ObjectMeta]]:
        found: list[tuple[Resource, ObjectMeta]] = []
        for group, plural, namespace, name in self._dependents.get(uid, ()):
            resource = self._resources.get((group, plural))
            child = self.watch(resource).get(namespace, name) if resource is not None else None
            if resource is not None and child is not None:
                found.append((resource, child.metadata))
        return found

    async def _check_owners(self, resource: Resource, metadata: ObjectMeta) -> None:
        """Delete an object without owners, or drop its references to owners that are gone."""
        solid: list[OwnerReference] = []
        dangling: list[OwnerReference] = []
        waiting: list[OwnerReference] = []
        for owner in metadata.owner_references or ():
            if await self._is_absent(owner, metadata.namespace):
                dangling.append(owner)
            elif self._waits_for(owner):
                waiting.append(owner)
            elif not self._is_held(owner):
                solid.append(owner)
        if solid:
            if dangling or waiting:
                await self._disown(resource, metadata, {each.uid for each in (*dangling, *waiting)})
            return
        if metadata.deletion_timestamp is not None:
            return
        policy = "Background"
        if ORPHAN in (metadata.finalizers or ()):
            policy = "Orphan"
        elif waiting and self._dependents.get(metadata.uid):
            policy = "Foreground"
            circle = any(_deletes_dependents(child) for _, child in self._dependents_of(metadata.uid))
            if circle and any(owner.block_owner_deletion for owner in metadata.owner_references or ()):
                # Owners in a circle would wait for each other for ever: no owner waits for this object any more.
                await self._unblock(resource, metadata)
                return
        await self._delete(resource, metadata, policy)

    def _waits_for(self, owner: OwnerReference) -> bool:
        """Whether the owner is being deleted in the foreground and so waits for its dependents."""
        known = self._uids.get(owner.uid)
        return known is not None and _deletes_dependents(known[1])

    def _is_held(self, owner: OwnerReference) -> bool:
        """Whether the owner is being deleted and stays only until its members have ended."""
        known = self._uids.get(owner.uid)
        if known is None or known[1].deletion_timestamp is None:
            return False
        finalizers = known[1].finalizers or ()
        return bool(_PROTECTED.intersection(finalizers)) and ORPHAN not in finalizers

    async def _is_absent(self, owner: OwnerReference, namespace: str) -> bool:
        if owner.uid in self._uids:
            return False
        if owner.uid in self._absent:
            return True
        resource = self._by_kind.get((owner.api_version.rpartition("/")[0], owner.kind))
        if resource is None:
            return False  # an unknown kind: absence cannot be proved
        try:
            found = await self.client.get(resource, owner.name, namespace if resource.namespaced else None)
        except ApiError as error:
            if error.code != 404:
                raise
            found = None
        if found is not None and found["metadata"]["uid"] == owner.uid:
            return False
        self._remember_absent(owner.uid)
        return True

    async def _disown(self, resource: Resource, metadata: ObjectMeta, uids: set[str]) -> None:
        kept = [json_of(each) for each in metadata.owner_references or () if each.uid not in uids]
        await self._set_owners(resource, metadata, kept)

    async def _unblock(self, resource: Resource, metadata: ObjectMeta) -> None:
        """Let no owner wait for the end of an object."""
        owners = [{**json_of(each), "blockOwnerDeletion": False} for each in metadata.owner_references or ()]
        await self._set_owners(resource, metadata, owners)

    async def _set_owners(self, resource: Resource, metadata: ObjectMeta, owners: list[dict[str, Any]]) -> None:
        patch = {
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "ownerReferences": owners or None,
            }
        }
        try:
            await self.client.patch(resource, metadata.name, patch, metadata.namespace or None)
        except ApiError as error:
            if error.code != 404:
                raise

    async def _delete(self, resource: Resource, metadata: ObjectMeta, policy: str) -> None:
        try:
            await self.client.delete(
                resource,
                metadata.name,
                metadata.namespace or None,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                propagation_policy=policy,
            )
        except ApiError as error:
            if error.code != 404:
                raise


def _item(resource: Resource, metadata: ObjectMeta) -> Item:
    return (resource.group, resource.plural, metadata.namespace, metadata.name)


def _needs_work(metadata: ObjectMeta) -> bool:
    if metadata.owner_references:
        return True
    return metadata.deletion_timestamp is not None and bool(metadata.finalizers)


def _deletes_dependents(metadata: ObjectMeta) -> bool:
    """Whether an object is being deleted in the foreground: it stays until its dependents are gone."""
    return metadata.deletion_timestamp is not None and FOREGROUND in (metadata.finalizers or ())


def _blocks(child: ObjectMeta, owner_uid: str) -> bool:
    return any(each.uid == owner_uid and each.block_owner_deletion for each in child.owner_references or ())
