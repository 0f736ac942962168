"""Watch frames: one JSON document a line, decoded straight into the type the caller wants.

What a frame's object is depends on its type. Servers write the type first, so a change is decoded in one go; anything
else keeps its object as raw bytes until the type is known. An ERROR frame ends the stream as the `ApiError` it carries;
a half-written last line is dropped, because a watch resumes from the last event that arrived whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from muster.api.errors import ApiError
from muster.client.protocol import Obj, WatchEvent

T = TypeVar("T")


class Chunks(Protocol):
    """What aiohttp's stream reader gives us."""

    def iter_any(self) -> AsyncIterator[bytes]: ...


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Change(msgspec.Struct, Generic[T]):
    type: str
    object: T


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _HasMeta(msgspec.Struct):
    metadata: _Meta


_FRAME = msgspec.json.Decoder(_Frame)
_HEADER = msgspec.json.Decoder(_HasMeta)
_CHANGES = tuple(b'{"type":"' + word + b'"' for word in (b"ADDED", b"MODIFIED", b"DELETED"))
_ANY = msgspec.json.Decoder(dict[str, Any])


async def frames(chunks: Chunks, into: type[Any] | None) -> AsyncIterator[WatchEvent]:
    """The events of a watch, in order."""
    event_of = _decoder(into)
    rest = b""
    async for chunk in chunks.iter_any():
        lines = (rest + chunk if rest else chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line:
                yield event_of(line)


def _decoder(into: type[Any] | None) -> Callable[[bytes], WatchEvent]:
    item: Any = dict[str, Any] if into is None else into
    decode_change = msgspec.json.Decoder(_Change[item]).decode

    def event_of(line: bytes) -> WatchEvent:
        if not line.startswith(_CHANGES):
            kind, raw = _other(line)
            if kind == "BOOKMARK":
                return WatchEvent("BOOKMARK", None, _HEADER.decode(raw).metadata.resource_version)
        change: Any = decode_change(line)
        return WatchEvent(change.type, change.object, _version(change.object, line))

    return event_of


def _other(line: bytes) -> tuple[str, msgspec.Raw]:
    """The type and raw object of a frame that may be no change; an error is raised as what it says."""
    frame = _FRAME.decode(line)
    if frame.type == "ERROR":
        status = _ANY.decode(frame.object)
        raise ApiError.from_status(int(status.get("code") or 500), status)
    return frame.type, frame.object


def _version(obj: Any, line: bytes) -> str:
    if isinstance(obj, dict):
        return cast("Obj", obj)["metadata"]["resourceVersion"]
    try:
        return obj.metadata.resource_version
    except AttributeError:
        return _HEADER.decode(_FRAME.decode(line).object).metadata.resource_version
