"""A namespace goes when all that was in it is gone."""

from __future__ import annotations

import pytest

from muster.api.errors import ApiError
from muster.api.groups import POD_GROUP_PROTECTION
from muster.api.resources import NAMESPACES, POD_GROUPS, PODS, SERVICE_ACCOUNTS, Resource
from tests.controllers.conftest import World

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)


async def test_a_namespace_takes_its_contents_with_it(world: World):
    await world.start()
    await world.namespace("team")
    await world.create(CONFIG_MAPS, "c", "team")
    await world.create(PODS, "p", "team", spec={"containers": [{"name": "c", "image": "i"}]})
    gang = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    await world.create(POD_GROUPS, "g", "team", spec=gang)

    await world.client.delete(NAMESPACES, "team")
    await world.advance(30)

    assert await world.get(NAMESPACES, "team") is None
    assert await world.get(CONFIG_MAPS, "c", "team") is None
    assert await world.get(POD_GROUPS, "g", "team") is None


async def test_a_namespace_says_what_holds_it(world: World):
    await world.start("namespace-controller")
    await world.namespace("team")
    await world.create(CONFIG_MAPS, "c", "team", metadata={"finalizers": ["a.b/c"]})

    await world.client.delete(NAMESPACES, "team")
    await world.advance(10)

    namespace = await world.get(NAMESPACES, "team")
    assert namespace["status"]["phase"] == "Terminating"
    said = {each["type"]: (each["status"], each["message"]) for each in namespace["status"]["conditions"]}
    remaining = "Some resources are remaining: configmaps. has 1 resource instances"
    assert said["NamespaceContentRemaining"] == ("True", remaining)
    held = "Some content in the namespace has finalizers remaining: a.b/c in 1 resource instances"
    assert said["NamespaceFinalizersRemaining"] == ("True", held)
    assert said["NamespaceDeletionContentFailure"][0] == "False"


async def test_pods_go_before_anything_else(world: World):
    await world.start("namespace-controller")
    await world.namespace("team")
    await world.create(CONFIG_MAPS, "c", "team")
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    await world.create(PODS, "p", "team", spec=spec)

    await world.client.delete(NAMESPACES, "team")
    await world.advance(10)
    assert "deletionTimestamp" not in (await world.get(CONFIG_MAPS, "c", "team"))["metadata"]

    await world.client.delete(PODS, "p", "team", grace_period_seconds=0)
    await world.advance(10)
    assert await world.get(NAMESPACES, "team") is None


async def test_nothing_new_comes_into_a_namespace_that_goes(world: World):
    await world.namespace("team")
    await world.client.delete(NAMESPACES, "team")

    with pytest.raises(ApiError) as refused:
        await world.create(CONFIG_MAPS, "late", "team")

    assert refused.value.code == 403
    assert refused.value.message == (
        'configmaps "late" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    assert refused.value.details["causes"][0]["reason"] == "NamespaceTerminating"


async def test_every_namespace_has_a_default_account(world: World):
    await world.start("serviceaccount-controller")
    await world.namespace("team")
    await world.settle()
    assert await world.get(SERVICE_ACCOUNTS, "default", "team") is not None

    await world.client.delete(SERVICE_ACCOUNTS, "default", "team")
    await world.settle()
    assert await world.get(SERVICE_ACCOUNTS, "default", "team") is not None


async def test_groups_created_by_anyone_are_protected(world: World):
    await world.create(POD_GROUPS, "g", spec={"schedulingPolicy": {"basic": {}}})

    assert (await world.get(POD_GROUPS, "g"))["metadata"]["finalizers"] == [POD_GROUP_PROTECTION]
