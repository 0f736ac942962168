"""Every controller: reconciliations that always ask again leave the loop to others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.controllers import CONTROLLERS
from muster.controllers.controller import Controller
from tests.controllers.conftest import World


@pytest.mark.parametrize("name", [each.name for each in CONTROLLERS])
async def test_a_reconciliation_that_always_asks_again_leaves_the_loop_to_others(
    name: str, world: World, monkeypatch: pytest.MonkeyPatch
):
    await world.start(name)
    assert world.manager is not None
    controller: Controller = next(each for each in world.manager.controllers if each.name == name)
    rounds = 0

    async def again(key: Any) -> float | None:
        nonlocal rounds
        rounds += 1
        assert rounds < 10_000, "the loop was held"
        controller.queue.add(("", "partner" if key == ("", "key") else "key"))
        return 0.0

    monkeypatch.setattr(controller, "reconcile", again)
    controller.queue.add(("", "key"))
    between = 0
    for _ in range(500):
        await asyncio.sleep(0)
        between += 1

    assert between == 500, "this task had its turns"
    assert 0 < rounds <= 200, "and keys that ask for each other were slowed down"
