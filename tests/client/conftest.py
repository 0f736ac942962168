"""Fixtures of the client's tests."""

from collections.abc import AsyncIterator

import pytest

from muster.server.http import HttpServer
from tests.client.scripted_server import ScriptedServer


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedServer]:
    one = ScriptedServer()
    server = HttpServer(one.admit, one.handle)
    await server.start()
    one.port = server.port
    yield one
    await server.stop(0.1)
