"""Watch events as bytes: one JSON object a line, as the object itself, as a Table row, or as metadata only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.server.call import Call
from muster.server.codec import View
from muster.server.error_status import error_event
from muster.server.watch import BOOKMARK, Event, Watch

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Frame = Callable[[Event], bytes]


async def stream(watch: Watch, frame: Frame) -> AsyncGenerator[bytes, None]:
    """The frames of a watch, joined where several are ready. An error on the way becomes the last frame."""
    try:
        async with aclosing(watch.batches()) as batches:
            async for batch in batches:
                yield b"".join(map(frame, batch))
    except ApiError as error:
        yield error_event(error)


def plain(view: View) -> Frame:
    """Frames with whole objects; for the storage version they are made of the stored bytes."""
    heads = {kind: b'{"type":"' + kind.encode() + b'","object":' for kind in ("ADDED", "MODIFIED", "DELETED")}
    direct = {kind: head + view.head for kind, head in heads.items()}

    def frame(event: Event) -> bytes:
        if event.record is None:
            return bookmark(view.kind.kind, view.api_version, event)
        if view.direct:
            return b"".join((direct[event.type], event.record.body[1:], b"}\n"))
        return b"".join((heads[event.type], view.object(event.record), b"}\n"))

    return frame


def bookmark(kind: str, api_version: str, event: Event) -> bytes:
    meta: dict[str, Any] = {"resourceVersion": str(event.revision), "creationTimestamp": None}
    if event.initial_end:
        meta["annotations"] = {INITIAL_EVENTS_END: "true"}
    shown = {"kind": kind, "apiVersion": api_version, "metadata": meta}
    return msgspec.json.encode({"type": BOOKMARK, "object": shown}) + b"\n"


def shaped(call: Call, shape: Callable[[Event], dict[str, Any]]) -> Frame:
    """Frames whose objects another module shapes: tables and partial objects."""

    def frame(event: Event) -> bytes:
        if event.record is None and call.form.shape != "Table":
            return bookmark("PartialObjectMetadata", f"meta.k8s.io/{call.form.version}", event)
        return msgspec.json.encode({"type": event.type, "object": shape(event)}) + b"\n"

    return frame
