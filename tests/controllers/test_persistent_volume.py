"""Claims and volumes find each other; the simulated class makes volumes and takes them away again."""

from __future__ import annotations

from typing import Any

from muster.api.resources import CORE_EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from muster.server.admission.bootstrap import default_storage_class
from tests.controllers.conftest import World


async def start(world: World) -> None:
    await world.start("persistent-volume-binder")


async def volume(world: World, name: str, size: str = "1Gi", **spec: Any) -> None:
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}
    await world.create(PERSISTENT_VOLUMES, name, None, spec=body)
    await world.settle()


async def claim(world: World, name: str = "c", size: str = "1Gi", **spec: Any) -> None:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    await world.create(PERSISTENT_VOLUME_CLAIMS, name, spec=body)
    await world.settle()


async def bound_to(world: World, name: str = "c") -> str:
    found = await world.get(PERSISTENT_VOLUME_CLAIMS, name)
    return found["spec"]["volumeName"] if found["status"]["phase"] == "Bound" else found["status"]["phase"]


async def phase(world: World, name: str) -> str:
    return (await world.get(PERSISTENT_VOLUMES, name))["status"]["phase"]


async def reasons(world: World) -> set[str]:
    return {each["reason"] for each in (await world.client.list(CORE_EVENTS, "default")).items}


async def test_a_claim_gets_the_smallest_volume_that_suffices(world: World):
    await start(world)
    for name, size in (("large", "10Gi"), ("small", "500Mi"), ("right", "2Gi")):
        await volume(world, name, size)
    await claim(world)
    assert await bound_to(world) == "right"
    assert (await phase(world, "right"), await phase(world, "large")) == ("Bound", "Available")
    found = await world.get(PERSISTENT_VOLUME_CLAIMS, "c")
    assert found["status"]["capacity"] == {"storage": "2Gi"}
    assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"


async def test_a_claim_waits_until_a_volume_comes(world: World):
    await start(world)
    await claim(world)
    assert await bound_to(world) == "Pending"
    assert "FailedBinding" in await reasons(world)
    await volume(world, "late")
    assert await bound_to(world) == "late"


async def test_mode_class_access_and_selector_must_fit(world: World):
    await start(world)
    await volume(world, "block", volumeMode="Block")
    await volume(world, "classy", storageClassName="gold")
    await volume(world, "shared", accessModes=["ReadOnlyMany"])
    await claim(world)
    await claim(world, "d", selector={"matchLabels": {"a": "b"}})
    assert (await bound_to(world), await bound_to(world, "d")) == ("Pending", "Pending")


async def test_claims_and_volumes_that_name_each_other_beforehand(world: World):
    await start(world)
    await volume(world, "kept", "5Gi", claimRef={"namespace": "default", "name": "c"})
    await volume(world, "named", "5Gi")
    await claim(world, "other", volumeName="named")
    assert await bound_to(world, "other") == "named"
    await claim(world, "c")
    assert await bound_to(world) == "kept"


async def test_of_two_claims_one_gets_the_volume(world: World):
    await start(world)
    await claim(world, "c")
    await claim(world, "d")
    await volume(world, "v")
    assert sorted([await bound_to(world, "c"), await bound_to(world, "d")]) == ["Pending", "v"]


async def test_a_volume_is_released_with_its_claim_and_kept(world: World):
    await start(world)
    await volume(world, "v")
    await claim(world)
    await world.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
    await world.settle()
    assert await phase(world, "v") == "Released"
    await claim(world, "d")
    assert await bound_to(world, "d") == "Pending"


async def test_the_default_class_makes_a_volume_and_takes_it_away(world: World):
    await world.client.create(STORAGE_CLASSES, default_storage_class())
    await start(world)
    await claim(world, size="3Gi")
    name = await bound_to(world)
    made = await world.get(PERSISTENT_VOLUMES, name)
    assert name == f"pvc-{(await world.get(PERSISTENT_VOLUME_CLAIMS, 'c'))['metadata']['uid']}"
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["storageClassName"] == "standard"
    assert "ProvisioningSucceeded" in await reasons(world)

    await world.client.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default")
    await world.settle()
    assert await world.get(PERSISTENT_VOLUMES, name) is None


async def test_a_claim_that_wants_no_class_gets_none(world: World):
    await world.client.create(STORAGE_CLASSES, default_storage_class())
    await start(world)
    await claim(world, storageClassName="")
    assert await bound_to(world) == "Pending"


async def test_a_class_that_waits_is_provisioned_when_a_node_is_chosen(world: World):
    body = {**default_storage_class(), "volumeBindingMode": "WaitForFirstConsumer"}
    await world.client.create(STORAGE_CLASSES, body)
    await start(world)
    await claim(world)
    assert await bound_to(world) == "Pending"
    assert "WaitForFirstConsumer" in await reasons(world)
    patch = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
    await world.client.patch(PERSISTENT_VOLUME_CLAIMS, "c", patch, "default")
    await world.settle()
    assert (await bound_to(world)).startswith("pvc-")


async def test_other_provisioners_are_asked(world: World):
    await world.create(STORAGE_CLASSES, "theirs", None, provisioner="example.com/disk")
    await start(world)
    await claim(world, storageClassName="theirs")
    found = await world.get(PERSISTENT_VOLUME_CLAIMS, "c")
    assert found["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "example.com/disk"
    assert "ExternalProvisioning" in await reasons(world)


async def test_a_claim_whose_volume_is_gone_is_lost(world: World):
    await start(world)
    await volume(world, "v")
    await claim(world)
    await world.client.delete(PERSISTENT_VOLUMES, "v")
    await world.settle()
    assert await bound_to(world) == "Lost"
    assert "ClaimLost" in await reasons(world)
