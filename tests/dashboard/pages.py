"""A dashboard in the test's own event loop, and a browser that is only cookies and requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from muster.dashboard.server import DashboardServer, Listen
from muster.dashboard.source import SnapshotSource, Source
from tests.build.scheduler import TestWorld
from tests.cli.snapshots import snapshot_of

RACK = "topology.muster.dev/rack"


@asynccontextmanager
async def a_browser(source: Source | TestWorld, **options: Any) -> AsyncGenerator[aiohttp.ClientSession]:
    """A signed-in session on a dashboard of a source, or of a world as a snapshot."""
    shown = SnapshotSource(snapshot_of(source), "file") if isinstance(source, TestWorld) else source
    async with DashboardServer(shown, Listen(), **options) as server:
        jar = aiohttp.CookieJar(unsafe=True)  # the host is an address, not a name
        async with aiohttp.ClientSession(server.address, cookie_jar=jar) as browser:
            async with browser.get(server.link()) as answer:
                assert answer.status == 200
            yield browser


async def get(browser: aiohttp.ClientSession, path: str, status: int = 200, **options: Any) -> Any:
    """The JSON that a path answers."""
    async with browser.get(path, **options) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()
