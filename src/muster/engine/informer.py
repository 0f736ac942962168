"""One kind's objects, followed: listed page by page, then watched from there, for ever.

What comes out is exactly what happened, each change once and in order, whatever the connection does: a
watch that breaks is resumed at the last version seen; when that version is too old everything is listed
again and compared with what was known, so objects that vanished meanwhile are reported as removed.
An object that cannot be decoded is skipped with a message; the others are not held up by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from muster.api.errors import ApiError
from muster.api.groups import GROUP, HUB
from muster.api.resources import Resource
from muster.api.versions import convert
from muster.client.protocol import Client, WatchEvent
from muster.engine.logs import V, keys
from muster.engine.pace import Backoff, Pace, is_transient
from muster.engine.refusals import words
from muster.engine.served import OLD
from muster.scheduler.interface.events import KINDS, Event, ObjectDeleted, ObjectUpdated

log = logging.getLogger(__name__)

PAGE = 1000
Key = tuple[str, str]


class Informer:
    """Follows one resource and reports `Changed` and `Removed` of its kind."""

    def __init__(self, client: Client, resource: Resource, report: Callable[[Event], None], pace: Pace) -> None:
        self.resource = resource
        self.kind = resource.kind
        self.known: dict[Key, Any] = {}
        self.synced = asyncio.Event()
        self.trouble = ""  # what is wrong with the connection at the moment
        self.adjust: Callable[[Any], Any] | None = None  # a last word on every object before it is reported
        self.forget: Callable[[str], None] | None = None
        self._client = client
        self._report = report
        self._pace = pace
        self._type = KINDS[resource.kind]
        self._converts = resource.group == GROUP and resource.version == OLD
        self._one_by_one = self._converts  # decode objects singly instead of with the whole answer
        self._version = ""
        self._order = 0
        self._failures = Backoff(pace, first=0.2, most=30.0)

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._list()
                while True:
                    await self._watch()
            except ApiError as error:
                await self._complain(error)
            except msgspec.ValidationError as error:
                # One object of a form nobody foresaw must not hide the others.
                log.warning("Objects are decoded one by one", extra=keys(resource=self.resource.plural, err=str(error)))
                self._one_by_one = True
            except (ConnectionError, TimeoutError, msgspec.DecodeError) as error:
                await self._complain(error)

    async def _complain(self, error: Exception) -> None:
        self.trouble = self._words(error)
        log.warning("Cannot list", extra=keys(resource=self.resource.plural, err=self.trouble))
        await self._failures.wait(error)

    def _words(self, error: Exception) -> str:
        return words(error, "list and watch", self.resource.plural, self.resource.group)

    # --- the list ----------------------------------------------------------------------------------

    async def _list(self) -> None:
        gone = dict(self.known)
        token, limit = "", PAGE
        while True:
            try:
                into = None if self._one_by_one else self._type
                page = await self._client.list(self.resource, limit=limit, continue_token=token, into=into)
            except ApiError as error:
                if error.code != 410 or not token:
                    raise
                token, limit = "", 0  # the list outlived its version: take it in one piece
                continue
            for item in page.items:
                obj = self._decoded(item)
                if obj is not None:
                    key = (obj.metadata.namespace, obj.metadata.name)
                    gone.pop(key, None)
                    self._learn(key, obj)
            token = page.continue_token
            if not token:
                break
            await asyncio.sleep(0)
        for key, obj in gone.items():
            self._remove(key, obj)
        self._moved_to(page.resource_version)
        self._well()
        if not self.synced.is_set():
            log.log(V(2), "Listed", extra=keys(resource=self.resource.plural, count=len(self.known)))
            self.synced.set()

    def _learn(self, key: Key, obj: Any) -> None:
        """Report an object unless exactly this version of it is known."""
        if self.adjust is not None:
            obj = self.adjust(obj)
        before = self.known.get(key)
        if before is not None:
            if before.metadata.uid != obj.metadata.uid:
                self._remove(key, before)
            elif before.metadata.resource_version == obj.metadata.resource_version:
                return
        self.known[key] = obj
        self._report(ObjectUpdated(self.kind, obj))

    def _remove(self, key: Key, obj: Any) -> None:
        self.known.pop(key, None)
        if self.forget is not None:
            self.forget(obj.metadata.uid)
        self._report(ObjectDeleted(self.kind, key[0], key[1], obj.metadata.uid))

    # --- the watch ---------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """One watch, until it ends or breaks. Leaves by an exception only when a new list is needed."""
        started = self._pace.now()
        try:
            if self.trouble:  # an open watch may be silent; an answer to a small list shows that the server is back
                await self._client.list(self.resource, limit=1, resource_version="0", into=None)
                self._well()
            into = None if self._one_by_one else self._type
            async for event in self._client.watch(self.resource, resource_version=self._version, into=into):
                self._take(event)
        except ApiError as error:
            if error.code == 410:
                log.log(V(1), "Watch expired, listing again", extra=keys(resource=self.resource.plural))
                return await self._list()
            if not is_transient(error):
                raise
            await self._pause(error)
        except (ConnectionError, TimeoutError, msgspec.DecodeError) as error:
            if isinstance(error, msgspec.ValidationError):
                raise
            await self._pause(error)
        else:
            if self._pace.now() - started < 1.0:  # a watch that ends at once would be opened for ever
                await self._failures.wait()

    async def _pause(self, error: Exception) -> None:
        self.trouble = self._words(error)
        log.log(V(2), "Watch ended", extra=keys(resource=self.resource.plural, err=self.trouble))
        await self._failures.wait(error)

    def _well(self) -> None:
        if self.trouble:
            log.info("Connected again", extra=keys(resource=self.resource.plural))
        self.trouble = ""
        self._failures.reset()

    def _take(self, event: WatchEvent) -> None:
        """One frame. A version that is not newer than the last one was delivered before."""
        version = event.resource_version
        order = int(version) if version.isdigit() else 0
        if order and order <= self._order:
            return
        if event.type != "BOOKMARK":
            obj = self._decoded(event.object)
            if obj is not None:
                key = (obj.metadata.namespace, obj.metadata.name)
                if event.type != "DELETED":
                    self._learn(key, obj)
                elif key in self.known:
                    self._remove(key, self.known[key])
        self._version, self._order = version, order

    def _moved_to(self, version: str) -> None:
        self._version = version
        self._order = int(version) if version.isdigit() else 0

    def _decoded(self, item: Any) -> Any:
        """The projection of an object, or None if it cannot be read."""
        if not self._one_by_one or not isinstance(item, dict):
            return item
        try:
            obj: dict[str, Any] = {"apiVersion": self.resource.api_version, "kind": self.kind, **item}
            if self._converts:
                obj = convert(obj, HUB)
            return msgspec.convert(obj, self._type)
        except (msgspec.ValidationError, ValueError) as error:
            name = (item.get("metadata") or {}).get("name", "")
            where = keys(resource=self.resource.plural, name=name, err=str(error))
            log.error("An object cannot be read and is ignored", extra=where)
            return None
