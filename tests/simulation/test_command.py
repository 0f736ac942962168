"""What a run demands of its days: everything that can go wrong has gone wrong, once there were enough of them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.simulation.command import REACHED, SELDOM, never_reached
from tests.simulation.deeds import pause
from tests.simulation.world import World


def everything_but(*names: str) -> Counter[str]:
    return Counter({name: 1 for name in REACHED if name not in names})


def test_a_fault_that_never_happened_is_named_after_a_hundred_days():
    counts = everything_but("partition")
    assert never_reached(counts, 99) == []
    assert never_reached(counts, 100) == ["partition"]


def test_what_few_days_have_is_demanded_of_longer_runs():
    counts = everything_but(*SELDOM)
    assert never_reached(counts, 299) == []
    assert never_reached(counts, 300) == list(SELDOM)


async def test_the_second_scheduler_is_paused_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    world = World(92, [])
    assert "c" in world.components
    asked: list[str] = []
    monkeypatch.setattr(world, "pause", lambda name, seconds: asked.append(name))
    for number in range(200):
        await pause(world, Random(number))
    world.loop.shut_down()
    assert asked.count("c") > 60
    assert set(asked) == set(world.components)
