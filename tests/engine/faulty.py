"""A client that fails on demand: before a call is made, or after it was made and before the answer arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from muster.client.local import LocalClient
from muster.client.protocol import WatchEvent


class FaultyClient:
    """Wraps a client. `before` and `after` are asked at every call and may raise; every call is recorded."""

    def __init__(self, inner: LocalClient) -> None:
        self.inner = inner
        self.calls: list[tuple[str, str]] = []  # verb, name
        self.before: Callable[[str, str], None] = lambda verb, name: None
        self.after: Callable[[str, str], None] = lambda verb, name: None
        self.watches: list[asyncio.Event] = []
        self.duplicate = False
        self.slow: float = 0.0

    def verbs(self, *wanted: str) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] in wanted]

    def drop_watches(self) -> None:
        """Break every watch that is open."""
        for broken in self.watches:
            broken.set()
        self.watches = []

    async def _call(self, verb: str, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((verb, name))
        self.before(verb, name)
        if self.slow:
            await asyncio.sleep(self.slow)
        answer = await getattr(self.inner, method)(*args, **kwargs)
        self.after(verb, name)
        return answer

    async def list(self, resource: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call("list", resource.plural, "list", resource, *args, **kwargs)

    async def watch(self, resource: Any, *args: Any, **kwargs: Any) -> AsyncIterator[WatchEvent]:
        self.before("watch", resource.plural)
        broken = asyncio.Event()
        self.watches.append(broken)
        stream = self.inner.watch(resource, *args, **kwargs)
        fault = asyncio.ensure_future(broken.wait())
        try:
            while True:
                coming = asyncio.ensure_future(anext(stream, None))
                await asyncio.wait({coming, fault}, return_when=asyncio.FIRST_COMPLETED)
                if broken.is_set():
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)
                    raise ConnectionError("the watch broke")
                event = coming.result()
                if event is None:
                    return
                yield event
                if self.duplicate:
                    yield event
        finally:
            fault.cancel()

    async def get(self, resource: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return await self._call("get", f"{resource.plural}/{name}", "get", resource, name, *args, **kwargs)

    async def create(self, resource: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call("create", resource.plural, "create", resource, obj, *args, **kwargs)

    async def update(self, resource: Any, obj: Any, **kwargs: Any) -> Any:
        name = f"{resource.plural}/{obj['metadata']['name']}"
        return await self._call("update", name, "update", resource, obj, **kwargs)

    async def patch(self, resource: Any, name: str, patch: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call("patch", f"{resource.plural}/{name}", "patch", resource, name, patch, *args, **kwargs)

    async def delete(self, resource: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return await self._call("delete", f"{resource.plural}/{name}", "delete", resource, name, *args, **kwargs)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        await self._call("bind", f"pods/{name}", "bind", namespace, name, uid, node)

    async def request(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        return await self._call("request", path, "request", method, path, *args, **kwargs)

    def fenced(self, guard: Callable[[], None]) -> FencedFaulty:
        return FencedFaulty(self, guard)

    async def close(self) -> None:
        await self.inner.close()


class FencedFaulty(FaultyClient):
    """The face of a faulty client that may not always write; faults are set and calls are recorded on the whole."""

    def __init__(self, whole: FaultyClient, guard: Callable[[], None]) -> None:
        self.whole = whole
        self.guard = guard

    async def _call(self, verb: str, name: str, method: str, *args: Any, **kwargs: Any) -> Any:
        if verb not in ("get", "list"):
            self.guard()
        return await self.whole._call(verb, name, method, *args, **kwargs)

    def watch(self, resource: Any, *args: Any, **kwargs: Any) -> AsyncIterator[WatchEvent]:
        return self.whole.watch(resource, *args, **kwargs)


def failing(error: Exception, *verbs: str, times: int = 1, name: str = "") -> Callable[[str, str], None]:
    """A fault for the first so many calls of these verbs."""
    left = times

    def fault(verb: str, about: str) -> None:
        nonlocal left
        if verb in verbs and name in about and left > 0:
            left -= 1
            raise error

    return fault
