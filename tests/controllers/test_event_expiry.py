"""Events last an hour."""

from __future__ import annotations

from muster.api.resources import CORE_EVENTS, EVENTS
from muster.client.clock import timestamp
from tests.controllers.conftest import World


async def an_event(world: World, name: str) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    when = timestamp(world.clock.now())
    await world.create(CORE_EVENTS, name, involvedObject=about, reason="R", firstTimestamp=when, lastTimestamp=when)


async def test_an_event_goes_an_hour_after_it_last_happened(world: World):
    await world.start("event-expiry")
    await an_event(world, "old")
    await an_event(world, "again")
    await world.advance(3000)
    await world.client.patch(CORE_EVENTS, "again", {"lastTimestamp": timestamp(world.clock.now())}, "default")

    await world.advance(700)

    assert await world.get(CORE_EVENTS, "old") is None
    assert await world.get(EVENTS, "old") is None
    assert await world.get(CORE_EVENTS, "again") is not None
