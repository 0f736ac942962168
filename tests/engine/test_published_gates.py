"""The gates of a running scheduler are found by those who ask about its cluster."""

from __future__ import annotations

import asyncio

from muster.api import gates
from muster.api.resources import LEASES
from muster.client.local import LocalClient
from muster.engine.cluster_snapshot import take_snapshot
from muster.engine.engine import Engine
from muster.engine.leader_election import Election
from muster.engine.published_gates import ANNOTATION, publish, published_gates
from muster.engine.settings import Settings
from muster.plane.options import Options
from muster.plane.plane import Plane
from muster.scheduler.runtime.config import default_config

NO_TREES = gates.parse("CompositePodGroup=false")[0]


def a_server() -> Plane:
    return Plane(Options(https=False, scheduler=False, controllers=False, freeze=False))


async def annotation(client: LocalClient) -> str:
    return (await client.get(LEASES, "muster", "kube-system"))["metadata"]["annotations"][ANNOTATION]


async def test_nobody_says_anything_where_all_gates_are_at_their_default():
    async with a_server() as plane:
        await publish(plane.client, gates.DEFAULT)
        assert (await plane.client.list(LEASES, "kube-system")).items == []
        assert await published_gates(plane.client) == gates.DEFAULT


async def test_what_is_published_is_found_and_what_is_switched_back_too():
    async with a_server() as plane:
        await publish(plane.client, NO_TREES)
        assert await published_gates(plane.client) == NO_TREES
        assert (await take_snapshot(plane.client)).gates == {"CompositePodGroup": False}
        await publish(plane.client, gates.DEFAULT)
        assert await published_gates(plane.client) == gates.DEFAULT


async def test_a_leader_says_which_gates_it_has():
    async with a_server() as plane:
        settings = Settings(gates=NO_TREES, election=Election("me"))
        engine = Engine(plane.client, default_config("muster"), settings)
        running = asyncio.create_task(engine.run())
        await asyncio.wait_for(engine.ready.wait(), 20)
        assert await annotation(plane.client) == "CompositePodGroup=false"
        engine.stop()
        await running
        assert await published_gates(plane.client) == NO_TREES


async def test_the_lease_that_is_held_counts_and_names_of_the_future_do_not():
    async with a_server() as plane:
        for namespace, holder, text in (
            ("kube-system", "", "GangScheduling=false"),
            ("muster-system", "me", "CompositePodGroup=false,OfTheFuture=true"),
        ):
            if namespace == "muster-system":
                await plane.client.request("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})
            meta = {"name": "muster", "namespace": namespace, "annotations": {ANNOTATION: text}}
            spec = {"holderIdentity": holder} if holder else {}
            await plane.client.create(LEASES, {"metadata": meta, "spec": spec})
        assert await published_gates(plane.client) == NO_TREES
