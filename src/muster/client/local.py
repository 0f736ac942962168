"""The client without a wire: the same calls and answers, carried to a server core in this process.

It calls anything that has the two methods of `Core`, so this package does not import the server. Objects cross as
bytes here too: what a caller gets is its own copy, and what works in-process works over HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.protocol import Obj, WatchEvent
from muster.client.verbs import JSON, Verbs


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


class LocalClient(Verbs):
    """Implements `muster.client.protocol.Client` over a core in this process."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self._core = core
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

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

    async def close(self) -> None:
        return None

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        if self._guard is not None and method != "GET":
            self._guard()
        status, answer = await self._core.ask(method, path, _given(query), body or b"", content_type)
        if status < 300:
            return answer
        raise ApiError.from_status(status, _status(answer))


def _status(answer: bytes) -> Obj:
    try:
        return msgspec.json.decode(answer, type=Obj)
    except msgspec.DecodeError:
        return {"message": answer[:200].decode(errors="replace")}


def _given(query: Mapping[str, str] | None) -> Mapping[str, str]:
    return {name: value for name, value in query.items() if value} if query else {}
