"""The world that all cases of a module attack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile_world import World

from muster.server import object_lister


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    patience = object_lister.FUTURE_WAIT_SECONDS
    object_lister.FUTURE_WAIT_SECONDS = 0.0
    world = World()
    yield world
    try:
        world.check_what_is_stored()
    finally:
        object_lister.FUTURE_WAIT_SECONDS = patience
        world.close()
