"""Keeps a store equal to a collection on the API server: list, watch, resume, list again.

A watch that breaks is resumed at the last resource version seen. When that version has expired (410), everything is
listed again and the store replaces what it has. Each change reaches the store once and in order: an event that is not
newer than the last one was delivered before. An object that cannot be decoded is skipped with a message and does not
hold up the others. Failures are retried with backoff and never reach the store; `trouble` names the current one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, cast

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.backoff import Backoff, is_transient
from muster.client.clock import Clock
from muster.client.error_text import error_text
from muster.client.objects import metadata
from muster.client.paging import list_all
from muster.client.protocol import Client, Obj, WatchEvent
from muster.logs import V, keys

log = logging.getLogger(__name__)

GONE = 410
SHORT_WATCH = 1.0  # seconds; a watch that ends sooner would be opened again and again, so it is waited for


class Store(Protocol):
    """What a reflector writes into. The methods must not wait."""

    def replace(self, objects: list[Any], /) -> None:
        """The whole collection; an object that is not in it is gone."""
        ...

    def update(self, obj: Any, /) -> None:
        """An object was added or changed."""
        ...

    def delete(self, obj: Any, /) -> None:
        """An object is gone; this is its last state."""
        ...


@dataclass(frozen=True, slots=True)
class StoreFunctions:
    """A `Store` made of three functions."""

    replace: Callable[[list[Any]], None]
    update: Callable[[Any], None]
    delete: Callable[[Any], None]


class Reflector:
    """Lists and watches one resource in all namespaces, for as long as `run` runs.

    Objects are decoded into `into` together with the answer that carries them. With `convert`, or after one could not
    be decoded, each is decoded on its own.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        store: Store,
        clock: Clock,
        *,
        into: type[Any],
        convert: Callable[[Obj], Obj] | None = None,
        label_selector: str = "",
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()  # the first list is in the store
        self.trouble = ""  # why the server cannot be listed or watched at the moment
        self._client = client
        self._store = store
        self._clock = clock
        self._into = into
        self._convert = convert
        self._label_selector = label_selector
        self._one_by_one = convert is not None
        self._version = ""
        self.order = 0  # the newest version as a number, 0 if it is none
        self._backoff = Backoff(clock, first=0.2, most=30.0)

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        while True:
            try:
                await self._list()
                while True:
                    await self._watch()
            except (ApiError, OSError, msgspec.DecodeError) as error:
                await self._failed(error)

    async def _failed(self, error: Exception) -> None:
        """What to do before everything is listed again."""
        if isinstance(error, msgspec.ValidationError) and not self._one_by_one:
            log.warning("Objects are decoded one by one", extra=keys(resource=self.resource.plural, err=str(error)))
            self._one_by_one = True
            return
        self.trouble = self._text(error)
        log.warning("Cannot list", extra=keys(resource=self.resource.plural, err=self.trouble))
        await self._backoff.wait(error)

    # --- the list ----------------------------------------------------------------------------------

    async def _list(self) -> None:
        page = await list_all(
            self._client, self.resource, label_selector=self._label_selector, into=self._decoded_into()
        )
        objects = [self._decoded(item) for item in page.items] if self._one_by_one else page.items
        self._store.replace([obj for obj in objects if obj is not None])
        self._moved_to(page.resource_version)
        self._recovered()
        if not self.synced.is_set():
            log.log(V(2), "Listed", extra=keys(resource=self.resource.plural, count=len(objects)))
            self.synced.set()

    # --- the watch ---------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """One watch, until it ends or breaks. Raises only when everything must be listed again."""
        started = self._clock.now()
        try:
            if self.trouble:  # an open watch may be silent; an answer to a small list shows that the server is back
                await self._client.list(self.resource, limit=1, resource_version="0", into=None)
                self._recovered()
            await self._take_events()
        except ApiError as error:
            if error.code == GONE:
                log.log(V(1), "Watch expired, listing again", extra=keys(resource=self.resource.plural))
                return await self._list()
            if not is_transient(error):
                raise
            await self._pause(error)
        except msgspec.ValidationError:
            raise
        except (OSError, msgspec.DecodeError) as error:
            await self._pause(error)
        else:
            if self._clock.now() - started < SHORT_WATCH:
                await self._backoff.wait()
            else:
                self._backoff.reset()

    async def _take_events(self) -> None:
        watch = self._client.watch(
            self.resource,
            resource_version=self._version,
            label_selector=self._label_selector,
            into=self._decoded_into(),
        )
        async with aclosing(cast("AsyncGenerator[WatchEvent, None]", watch)) as events:
            async for event in events:
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        """One event. A version that is not newer than the last one was delivered before."""
        version = event.resource_version
        order = int(version) if version.isdigit() else 0
        if order and order <= self.order:
            return
        if event.type != "BOOKMARK":
            obj = self._decoded(event.object) if self._one_by_one else event.object
            if obj is not None:
                if event.type == "DELETED":
                    self._store.delete(obj)
                else:
                    self._store.update(obj)
        self._version, self.order = version or self._version, order or self.order

    async def _pause(self, error: Exception) -> None:
        self.trouble = self._text(error)
        log.log(V(2), "Watch ended", extra=keys(resource=self.resource.plural, err=self.trouble))
        await self._backoff.wait(error)

    # --- both --------------------------------------------------------------------------------------

    def _recovered(self) -> None:
        if self.trouble:
            log.info("Connected again", extra=keys(resource=self.resource.plural))
        self.trouble = ""
        self._backoff.reset()

    def _moved_to(self, version: str) -> None:
        self._version = version
        self.order = int(version) if version.isdigit() else 0

    def _text(self, error: Exception) -> str:
        return error_text(error, "list and watch", self.resource.plural, self.resource.group)

    def _decoded_into(self) -> type[Any] | None:
        return None if self._one_by_one else self._into

    def _decoded(self, item: Any) -> Any:
        """One object of an undecoded answer, or None if it cannot be decoded."""
        try:
            return msgspec.convert(item if self._convert is None else self._convert(item), self._into)
        except (msgspec.ValidationError, ValueError) as error:
            where = keys(resource=self.resource.plural, name=metadata(item).get("name", ""), err=str(error))
            log.error("An object cannot be read and is ignored", extra=where)
            return None
