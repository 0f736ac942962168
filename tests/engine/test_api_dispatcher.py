"""Decisions with volumes: a bind waits for its claims."""

from __future__ import annotations

from muster.api.resources import PERSISTENT_VOLUME_CLAIMS
from muster.scheduler.interface.decisions import Bind, SelectVolumeNode
from muster.scheduler.interface.events import BindFailed
from muster.scheduler.interface.keys import ObjectRef
from tests.engine.builders import ref
from tests.engine.conftest import World, eventually, quiet, say


async def a_claim(world: World, name: str) -> ObjectRef:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = await world.direct.create(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    )
    return ref(made, "PersistentVolumeClaim")


async def bind_claim(world: World, name: str) -> None:
    await world.direct.patch(PERSISTENT_VOLUME_CLAIMS, name, {"spec": {"volumeName": f"pv-{name}"}}, "default")
    status = {"status": {"phase": "Bound"}}
    await world.direct.patch(PERSISTENT_VOLUME_CLAIMS, name, status, "default", subresource="status")


async def test_a_pod_is_bound_when_its_claim_is(world: World):
    await world.node()
    pod, claim = await world.pod("p"), await a_claim(world, "data")
    scheduler, engine = await quiet(world)

    await say(engine, scheduler, [SelectVolumeNode(claim, "n1"), Bind(ref(pod), "n1")])
    chosen = await world.direct.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    assert chosen["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert await world.node_of("p") == ""

    await bind_claim(world, "data")

    async def bound() -> bool:
        return await world.node_of("p") == "n1"

    await eventually(bound)


async def test_a_choice_given_back_by_the_provisioner_fails_the_bind(world: World):
    await world.node()
    pod, claim = await world.pod("p"), await a_claim(world, "data")
    scheduler, engine = await quiet(world)
    await say(engine, scheduler, [SelectVolumeNode(claim, "n1"), Bind(ref(pod), "n1")])

    async def shown() -> bool:
        known = engine.sources["PersistentVolumeClaim"].known["default", "data"]
        return bool(known.metadata.annotations)

    await eventually(shown)
    back = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
    await world.direct.patch(PERSISTENT_VOLUME_CLAIMS, "data", back, "default")

    async def failed() -> bool:
        return [type(event) for event in scheduler.results()] == [BindFailed]

    await eventually(failed)
    assert await world.node_of("p") == ""
