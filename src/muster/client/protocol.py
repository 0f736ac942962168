"""The interface of an API server client, whichever transport carries it.

`LocalClient` (in-process) and `HTTPClient` implement this protocol over the same wire semantics.
Objects are plain JSON dicts unless a msgspec type is given with `into`; then list and watch decode
the bytes straight into that projection, which keeps watches cheap. Failures are
`muster.api.errors.ApiError` (the server answered) or `ConnectionError` (no answer: a write may have taken place).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, NamedTuple, Protocol

from muster.api.resources import Resource

Obj = dict[str, Any]
PatchType = Literal["json", "merge", "strategic", "apply"]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Page(NamedTuple):
    """One answer to a list: the objects, the revision they show, and where to go on."""

    items: list[Any]
    resource_version: str
    continue_token: str = ""


class WatchEvent(NamedTuple):
    """One change. A BOOKMARK carries only its resource version (object is None)."""

    type: EventType
    object: Any
    resource_version: str


class Client(Protocol):
    """List, watch, get, create, update, patch, delete, bind, evict."""

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        into: type[Any] | None = None,
    ) -> Page: ...

    def watch(
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
        """Changes after the version, with bookmarks; raises ApiError 410 when the version is too old."""
        ...

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj: ...

    async def create(
        self, resource: Resource, obj: Obj, namespace: str | None = None, *, dry_run: bool = False
    ) -> Obj: ...

    async def update(
        self, resource: Resource, obj: Obj, *, subresource: str | None = None, dry_run: bool = False
    ) -> Obj: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType = "merge",
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Obj: ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Obj: ...

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """POST pods/NAME/binding. 409 if it is already bound or being deleted."""
        ...

    async def request(self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Obj:
        """Anything else: discovery, reviews, subresources without a verb of their own."""
        ...

    def fenced(self, guard: Callable[[], None]) -> Client:
        """The same client, but `guard` too is called right before each write, at every try, and may raise.

        Reading stays free.
        """
        ...

    async def close(self) -> None: ...
