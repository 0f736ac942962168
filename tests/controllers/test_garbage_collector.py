"""What belongs to something that is gone goes too."""

from __future__ import annotations

from typing import Any

from muster.api.resources import POD_GROUPS, PODS, Resource
from tests.controllers.conftest import World

NAME = "garbage-collector"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)


def owned_by(*owners: Any, blocking: bool = False) -> dict[str, Any]:
    return {
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                **({"blockOwnerDeletion": True} if blocking else {}),
            }
            for owner in owners
        ]
    }


async def delete(world: World, name: str, policy: str | None = None) -> None:
    await world.client.delete(CONFIG_MAPS, name, "default", propagation_policy=policy)
    await world.settle()


async def test_dependents_follow_their_owner_in_the_background(world: World):
    await world.start(NAME)
    owner = await world.create(CONFIG_MAPS, "owner")
    child = await world.create(CONFIG_MAPS, "child", metadata=owned_by(owner))
    await world.create(CONFIG_MAPS, "grandchild", metadata=owned_by(child))

    await delete(world, "owner", "Background")

    assert await world.get(CONFIG_MAPS, "child") is None
    assert await world.get(CONFIG_MAPS, "grandchild") is None


async def test_an_object_with_another_owner_stays_and_forgets_the_lost_one(world: World):
    await world.start(NAME)
    first = await world.create(CONFIG_MAPS, "first")
    second = await world.create(CONFIG_MAPS, "second")
    await world.create(CONFIG_MAPS, "child", metadata=owned_by(first, second))

    await delete(world, "first")

    owners = (await world.get(CONFIG_MAPS, "child"))["metadata"]["ownerReferences"]
    assert [each["name"] for each in owners] == ["second"]


async def test_orphans_stay_without_an_owner(world: World):
    await world.start(NAME)
    owner = await world.create(CONFIG_MAPS, "owner")
    await world.create(CONFIG_MAPS, "child", metadata=owned_by(owner))

    await delete(world, "owner", "Orphan")

    assert await world.get(CONFIG_MAPS, "owner") is None
    assert "ownerReferences" not in (await world.get(CONFIG_MAPS, "child"))["metadata"]


async def test_in_the_foreground_the_owner_waits_for_blocking_dependents(world: World):
    await world.start(NAME)
    owner = await world.create(CONFIG_MAPS, "owner")
    await world.create(CONFIG_MAPS, "child", metadata={**owned_by(owner, blocking=True), "finalizers": ["a.b/c"]})

    await delete(world, "owner", "Foreground")
    assert (await world.get(CONFIG_MAPS, "child"))["metadata"]["deletionTimestamp"]
    assert (await world.get(CONFIG_MAPS, "owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]

    await world.client.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": None}}, "default")
    await world.settle()
    assert await world.get(CONFIG_MAPS, "child") is None
    assert await world.get(CONFIG_MAPS, "owner") is None


async def test_in_the_foreground_other_dependents_do_not_hold_the_owner(world: World):
    await world.start(NAME)
    owner = await world.create(CONFIG_MAPS, "owner")
    await world.create(CONFIG_MAPS, "child", metadata={**owned_by(owner), "finalizers": ["a.b/c"]})

    await delete(world, "owner", "Foreground")

    assert await world.get(CONFIG_MAPS, "owner") is None
    assert (await world.get(CONFIG_MAPS, "child"))["metadata"]["deletionTimestamp"]


async def test_an_object_whose_owner_never_existed_is_collected(world: World):
    await world.start(NAME)
    ghost = {"metadata": {"name": "ghost", "uid": "no-such-uid"}}

    await world.create(CONFIG_MAPS, "child", metadata=owned_by(ghost))
    await world.settle()

    assert await world.get(CONFIG_MAPS, "child") is None


async def test_a_new_object_of_the_same_name_is_not_the_owner(world: World):
    await world.start(NAME)
    owner = await world.create(CONFIG_MAPS, "owner")
    await delete(world, "owner")
    await world.create(CONFIG_MAPS, "owner")

    await world.create(CONFIG_MAPS, "child", metadata=owned_by(owner))
    await world.settle()

    assert await world.get(CONFIG_MAPS, "child") is None


async def test_an_owner_of_a_kind_nobody_serves_is_left_alone(world: World):
    await world.start(NAME)
    reference = {"apiVersion": "example.com/v1", "kind": "Robot", "name": "r", "uid": "u"}

    await world.create(CONFIG_MAPS, "child", metadata={"ownerReferences": [reference]})
    await world.settle()

    assert await world.get(CONFIG_MAPS, "child") is not None


async def test_what_lost_its_owner_while_nobody_watched_goes_after_a_restart(world: World):
    owner = await world.create(CONFIG_MAPS, "owner")
    await world.create(CONFIG_MAPS, "child", metadata=owned_by(owner))
    await world.client.delete(CONFIG_MAPS, "owner", "default")

    await world.start(NAME)

    assert await world.get(CONFIG_MAPS, "child") is None


async def test_a_running_pod_is_asked_to_go_gracefully(world: World):
    await world.start(NAME)
    owner = await world.create(CONFIG_MAPS, "owner")
    await world.pod("p", node="n", metadata=owned_by(owner))
    await world.phase("p", "Running")

    await delete(world, "owner")

    pod = await world.get(PODS, "p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_members_that_only_a_group_owns_go_when_the_group_is_deleted(world: World):
    await world.start("garbage-collector", "podgroup-protection-controller")
    owners = await group_with_members(world)

    await world.client.delete(POD_GROUPS, "g", "default")
    await world.settle()

    # What something else owns as well keeps running, and its group stays with it.
    assert [pod["metadata"]["name"] for pod in await world.pods()] == ["free", "shared"]
    assert (await world.get(PODS, "shared"))["metadata"]["ownerReferences"] == owners
    assert await world.get(POD_GROUPS, "g") is not None

    for name in ("shared", "free"):
        await world.phase(name, "Succeeded")
    assert await world.get(POD_GROUPS, "g") is None


async def test_members_of_a_group_that_is_orphaned_stay(world: World):
    await world.start("garbage-collector", "podgroup-protection-controller")
    await group_with_members(world)

    await world.client.delete(POD_GROUPS, "g", "default", propagation_policy="Orphan")
    await world.settle()

    assert [pod["metadata"]["name"] for pod in await world.pods()] == ["free", "mine", "shared"]


async def group_with_members(world: World) -> list[dict[str, Any]]:
    """A group with a member of its own, one that a ConfigMap owns too, and one without owners."""
    group = await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": {"basic": {}}})
    keeper = await world.create(CONFIG_MAPS, "keeper")
    mine = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "g", "uid": group["metadata"]["uid"]}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": keeper["metadata"]["uid"]}
    for name, owners in (("mine", [mine]), ("shared", [mine, other]), ("free", [])):
        await world.pod(name, metadata={"ownerReferences": owners}, schedulingGroup={"podGroupName": "g"})
    await world.settle()
    return [mine, other]


async def test_a_circle_of_owners_deleted_in_the_foreground_goes(world: World):
    await world.start(NAME)
    names = ("a", "b", "c")
    made = {name: await world.create(CONFIG_MAPS, name) for name in names}
    for name, owner in zip(names, ("c", "a", "b"), strict=True):
        await world.client.patch(CONFIG_MAPS, name, {"metadata": owned_by(made[owner], blocking=True)}, "default")
    await world.settle()

    await delete(world, "a", "Foreground")

    assert [await world.get(CONFIG_MAPS, name) for name in names] == [None, None, None]


async def test_two_objects_that_own_each_other_go(world: World):
    await world.start(NAME)
    made = {name: await world.create(CONFIG_MAPS, name) for name in ("a", "b")}
    for name, owner in (("a", "b"), ("b", "a")):
        await world.client.patch(CONFIG_MAPS, name, {"metadata": owned_by(made[owner], blocking=True)}, "default")
    await world.settle()

    await delete(world, "a", "Foreground")

    assert await world.get(CONFIG_MAPS, "a") is None
    assert await world.get(CONFIG_MAPS, "b") is None
