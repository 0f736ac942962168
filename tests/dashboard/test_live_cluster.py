"""A live cluster: pages follow it, and however many are open it is watched once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from muster.api.gates import parse
from muster.api.resources import POD_GROUPS, PODS
from muster.dashboard import live_cluster
from muster.dashboard.live_cluster import LiveCluster
from muster.dashboard.server import DashboardServer, Listen
from muster.engine.published_gates import publish
from muster.testing.cluster import api_server
from tests.dashboard.pages import get


class CountingClient:
    """Passes everything on, and counts the watches that were opened."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.watches = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def watch(self, *arguments: Any, **options: Any) -> Any:
        self.watches += 1
        return self._client.watch(*arguments, **options)


async def next_change(stream: aiohttp.ClientResponse, wanted: str) -> dict[str, Any]:
    """The first message of a stream that has something of a part."""
    async with asyncio.timeout(30):
        async for line in stream.content:
            if line.startswith(b"data: "):
                message = json.loads(line[6:])
                if message.get(wanted):
                    return message
    raise AssertionError("the stream ended")


def group(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    return {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}


def pod(name: str, of: str) -> dict[str, Any]:
    spec = {"schedulingGroup": {"podGroupName": of}, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_gang_that_is_bound_reaches_every_page_and_the_watches_are_opened_once():
    async with api_server(controllers=True, scheduler=True, nodes=2) as plane:
        client = CountingClient(plane.client)
        cluster = LiveCluster(client, "test")
        async with DashboardServer(cluster, Listen()) as server:
            jar = aiohttp.CookieJar(unsafe=True)
            async with aiohttp.ClientSession(server.address, cookie_jar=jar) as browser:
                async with browser.get(server.link()):
                    pass
                assert client.watches == 0  # nobody has looked yet
                board = await get(browser, "/api/board")
                assert len(board["nodes"]) == 2
                opened = client.watches
                streams = [await browser.get(f"/api/changes?since={board['version']}") for _ in range(10)]
                await plane.client.create(POD_GROUPS, group("g"), "default")
                await plane.client.create(PODS, pod("p", "g"), "default")
                changes = await asyncio.gather(*(next_change(stream, "nodes") for stream in streams))
                assert {len(change["nodes"]) for change in changes} == {1}
                for stream in streams:
                    stream.close()
                found = await get(browser, "/api/group/PodGroup/default/g")
                assert found["members"][0]["node"]
                health = await get(browser, "/api/health")
                assert {watch["kind"] for watch in health["watches"]} >= {"Pod", "Node", "PodGroup"}
        assert client.watches == opened


async def test_what_goes_wrong_is_said_and_tried_again(monkeypatch):
    async with api_server(nodes=1) as plane:
        cluster = LiveCluster(plane.client, "test")
        monkeypatch.setattr("muster.dashboard.live_cluster.RETRY_SECONDS", 0.01)
        run, calls = cluster._run, 0

        async def failing() -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise RuntimeError("no luck")
            await run()

        monkeypatch.setattr(cluster, "_run", failing)
        try:
            board = (await cluster.at("")).board
            assert len(board.nodes.rows) == 1
            assert calls == 2
        finally:
            await cluster.close()


async def test_the_board_has_the_gates_of_the_scheduler_and_follows_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(live_cluster, "LEASE_SECONDS", 0.05)
    monkeypatch.setattr(live_cluster, "RETRY_SECONDS", 0.05)
    child = group("g")
    child["spec"] |= {"workloadRef": {"workloadName": "w", "templateName": "t"}, "parentCompositePodGroupName": "no"}
    async with api_server(controllers=False, scheduler=False) as plane:
        await plane.client.create(POD_GROUPS, child, "default")
        await plane.client.create(PODS, pod("p", "g"), "default")
        cluster = LiveCluster(plane.client, "test")
        board = (await cluster.at("")).board
        assert [row.reason for row in board.queue] == ["WaitingForParent"]
        await publish(plane.client, parse("CompositePodGroup=false")[0])
        async with asyncio.timeout(20):
            while [row.name for row in board.queue] != ["g"]:
                await cluster.changed(board.version)
        assert (await cluster.details())["gates"] == {"CompositePodGroup": False}
        assert (await cluster.details())["leaders"] == []
        await cluster.close()
