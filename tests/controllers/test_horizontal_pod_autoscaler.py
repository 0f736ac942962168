"""An autoscaler is told that nothing scales here, once."""

from __future__ import annotations

from muster.api.resources import CORE_EVENTS, HORIZONTAL_POD_AUTOSCALERS
from tests.controllers.conftest import World


async def test_an_event_says_that_nothing_is_scaled(world: World):
    await world.start("horizontal-pod-autoscaler")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    made = await world.create(HORIZONTAL_POD_AUTOSCALERS, "h", spec={"scaleTargetRef": target, "maxReplicas": 3})
    await world.settle()
    await world.client.patch(HORIZONTAL_POD_AUTOSCALERS, "h", {"spec": {"maxReplicas": 4}}, "default")
    await world.settle()
    (event,) = (await world.client.list(CORE_EVENTS, "default")).items
    assert event["involvedObject"]["uid"] == made["metadata"]["uid"]
    assert "nothing is scaled" in event["message"]
    assert event.get("count", 1) == 1
