"""List, then watch, forever: the state of a collection and every change to it, in order.

A broken watch goes on from the last version that arrived; one whose version is too old starts over
with a fresh list, which the consumer takes as the whole truth (`Snapshot`). Failures are waited out with
a growing pause and never reach the consumer.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NamedTuple, cast

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.protocol import Client, WatchEvent

logger = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 10.0
_WATCH_SECONDS = 600
_PAGE = 2000
_GONE = 410


class Snapshot(NamedTuple):
    """Everything there is; whatever is not in it is gone."""

    items: list[Any]


async def follow(
    client: Client,
    resource: Resource,
    *,
    pause: Callable[[float], Awaitable[None]],
    into: type[Any] | None = None,
    label_selector: str = "",
) -> AsyncGenerator[Snapshot | WatchEvent, None]:
    """Snapshots and changes of one collection in all namespaces."""
    wait = _FIRST_PAUSE
    version = ""
    while True:
        try:
            if not version:
                items, version = await _everything(client, resource, into, label_selector)
                yield Snapshot(items)
            watch = client.watch(
                resource,
                resource_version=version,
                label_selector=label_selector,
                timeout_seconds=_WATCH_SECONDS,
                into=into,
            )
            async with aclosing(cast("AsyncGenerator[WatchEvent, None]", watch)) as events:
                async for event in events:
                    wait = _FIRST_PAUSE
                    version = event.resource_version or version
                    if event.type != "BOOKMARK":
                        yield event
        except ApiError as error:
            if error.code == _GONE:
                version = ""
            logger.debug("watch of %s ended: %s", resource.plural, error)
        except msgspec.DecodeError as error:
            # An object that does not fit the projection must not end the upkeep of all others.
            logger.error("an object of %s cannot be read: %s", resource.plural, error)
            version = ""
        except (ConnectionError, TimeoutError, OSError) as error:
            logger.debug("watch of %s broke: %s", resource.plural, error)
        await pause(wait)
        wait = min(wait * 2, _LONGEST_PAUSE)


async def _everything(
    client: Client, resource: Resource, into: type[Any] | None, label_selector: str
) -> tuple[list[Any], str]:
    items: list[Any] = []
    token = ""
    while True:
        page = await client.list(resource, label_selector=label_selector, limit=_PAGE, continue_token=token, into=into)
        items += page.items
        token = page.continue_token
        if not token:
            return items, page.resource_version
