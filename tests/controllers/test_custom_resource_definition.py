"""Controllers learn of kinds while they run: owners, namespaces, and the end of a definition with all its objects."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Resource
from tests.controllers.conftest import World
from tests.server.custom_resources.custom_api import a_definition, a_widget

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", True)


async def define(world: World, **more: Any) -> dict[str, Any]:
    made = await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, a_definition(**more))
    await world.settle()
    return made


async def is_gone(world: World, resource: Resource, name: str, namespace: str | None = None) -> bool:
    try:
        await world.client.get(resource, name, namespace)
    except ApiError as error:
        return error.code == 404
    return False


async def test_an_object_goes_with_its_owner_of_a_kind_that_is_new(world: World) -> None:
    await world.start()
    await define(world)
    owner = await world.client.create(WIDGETS, a_widget(), "default")
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": owner["metadata"]["uid"]}
    await world.client.create(CONFIG_MAPS, {"metadata": {"name": "c", "ownerReferences": [reference]}}, "default")
    await world.settle()

    await world.client.delete(WIDGETS, "w", "default")
    await world.settle()

    assert await is_gone(world, CONFIG_MAPS, "c", "default")


async def test_a_custom_object_goes_with_its_built_in_owner(world: World) -> None:
    await world.start()
    await define(world)
    owner = await world.client.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": owner["metadata"]["uid"]}
    widget = a_widget()
    widget["metadata"]["ownerReferences"] = [reference]
    await world.client.create(WIDGETS, widget, "default")
    await world.settle()

    await world.client.delete(CONFIG_MAPS, "c", "default")
    await world.settle()

    assert await is_gone(world, WIDGETS, "w", "default")


async def test_a_namespace_takes_custom_objects_with_it(world: World) -> None:
    await world.start()
    await define(world)
    await world.client.create(NAMESPACES, {"metadata": {"name": "n"}})
    await world.client.create(WIDGETS, a_widget(), "n")
    await world.settle()

    await world.client.delete(NAMESPACES, "n")
    await world.advance(60)

    assert await is_gone(world, NAMESPACES, "n")
    assert (await world.client.list(WIDGETS)).items == []


async def test_a_definition_takes_all_its_objects_with_it(world: World) -> None:
    await world.start()
    await define(world)
    for name in ("a", "b"):
        await world.client.create(WIDGETS, a_widget(name), "default")
    await world.settle()

    await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
    await world.advance(60)

    assert await is_gone(world, CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
    with pytest.raises(ApiError) as caught:
        await world.client.list(WIDGETS)
    assert caught.value.code == 404
    await define(world)
    assert (await world.client.list(WIDGETS)).items == []


async def test_a_definition_waits_for_objects_with_finalizers_and_says_so(world: World) -> None:
    await world.start()
    await define(world)
    widget = a_widget()
    widget["metadata"]["finalizers"] = ["example.com/busy"]
    await world.client.create(WIDGETS, widget, "default")
    await world.settle()

    await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
    await world.advance(5)
    waiting = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
    assert [each["reason"] for each in waiting["status"]["conditions"] if each["type"] == "Terminating"] == [
        "InstanceDeletionInProgress"
    ]

    await world.client.patch(WIDGETS, "w", {"metadata": {"finalizers": None}}, "default")
    await world.advance(60)
    assert await is_gone(world, CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")


async def test_a_name_that_becomes_free_is_given_to_who_waits_for_it(world: World) -> None:
    await world.start()
    await define(world, names={"shortNames": ["w"]})
    await define(world, plural="wodgets", kind="Wodget", names={"shortNames": ["w"]})

    await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
    await world.advance(60)

    second = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "wodgets.example.com")
    assert {each["type"]: each["status"] for each in second["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
