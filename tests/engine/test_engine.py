"""The engine end to end against a real API server in memory."""

from __future__ import annotations

from tests.engine.builders import FirstNodeBrain
from tests.engine.conftest import World, eventually


async def test_pods_that_exist_at_the_start_are_bound(world: World):
    await world.node()
    await world.pod("early")

    await world.start()

    async def bound() -> bool:
        return await world.node_of("early") == "n1"

    await eventually(bound)


async def test_pods_that_come_later_are_bound(world: World):
    await world.node()
    engine = await world.start()
    await world.pod("late")

    async def bound() -> bool:
        return await world.node_of("late") == "n1"

    await eventually(bound)
    await engine.settled()
    assert len(world.client.verbs("bind")) == 1


async def test_the_brain_hears_synced_after_the_first_lists(world: World):
    await world.node()
    await world.pod("early")
    brain = FirstNodeBrain()

    await world.start(brain)

    kinds = [type(event).__name__ for event in brain.heard]
    assert "Synced" in kinds
    before = brain.heard[: kinds.index("Synced")]
    assert {getattr(event, "kind", "") for event in before} >= {"Pod", "Node"}
