"""Adoption: an object without a controller gets an owner reference to the controller whose selector matches it.

Release is the contrary: what the selector of its controller does not match any more is its own master.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.api.selectors import matches
from muster.api.types import LabelSelector, ObjectMeta
from muster.client.protocol import Client
from muster.controllers.informers import Index, ObjectStore
from muster.controllers.objects import UnstructuredObject, controller_of, json_of
from muster.controllers.pod_control import controller_reference


def orphans_of(store: ObjectStore) -> Index:
    """Objects without a controller, by namespace."""
    return store.index("orphans", _orphan_in)


def _orphan_in(obj: Any) -> str | None:
    return obj.metadata.namespace if controller_of(obj.metadata) is None else None


def selects(owner: UnstructuredObject, obj: ObjectMeta) -> bool:
    """Whether the owner's selector, a label selector or (of a ReplicationController) a map of labels, matches."""
    return selector_of(owner)(obj)


def selector_of(owner: UnstructuredObject) -> Callable[[ObjectMeta], bool]:
    """The same as a function, for many objects of one owner."""
    given: dict[str, Any] | None = owner.spec.get("selector")
    if given is None:
        return lambda obj: False
    if any(isinstance(value, str) for value in given.values()):
        given = {"matchLabels": given}
    selector = msgspec.convert(given, LabelSelector)
    return lambda obj: matches(selector, obj.labels)


async def adopt(client: Client, resource: Resource, obj: ObjectMeta, owner_kind: Resource, owner: ObjectMeta) -> None:
    """Make the owner the controller of an object. A conflict is ignored: another write of the object came first."""
    kept = [json_of(each) for each in obj.owner_references or ()]
    patch = {
        "metadata": {
            "uid": obj.uid,
            "resourceVersion": obj.resource_version,
            "ownerReferences": [*kept, controller_reference(owner_kind, owner)],
        }
    }
    try:
        await client.patch(resource, obj.name, patch, obj.namespace)
    except ApiError as error:
        if error.code not in (404, 409):
            raise


async def release(client: Client, resource: Resource, obj: ObjectMeta, owner: ObjectMeta) -> None:
    """Take the owner off an object that its selector does not match any more, as `adopt` put it on."""
    kept = [json_of(each) for each in obj.owner_references or () if each.uid != owner.uid]
    patch = {
        "metadata": {"uid": obj.uid, "resourceVersion": obj.resource_version, "ownerReferences": kept or None},
    }
    try:
        await client.patch(resource, obj.name, patch, obj.namespace)
    except ApiError as error:
        if error.code not in (404, 409):
            raise
