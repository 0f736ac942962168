"""A server core in memory and short ways to ask it things."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from muster.server.core import ApiServer
from muster.server.request import ADMIN, JSON, Request, Response, User, WatchStream
from muster.server.served_kinds import build_registry
from muster.server.store.base import Store
from muster.server.store.memory import MemoryStore

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Clock:
    """Time that stands still until told."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Answer:
    """A finished answer, decoded."""

    def __init__(self, response: Response) -> None:
        self.code = response.status
        self.response = response
        self.text = response.body.decode()
        self.body: Any = msgspec.json.decode(response.body) if response.content_type.startswith(JSON) else None
        self.warnings = response.warnings

    @property
    def meta(self) -> dict[str, Any]:
        return self.body["metadata"]

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def rv(self) -> str:
        return self.body["metadata"]["resourceVersion"]


class Api:
    """Asks a server core as an HTTP client would."""

    def __init__(self, store: Store | None = None, clock: Clock | None = None, seed: int = 1) -> None:
        self.clock = clock or Clock()
        self.store = store or MemoryStore(self.clock)
        self.server = ApiServer(self.store, build_registry(), clock=self.clock, rng=random.Random(seed))

    async def start(self) -> Api:
        await self.server.bootstrap()
        return self

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = JSON,
        accept: str = "",
        headers: Mapping[str, str] | None = None,
        user: User = ADMIN,
        **query: str,
    ) -> Answer:
        answer = await self.raw(method, path, body, content=content, accept=accept, headers=headers, user=user, **query)
        assert isinstance(answer, Response)
        return Answer(answer)

    async def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = JSON,
        accept: str = "",
        headers: Mapping[str, str] | None = None,
        user: User = ADMIN,
        **query: str,
    ) -> Response | WatchStream:
        sent = {"content-type": content, **(headers or {})}
        if accept:
            sent["accept"] = accept
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        return await self.server.handle(
            Request(method, path, {name: (value,) for name, value in query.items()}, sent, data, user)
        )

    async def get(self, path: str, **options: str) -> Answer:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.ask("POST", path, body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.ask("PUT", path, body, **options)

    async def merge(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.ask("PATCH", path, body, content="application/merge-patch+json", **options)

    async def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.ask("DELETE", path, body, **options)

    async def watch(self, path: str, *, accept: str = "", **query: str) -> list[dict[str, Any]]:
        """All events until the watch ends."""
        stream = await self.raw("GET", path, accept=accept, watch="true", **query)
        assert isinstance(stream, WatchStream), stream
        data = b"".join([frame async for frame in stream.frames])
        return [msgspec.json.decode(line) for line in data.splitlines()]


PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
GROUPS = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/podgroups"


def a_config_map(name: str = "c", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}
