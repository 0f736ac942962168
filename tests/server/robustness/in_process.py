"""A server core without HTTP, over a store of the test's choice."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

import msgspec

from muster.server.core import ApiServer
from muster.server.request import ADMIN, Request, Response, WatchStream
from muster.server.served_kinds import build_registry
from muster.server.store.base import Store
from muster.server.store.memory import MemoryStore

Obj = dict[str, Any]


class Api:
    """A core, and how to ask it."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or MemoryStore()
        self.core = ApiServer(self.store, build_registry(), rng=random.Random(1))

    async def start(self) -> Api:
        await self.core.bootstrap()
        return self

    async def ask(
        self, method: str, path: str, body: Any = b"", content: str = "application/json", **query: str
    ) -> Response:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        answer = await self.core.handle(_request(method, path, query, {"content-type": content}, data))
        assert isinstance(answer, Response)
        return answer

    async def watch(self, path: str, **query: str) -> WatchStream | Response:
        return await self.core.handle(_request("GET", path, {"watch": "true", **query}, {}, b""))

    async def events(self, path: str, **query: str) -> list[tuple[str, Obj]]:
        """All events of a watch that are there to be told."""
        stream = await self.watch(path, **query)
        assert isinstance(stream, WatchStream), stream
        frames: Any = stream.frames
        data = b""
        with suppress(TimeoutError):
            while True:
                # What is already stored comes without waiting.
                async with asyncio.timeout(0.01):
                    data += await anext(frames)
        await frames.aclose()
        return [(event["type"], event["object"]) for event in map(msgspec.json.decode, data.splitlines())]


def _request(method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> Request:
    return Request(method, path, {name: (value,) for name, value in query.items()}, headers, body, ADMIN)
