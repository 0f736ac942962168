"""The verbs of `Client`, spelled as requests. A transport adds how one request is carried, and how a watch is.

A fenced client asks its guards before every write. They are asked at the last moment, when nothing is left to
wait for (a turn under the rate limit, credentials, a server that said "later"), because what they know may change
meanwhile.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar

import msgspec

from muster.api.resources import PODS, Resource
from muster.client.objects import metadata
from muster.client.protocol import Obj, Page, PatchType

T = TypeVar("T")

JSON = "application/json"
_PATCH_TYPES: dict[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


class Verbs(ABC):
    """Everything of `muster.client.protocol.Client` but `watch`."""

    def __init__(self) -> None:
        self._list_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
        self._guard: Callable[[], None] | None = None

    @abstractmethod
    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """Carry one request, asking the guard right before a write leaves. Parameters of the query may be empty."""

    def fenced(self, guard: Callable[[], None]) -> Self:
        """This client, but `guard` is called before each write and may raise. Reading stays free.

        Fences add up: the guards are asked one after the other, the oldest first.
        """
        fenced = copy.copy(self)
        fenced._guard = guard if self._guard is None else _in_turn(self._guard, guard)
        return fenced

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
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit) if limit else "",
            "continue": continue_token,
            "resourceVersion": resource_version,
        }
        body = await self._call("GET", resource.path(namespace), query)
        item: Any = dict[str, Any] if into is None else into
        decoder = self._list_decoders.get(item)
        if decoder is None:
            decoder = self._list_decoders[item] = msgspec.json.Decoder(_List[item])
        page: _List[Any] = decoder.decode(body)
        return Page(page.items or [], page.metadata.resource_version, page.metadata.continue_token or "")

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        return msgspec.json.decode(await self._call("GET", resource.path(namespace, name)))

    async def create(self, resource: Resource, obj: Obj, namespace: str | None = None, *, dry_run: bool = False) -> Obj:
        place = namespace or metadata(obj).get("namespace")
        return await self._send("POST", resource.path(place), _whole(resource, obj), _dry(dry_run))

    async def update(
        self, resource: Resource, obj: Obj, *, subresource: str | None = None, dry_run: bool = False
    ) -> Obj:
        meta = metadata(obj)
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        return await self._send("PUT", path, _whole(resource, obj), _dry(dry_run))

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
        query = {"fieldManager": field_manager, "force": "true" if force else "", **_dry(dry_run)}
        return await self._send("PATCH", resource.path(namespace, name, subresource), patch, query, _PATCH_TYPES[type])

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
        options: Obj = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if uid is not None or resource_version is not None:
            options["preconditions"] = {key: value for key, value in preconditions.items() if value is not None}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if propagation_policy is not None:
            options["propagationPolicy"] = propagation_policy
        return await self._send("DELETE", resource.path(namespace, name), options)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._call("POST", PODS.path(namespace, name, "binding"), body=msgspec.json.encode(binding))

    async def request(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Obj:
        content_type = _PATCH_TYPES["merge"] if method == "PATCH" else JSON
        return await self._send(method, path, body, query, content_type)

    async def text(self, path: str, query: dict[str, str] | None = None) -> str:
        """An answer that is not an object: logs, metrics, health checks."""
        return (await self._call("GET", path, query, accept="*/*")).decode(errors="replace")

    @abstractmethod
    async def close(self) -> None:
        """Let go of what the client holds open; a fenced client shares it with the one it was made from."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(
        self, method: str, path: str, obj: Any, query: Mapping[str, str] | None = None, content_type: str = JSON
    ) -> Obj:
        body = None if obj is None else obj if isinstance(obj, bytes) else msgspec.json.encode(obj)
        answer = await self._call(method, path, query, body, content_type)
        return msgspec.json.decode(answer) if answer else {}


def _in_turn(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def guard() -> None:
        first()
        second()

    return guard


def _whole(resource: Resource, obj: Obj) -> Obj:
    """The object with apiVersion and kind, which the items of a list lack and a server requires."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
