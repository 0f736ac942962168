"""Claims are made from templates, for pods and for groups, and give their devices back when nobody uses them."""

from __future__ import annotations

from typing import Any

from muster.api.devices import CLAIM_FINALIZER, POD_CLAIM_NAME
from muster.api.resources import EVENTS, POD_GROUPS, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.controllers.conftest import World

NAME = "resource-claim-controller"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ENTRY = {"name": "gpu", "resourceClaimTemplateName": "t"}
ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}


async def a_template(world: World) -> Any:
    made = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    return await world.create(RESOURCE_CLAIM_TEMPLATES, "t", spec={"metadata": made, "spec": SPEC})


async def claims(world: World) -> list[Any]:
    await world.settle()
    return (await world.client.list(RESOURCE_CLAIMS, "default")).items


async def claim_names(world: World, pod: str) -> dict[str, str]:
    await world.settle()
    found = await world.get(PODS, pod)
    return {each["name"]: each["resourceClaimName"] for each in found["status"].get("resourceClaimStatuses", ())}


async def allocate(world: World, claim: Any, *consumers: dict[str, str]) -> None:
    """Do what a scheduler does."""
    claim["metadata"]["finalizers"] = [CLAIM_FINALIZER]
    claim = await world.client.update(RESOURCE_CLAIMS, claim)
    claim["status"] = {"allocation": ALLOCATION, "reservedFor": list(consumers)}
    await world.client.update(RESOURCE_CLAIMS, claim, subresource="status")
    await world.settle()


def pod_consumer(pod: Any) -> dict[str, str]:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


async def test_a_pod_gets_a_claim_of_its_own_from_its_template(world: World):
    await world.start(NAME)
    await a_template(world)
    pod = await world.pod("p", resourceClaims=[ENTRY])

    (claim,) = await claims(world)
    meta = claim["metadata"]
    assert meta["name"].startswith("p-gpu-")
    assert meta["labels"] == {"team": "a"}
    assert meta["annotations"] == {"note": "b", POD_CLAIM_NAME: "gpu"}
    assert [(each["kind"], each["uid"], each["controller"]) for each in meta["ownerReferences"]] == [
        ("Pod", pod["metadata"]["uid"], True)
    ]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    assert await claim_names(world, "p") == {"gpu": meta["name"]}


async def test_a_missing_template_is_said_and_waited_for(world: World):
    await world.start(NAME)
    await world.pod("p", resourceClaims=[ENTRY])
    assert await claims(world) == []
    (event,) = (await world.client.list(EVENTS, "default")).items
    assert event["reason"] == "FailedResourceClaimCreation"
    assert event["note"] == 'PodResourceClaim gpu: resourceclaimtemplate "t" not found'

    await a_template(world)
    assert len(await claims(world)) == 1


async def test_a_claim_that_was_deleted_is_made_again(world: World):
    await world.start(NAME)
    await a_template(world)
    await world.pod("p", resourceClaims=[ENTRY])
    first = (await claim_names(world, "p"))["gpu"]
    await world.client.delete(RESOURCE_CLAIMS, first, "default")
    second = (await claim_names(world, "p"))["gpu"]
    assert second != first
    assert [each["metadata"]["name"] for each in await claims(world)] == [second]


async def test_a_group_has_one_claim_for_all_its_members(world: World):
    await world.start(NAME)
    await a_template(world)
    gang = {"gang": {"minCount": 2}}
    group = await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": gang, "resourceClaims": [ENTRY]})
    own = {"name": "own", "resourceClaimTemplateName": "t"}
    for name in ("a", "b"):
        await world.pod(name, resourceClaims=[ENTRY, own], schedulingGroup={"podGroupName": "g"})

    found = await claims(world)
    (shared,) = [each for each in found if each["metadata"]["ownerReferences"][0]["kind"] == "PodGroup"]
    assert shared["metadata"]["ownerReferences"][0]["uid"] == group["metadata"]["uid"]
    assert len(found) == 3
    names = [await claim_names(world, pod) for pod in ("a", "b")]
    assert [each["gpu"] for each in names] == [shared["metadata"]["name"]] * 2
    assert len({each["own"] for each in names}) == 2


async def test_members_whose_group_is_missing_get_no_claims_before_it_exists(world: World):
    await world.start(NAME)
    await a_template(world)
    await world.pod("a", resourceClaims=[ENTRY], schedulingGroup={"podGroupName": "g"})
    assert await claims(world) == []
    await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": {"gang": {"minCount": 1}}})
    assert len(await claims(world)) == 1


async def test_the_last_consumer_that_goes_frees_the_devices(world: World):
    await world.start(NAME)
    claim = await world.create(RESOURCE_CLAIMS, "c", spec=SPEC)
    entry = {"name": "gpu", "resourceClaimName": "c"}
    pods = [await world.pod(name, node="n", resourceClaims=[entry]) for name in ("a", "b")]
    await allocate(world, claim, *map(pod_consumer, pods))

    await world.phase("a", "Succeeded")
    await world.settle()
    held = await world.get(RESOURCE_CLAIMS, "c")
    assert [each["name"] for each in held["status"]["reservedFor"]] == ["b"]
    assert held["status"]["allocation"] == ALLOCATION

    await world.client.delete(PODS, "b", "default", grace_period_seconds=0)
    await world.settle()
    free = await world.get(RESOURCE_CLAIMS, "c")
    assert not free.get("status")
    assert "finalizers" not in free["metadata"]


async def test_a_pod_that_still_terminates_keeps_its_devices(world: World):
    await world.start(NAME)
    claim = await world.create(RESOURCE_CLAIMS, "c", spec=SPEC)
    pod = await world.pod("a", node="n", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    await world.phase("a", "Running")
    await allocate(world, claim, pod_consumer(pod))
    await world.client.delete(PODS, "a", "default")
    await world.settle()
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"]["allocation"]


async def test_a_claim_of_a_group_is_kept_until_the_group_is_gone(world: World):
    await world.start(NAME, "podgroup-protection-controller")
    claim = await world.create(RESOURCE_CLAIMS, "c", spec=SPEC)
    entry = {"name": "gpu", "resourceClaimName": "c"}
    gang = {"gang": {"minCount": 1}}
    group = await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": gang, "resourceClaims": [entry]})
    await world.pod("a", node="n", resourceClaims=[entry], schedulingGroup={"podGroupName": "g"})
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": group["metadata"]["uid"]}
    await allocate(world, claim, consumer)

    await world.client.delete(PODS, "a", "default", grace_period_seconds=0)
    await world.settle()
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"]["allocation"]
    await world.client.delete(POD_GROUPS, "g", "default")
    await world.settle()
    assert not (await world.get(RESOURCE_CLAIMS, "c")).get("status")


async def test_a_generated_claim_goes_with_its_pod_although_the_pod_object_stays(world: World):
    await world.start(NAME)
    await a_template(world)
    pod = await world.pod("p", node="n", resourceClaims=[ENTRY])
    (claim,) = await claims(world)
    await allocate(world, claim, pod_consumer(pod))
    await world.phase("p", "Succeeded")
    assert await claims(world) == []


async def test_an_allocated_claim_is_reserved_for_a_pod_that_was_bound_by_hand(world: World):
    await world.start(NAME)
    claim = await world.create(RESOURCE_CLAIMS, "c", spec=SPEC)
    await allocate(world, claim)
    pod = await world.pod("a", node="n", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    await world.settle()
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"]["reservedFor"] == [pod_consumer(pod)]


async def test_consumers_of_kinds_that_are_not_known_are_kept(world: World):
    await world.start(NAME)
    claim = await world.create(RESOURCE_CLAIMS, "c", spec=SPEC)
    other = {"apiGroup": "example.com", "resource": "robots", "name": "r", "uid": "u"}
    await allocate(world, claim, other)
    assert (await world.get(RESOURCE_CLAIMS, "c"))["status"]["reservedFor"] == [other]
