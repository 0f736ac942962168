"""A client of a bad day."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.local import LocalClient
from muster.client.protocol import Page, WatchEvent


class FlakyClient(LocalClient):
    """A client of a bad day: one call in `odds` goes wrong, before or after the server has done it."""

    def __init__(self, core: Any, seed: int, odds: int = 6) -> None:
        super().__init__(core)
        self._rng = random.Random(seed)
        self._odds = odds
        self._outdated: set[str] = set()
        self.calm = False

    def _unlucky(self) -> bool:
        return not self.calm and self._rng.randrange(self._odds) == 0

    async def list(self, resource: Resource, *args: Any, **named: Any) -> Page:
        self._outdated.discard(resource.plural)
        return await super().list(resource, *args, **named)

    async def watch(self, resource: Resource, *args: Any, **named: Any) -> AsyncIterator[WatchEvent]:
        if resource.plural in self._outdated:
            raise ApiError(410, "Expired", "too old resource version")
        async for event in super().watch(resource, *args, **named):
            if self._unlucky():
                if self._rng.random() < 0.5:
                    raise ConnectionError("the watch broke")
                self._outdated.add(resource.plural)
                raise ApiError(410, "Expired", "too old resource version")
            yield event
            if self._rng.randrange(20) == 0:
                yield event  # the same news twice

    async def _call(self, method: str, *args: Any, **named: Any) -> bytes:
        if method == "GET" or not self._unlucky():
            return await super()._call(method, *args, **named)
        match self._rng.randrange(3):
            case 0:
                raise ApiError(500, "InternalError", "not now")
            case 1:
                raise ConnectionError("never arrived")
            case _:
                await super()._call(method, *args, **named)
                raise TimeoutError("the answer was lost")
