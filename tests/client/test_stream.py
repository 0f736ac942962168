"""Watch frames on the client's side."""

from collections.abc import AsyncIterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.api.types import ObjectMeta
from muster.client.protocol import WatchEvent
from muster.client.stream import frames


class Pieces:
    """A body that arrives in the given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Thing(msgspec.Struct):
    metadata: ObjectMeta


class NameOnly(msgspec.Struct):
    kind: str = ""


def a_frame(type: str, version: str, name: str = "x") -> bytes:
    obj = {"kind": "Thing", "metadata": {"name": name, "resourceVersion": version}}
    return msgspec.json.encode({"type": type, "object": obj}) + b"\n"


async def read(body: Pieces, into: type | None = None) -> list[WatchEvent]:
    return [event async for event in frames(body, into)]


async def test_objects_are_dicts_unless_a_type_is_asked_for() -> None:
    body = Pieces(a_frame("ADDED", "5"))
    assert (await read(body))[0].object["metadata"]["name"] == "x"
    assert (await read(body, Thing))[0] == WatchEvent("ADDED", Thing(ObjectMeta("x", resource_version="5")), "5")


async def test_a_type_without_metadata_still_tells_its_version() -> None:
    assert await read(Pieces(a_frame("MODIFIED", "6")), NameOnly) == [WatchEvent("MODIFIED", NameOnly("Thing"), "6")]


async def test_a_bookmark_carries_only_its_version() -> None:
    assert await read(Pieces(a_frame("BOOKMARK", "9")), Thing) == [WatchEvent("BOOKMARK", None, "9")]


async def test_an_error_frame_is_raised_as_what_it_says() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    body = Pieces(a_frame("ADDED", "1"), msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n")
    with pytest.raises(ApiError) as caught:
        await read(body)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_the_order_of_a_frames_fields_does_not_matter() -> None:
    obj = {"metadata": {"name": "x", "resourceVersion": "5"}}
    line = msgspec.json.encode({"object": obj, "type": "ADDED"}) + b"\n"
    assert (await read(Pieces(line), Thing))[0].resource_version == "5"


async def test_a_half_written_last_frame_is_dropped() -> None:
    assert len(await read(Pieces(a_frame("ADDED", "1"), a_frame("ADDED", "2")[:-10]))) == 1


@given(st.lists(st.integers(1, 99), min_size=1, max_size=8), st.lists(st.integers(0, 600), max_size=10))
async def test_frames_are_whole_however_the_bytes_are_cut(versions: list[int], cuts: list[int]) -> None:
    body = b"".join(a_frame("ADDED", str(version)) for version in versions)
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    pieces = [body[start:end] for start, end in pairwise(edges)]
    assert [event.resource_version for event in await read(Pieces(*pieces))] == [str(version) for version in versions]
