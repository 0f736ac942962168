"""The client without a wire: the same calls and answers, carried to a server core in this process.

It speaks to anything that has the two methods of `Core`, so this room does not know the server. Objects cross as bytes
here too: what a caller gets is its own copy, and what works in-process works over HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import PODS, Resource
from muster.client.protocol import Obj, Page, PatchType, WatchEvent

T = TypeVar("T")

_JSON = "application/json"
_PATCH_TYPES: dict[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class RawEvent(NamedTuple):
    """One watch event with its object as JSON; a bookmark has none."""

    type: Any
    object: bytes
    revision: int


class Core(Protocol):
    """What the client needs of a server."""

    async def ask(
        self, method: str, path: str, query: Mapping[str, str], body: bytes, content_type: str
    ) -> tuple[int, bytes]: ...

    def follow(self, path: str, query: Mapping[str, str]) -> AsyncIterator[list[RawEvent]]: ...


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T]


class LocalClient:
    """Implements `muster.client.protocol.Client` over a core in this process."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._list_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

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
        return Page(page.items, page.metadata.resource_version, page.metadata.continue_token)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int | None = None,
        into: type[Any] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": "" if timeout_seconds is None else str(timeout_seconds),
        }
        item: Any = dict[str, Any] if into is None else into
        decoder = self._decoders.get(item)
        if decoder is None:
            decoder = self._decoders[item] = msgspec.json.Decoder(item)
        decode = decoder.decode
        batches: Any = self._core.follow(resource.path(namespace), _given(query))
        async with aclosing(batches):
            async for batch in batches:
                for type, body, revision in batch:
                    yield WatchEvent(type, decode(body) if body else None, str(revision))

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj:
        return msgspec.json.decode(await self._call("GET", resource.path(namespace, name)))

    async def create(self, resource: Resource, obj: Obj, namespace: str | None = None, *, dry_run: bool = False) -> Obj:
        place = namespace or _metadata(obj).get("namespace")
        return await self._send("POST", resource.path(place), _whole(resource, obj), _dry(dry_run))

    async def update(
        self, resource: Resource, obj: Obj, *, subresource: str | None = None, dry_run: bool = False
    ) -> Obj:
        metadata = _metadata(obj)
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
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
        content_type = _PATCH_TYPES["merge"] if method == "PATCH" else _JSON
        return await self._send(method, path, body, query, content_type)

    async def text(self, path: str, query: dict[str, str] | None = None) -> str:
        """An answer that is not an object: logs, metrics, health checks."""
        return (await self._call("GET", path, query)).decode(errors="replace")

    async def close(self) -> None:
        return None

    async def __aenter__(self) -> LocalClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(
        self, method: str, path: str, obj: Any, query: Mapping[str, str] | None = None, content_type: str = _JSON
    ) -> Obj:
        body = b"" if obj is None else msgspec.json.encode(obj)
        answer = await self._call(method, path, query, body, content_type)
        return msgspec.json.decode(answer) if answer else {}

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = _JSON,
    ) -> bytes:
        status, answer = await self._core.ask(method, path, _given(query), body, content_type)
        if status < 300:
            return answer
        raise ApiError.from_status(status, _status(answer))


def _status(answer: bytes) -> Obj:
    try:
        found = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        found = None
    return found if isinstance(found, dict) else {"message": answer[:200].decode(errors="replace")}


def _given(query: Mapping[str, str] | None) -> Mapping[str, str]:
    return {name: value for name, value in query.items() if value} if query else {}


def _metadata(obj: Obj) -> dict[str, Any]:
    return obj.get("metadata") or {}


def _whole(resource: Resource, obj: Obj) -> Obj:
    """Objects from a list carry no kind; a server wants one."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
