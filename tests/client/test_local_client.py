"""The in-process client: the same answers as over the wire, without one."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from muster.api.errors import ApiError
from muster.api.resources import NAMESPACES, NODES, POD_GROUPS, PODS
from muster.client.local import LocalClient
from muster.client.protocol import Client
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore
from muster.testing import a_pod


class Meta(msgspec.Struct):
    name: str


class Named(msgspec.Struct):
    metadata: Meta


@pytest.fixture
async def client() -> LocalClient:
    server = ApiServer(MemoryStore(), build_registry())
    await server.bootstrap()
    return LocalClient(server)


async def test_it_is_a_client(client: LocalClient) -> None:
    checked: Client = client
    assert checked is client


async def test_create_fills_in_kind_and_version(client: LocalClient) -> None:
    made = await client.create(PODS, {"metadata": {"name": "p"}, "spec": a_pod("p")["spec"]}, "default")
    assert (made["kind"], made["apiVersion"]) == ("Pod", "v1")
    assert await client.get(PODS, "p", "default") == made


async def test_failures_are_api_errors(client: LocalClient) -> None:
    with pytest.raises(ApiError) as missing:
        await client.get(PODS, "nope", "default")
    with pytest.raises(ApiError) as wrong:
        await client.create(PODS, {"metadata": {"name": "p"}, "spec": {}}, "default")
    assert (missing.value.code, missing.value.reason) == (404, "NotFound")
    assert wrong.value.code == 422
    assert wrong.value.details["causes"][0]["field"] == "spec.containers"


async def test_lists_are_paged_selected_and_decoded_into_a_type(client: LocalClient) -> None:
    for name in ("a", "b", "c"):
        await client.create(PODS, a_pod(name, labels={"n": name}), "default")
    page = await client.list(PODS, limit=2, into=Named)
    rest = await client.list(PODS, limit=2, continue_token=page.continue_token)
    chosen = await client.list(PODS, "default", label_selector="n=b", field_selector="spec.nodeName=")

    assert [item.metadata.name for item in page.items] == ["a", "b"]
    assert [item["metadata"]["name"] for item in rest.items] == ["c"]
    assert [item["metadata"]["name"] for item in chosen.items] == ["b"]
    assert page.resource_version == rest.resource_version


async def test_a_watch_gives_typed_events_and_bookmarks_until_it_ends(client: LocalClient) -> None:
    await client.create(PODS, a_pod("a"), "default")
    start = (await client.list(PODS)).resource_version
    events: list[Any] = []

    async def take() -> None:
        watch = client.watch(PODS, resource_version=start, timeout_seconds=1, into=Named)
        events.extend([event async for event in watch])

    taking = asyncio.ensure_future(take())
    await asyncio.sleep(0)
    made = await client.create(PODS, a_pod("b"), "default")
    await client.delete(PODS, "a", "default")
    await taking

    assert [event.type for event in events] == ["ADDED", "DELETED", "BOOKMARK"]
    assert events[0].object.metadata.name == "b"
    assert events[0].resource_version == made["metadata"]["resourceVersion"]
    assert events[2].object is None


async def test_a_watch_from_too_long_ago_raises_410(client: LocalClient) -> None:
    await client.create(PODS, a_pod("a"), "default")
    server: Any = client._core
    server.store.table("pods").floor = server.store.revision
    with pytest.raises(ApiError) as gone:
        async for _ in client.watch(PODS, resource_version="1"):
            pass
    assert gone.value.code == 410


async def test_update_patch_bind_and_delete(client: LocalClient) -> None:
    made = await client.create(PODS, a_pod("p"), "default")
    await client.create(NODES, {"metadata": {"name": "n"}})
    uid = made["metadata"]["uid"]
    await client.bind("default", "p", uid, "n")
    with pytest.raises(ApiError) as again:
        await client.bind("default", "p", uid, "n")
    patched = await client.patch(PODS, "p", {"status": {"phase": "Running"}}, "default", subresource="status")
    patched["metadata"]["labels"] = {"new": "1"}
    updated = await client.update(PODS, patched)
    with pytest.raises(ApiError) as stale:
        await client.update(PODS, patched)
    with pytest.raises(ApiError) as other:
        await client.delete(PODS, "p", "default", uid="other")
    going = await client.delete(PODS, "p", "default", grace_period_seconds=7)

    assert again.value.code == 409
    assert updated["metadata"]["labels"] == {"new": "1"}
    assert (stale.value.code, other.value.code) == (409, 409)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_apply_and_dry_run(client: LocalClient) -> None:
    config = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    dry = await client.create(POD_GROUPS, config, "default", dry_run=True)
    applied = await client.patch(POD_GROUPS, "g", config, "default", type="apply", field_manager="me", force=True)
    assert "resourceVersion" not in dry["metadata"]
    assert applied["metadata"]["managedFields"][0]["manager"] == "me"


async def test_any_other_request(client: LocalClient) -> None:
    assert (await client.request("GET", "/version"))["major"] == "1"
    assert await client.text("/readyz") == "ok"
    with pytest.raises(ApiError):
        await client.request("GET", "/nothing/here")


async def test_a_shut_fence_stops_writes_and_lets_reads_through(client: LocalClient) -> None:
    class Forbidden(Exception):
        pass

    def shut() -> None:
        raise Forbidden

    fenced = client.fenced(shut)
    with pytest.raises(Forbidden):
        await fenced.create(NAMESPACES, {"metadata": {"name": "late"}})
    assert "late" not in [obj["metadata"]["name"] for obj in (await fenced.list(NAMESPACES)).items]
    await client.create(NAMESPACES, {"metadata": {"name": "late"}})
