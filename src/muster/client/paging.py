"""Lists of whole collections, read page by page."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.protocol import Client, Page

PAGE = 1000


async def pages(
    client: Client,
    resource: Resource,
    *,
    label_selector: str = "",
    size: int = PAGE,
    into: type[Any] | None = None,
) -> AsyncGenerator[Page, None]:
    """The pages of one consistent list over all namespaces. Raises ApiError 410 if its version expires on the way."""
    token = ""
    while True:
        page = await client.list(resource, label_selector=label_selector, limit=size, continue_token=token, into=into)
        yield page
        token = page.continue_token
        if not token:
            return


async def list_all(
    client: Client,
    resource: Resource,
    *,
    label_selector: str = "",
    size: int = PAGE,
    into: type[Any] | None = None,
) -> Page:
    """A whole collection as one page. If the version expires between two pages, it is listed again without a limit."""
    items: list[Any] = []
    version: str | None = None
    try:
        # Nothing in the loop raises, so the generator is always run to its end.
        async for page in pages(client, resource, label_selector=label_selector, size=size, into=into):
            items += page.items
            version = page.resource_version
    except ApiError as error:
        if error.code != 410 or version is None:
            raise
        return await client.list(resource, label_selector=label_selector, limit=0, into=into)
    assert version is not None
    return Page(items, version)
