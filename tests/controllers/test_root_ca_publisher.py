"""The authority of the server is published in every namespace, and stays as it was published."""

from __future__ import annotations

from muster.api.resources import CONFIG_MAPS, NAMESPACES
from tests.controllers.conftest import World

NAME = "root-ca-cert-publisher"
ROOT = "kube-root-ca.crt"


async def publish(world: World, pem: str) -> None:
    meta = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    await world.client.create(CONFIG_MAPS, {"metadata": meta, "data": {"client-ca-file": pem}}, "kube-system")
    await world.settle()


async def data(world: World, namespace: str) -> object:
    return (await world.client.get(CONFIG_MAPS, ROOT, namespace))["data"]


async def test_every_namespace_has_the_authority(world: World):
    await world.start(NAME)
    await publish(world, "pem")
    await world.client.create(NAMESPACES, {"metadata": {"name": "new"}})
    await world.settle()

    assert await data(world, "default") == {"ca.crt": "pem"}
    assert await data(world, "new") == {"ca.crt": "pem"}


async def test_what_somebody_changes_or_deletes_comes_back(world: World):
    await world.start(NAME)
    await publish(world, "pem")

    await world.client.patch(CONFIG_MAPS, ROOT, {"data": {"ca.crt": "other"}}, "default")
    await world.settle()
    assert await data(world, "default") == {"ca.crt": "pem"}

    await world.client.delete(CONFIG_MAPS, ROOT, "default")
    await world.settle()
    assert await data(world, "default") == {"ca.crt": "pem"}
