"""Watch frames: one JSON document a line, decoded straight into the type the caller wants.

A frame is read in two steps because its object depends on its type: the envelope keeps the object as raw bytes, which
are then decoded once. An ERROR frame ends the stream as the `ApiError` it carries; a half-written last line is dropped,
because a watch resumes from the last event that arrived whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

from muster.api.errors import ApiError
from muster.client.protocol import WatchEvent


class Chunks(Protocol):
    """What aiohttp's stream reader gives us."""

    def iter_any(self) -> AsyncIterator[bytes]: ...


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _HasMeta(msgspec.Struct):
    metadata: _Meta


_FRAME = msgspec.json.Decoder(_Frame)
_HEADER = msgspec.json.Decoder(_HasMeta)
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


def _decoder(into: type[Any] | None) -> Any:
    decode_frame = _FRAME.decode
    decode_object = (_ANY if into is None else msgspec.json.Decoder(into)).decode

    def event_of(line: bytes) -> WatchEvent:
        frame = decode_frame(line)
        kind = frame.type
        if kind == "BOOKMARK":
            return WatchEvent("BOOKMARK", None, _HEADER.decode(frame.object).metadata.resource_version)
        if kind == "ERROR":
            status = _ANY.decode(frame.object)
            raise ApiError.from_status(int(status.get("code") or 500), status)
        obj = decode_object(frame.object)
        return WatchEvent(kind, obj, _version(obj, frame.object))  # type: ignore[arg-type]

    return event_of


def _version(obj: Any, raw: msgspec.Raw) -> str:
    if isinstance(obj, dict):
        return obj["metadata"]["resourceVersion"]
    try:
        return obj.metadata.resource_version
    except AttributeError:
        return _HEADER.decode(raw).metadata.resource_version
