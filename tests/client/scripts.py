"""A server that follows a script, for tests of what lists and watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from muster.api.resources import Resource
from muster.client.protocol import Page, WatchEvent


class Script:
    """A client that gives the pages and watches it was told to give, then is silent. Exceptions are raised."""

    def __init__(self, pages: list[Any], watches: list[Any] | None = None) -> None:
        self.pages = list(pages)
        self.watches = list(watches or ())
        self.asked: list[dict[str, Any]] = []

    async def list(self, resource: Resource, **query: Any) -> Page:
        self.asked.append(query)
        answer = self.pages.pop(0)
        if isinstance(answer, Exception):
            raise answer
        into = query.get("into")
        if into is None:
            return answer
        return answer._replace(items=[msgspec.convert(item, into) for item in answer.items])

    async def watch(self, resource: Resource, **query: Any) -> AsyncIterator[WatchEvent]:
        self.asked.append({"watch": True, **query})
        if not self.watches:
            await asyncio.Event().wait()
        for step in self.watches.pop(0):
            if isinstance(step, Exception):
                raise step
            into = query.get("into")
            if step.object is not None and into is not None:
                step = step._replace(object=msgspec.convert(step.object, into))
            yield step

    async def played(self) -> None:
        """Wait until everything was asked for and taken."""
        for _ in range(200):
            await asyncio.sleep(0)
            if not self.pages and not self.watches:
                break
        for _ in range(20):
            await asyncio.sleep(0)


def obj(name: str, version: int, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, **more}


def event(type_: Any, name: str, version: int) -> WatchEvent:
    return WatchEvent(type_, obj(name, version), str(version))
