"""The server core that every test here asks."""

from __future__ import annotations

import pytest
from core_api import Api


@pytest.fixture
async def api() -> Api:
    return await Api().start()
