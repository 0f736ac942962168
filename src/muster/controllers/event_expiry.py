"""Removes events an hour after they last occurred."""

from __future__ import annotations

from contextlib import aclosing

from muster.api.errors import ApiError
from muster.api.groups import GroupMeta
from muster.api.resources import CORE_EVENTS
from muster.api.types import Leaf
from muster.client.clock import seconds_of
from muster.client.paging import pages
from muster.controllers.controller import Controller

LIFETIME = 3600.0
_SWEEP = 60.0
_PAGE = 500


class _Series(Leaf, frozen=True):
    last_observed_time: str | None = None


class _Event(Leaf, frozen=True):
    metadata: GroupMeta
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def happened(self) -> float:
        """When it last occurred."""
        seen = (
            self.last_timestamp,
            self.event_time,
            self.series.last_observed_time if self.series else None,
            self.metadata.creation_timestamp,
        )
        return max((when for text in seen if (when := seconds_of(text)) is not None), default=0.0)


class EventExpiry(Controller):
    """Sweeps instead of watching: events are many, and need not go on the second."""

    name = "event-expiry"

    def setup(self) -> None:
        self.queue.add("sweep")

    async def reconcile(self, key: str) -> float | None:
        oldest = self.clock.now() - LIFETIME
        async with aclosing(pages(self.client, CORE_EVENTS, size=_PAGE, into=_Event)) as found:
            async for page in found:
                for event in page.items:
                    if event.happened < oldest:
                        await self._remove(event.metadata)
        return _SWEEP

    async def _remove(self, metadata: GroupMeta) -> None:
        try:
            await self.client.delete(CORE_EVENTS, metadata.name, metadata.namespace, uid=metadata.uid)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
