"""Requests to the groups of other API servers, passed on over real TLS."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from extension_server import ExtensionServer, an_api_service

from muster.api.errors import ApiError
from muster.api.resources import ENDPOINT_SLICES, SERVICES, Resource
from muster.client.http import HTTPClient
from muster.plane.api import Api
from muster.plane.credentials import Credentials
from muster.server.aggregation.availability import API_SERVICES, Availability
from muster.server.request import Request, Response, User, WatchStream

Obj = dict[str, Any]
FLUNDERS = "/apis/wardle.example.com/v1/namespaces/default/flunders"
ALICE = User("alice", ("dev", "system:authenticated"), "u-1", {"Example.com/Scopes": ("a", "b")})


class World:
    """An API server, and another one behind the Service default/wardle."""

    def __init__(self, api: Api, other: ExtensionServer) -> None:
        self.api = api
        self.other = other
        self.availability: Availability = api.aggregation.availability(api.client, lambda: 0.0)

    async def register(self, **spec: Any) -> Obj:
        """Create the APIService and let it be checked; gives its condition."""
        await self.api.client.create(API_SERVICES, an_api_service(**spec))
        return await self.checked()

    async def checked(self) -> Obj:
        listed = (await self.api.client.list(API_SERVICES)).items
        self.availability._replaced(listed)
        await self.availability.check()
        stored = await self.api.client.get(API_SERVICES, "v1.wardle.example.com")
        (condition,) = stored["status"]["conditions"]
        return condition

    async def ask(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes = b"", **query: str
    ) -> Response | WatchStream:
        given = {name: (value,) for name, value in query.items()}
        return await self.api.core.handle(Request(method, path, given, headers or {}, body, ALICE))

    async def page(self, path: str, **headers: str) -> Obj:
        answer = await self.ask(path, headers=headers)
        assert isinstance(answer, Response)
        return json.loads(answer.body)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    endpoints: dict[str, str] = {}
    api = await Api.open(webhook_endpoints=endpoints)
    async with ExtensionServer(api.credentials.front_proxy.pem) as other:
        api.aggregation._proxy._endpoints.given["default/wardle"] = f"127.0.0.1:{other.port}"
        yield World(api, other)
        await api.close()


async def test_a_server_that_answers_is_available_and_its_resources_are_discovered(world: World) -> None:
    condition = await world.register()
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Passed", "all checks passed")
    groups = await world.page("/apis")
    (group,) = [each for each in groups["groups"] if each["name"] == "wardle.example.com"]
    assert group["preferredVersion"]["groupVersion"] == "wardle.example.com/v1"
    assert (await world.page("/apis/wardle.example.com"))["kind"] == "APIGroup"
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    aggregated = await world.page("/apis", accept=accept)
    (found,) = [each for each in aggregated["items"] if each["metadata"]["name"] == "wardle.example.com"]
    (version,) = found["versions"]
    assert version["freshness"] == "Current"
    (flunders,) = version["resources"]
    assert (flunders["resource"], flunders["scope"], flunders["shortNames"]) == ("flunders", "Namespaced", ["fl"])
    assert [each["subresource"] for each in flunders["subresources"]] == ["status"]
    assert "apis/wardle.example.com/v1" in (await world.page("/openapi/v3"))["paths"]


async def test_a_request_is_passed_on_with_the_callers_name_and_without_credentials(world: World) -> None:
    await world.register()
    headers = {
        "Authorization": "Bearer secret",
        "Cookie": "a=b",
        "Content-Type": "application/json",
        "X-Remote-User": "system:admin",
        "X-Remote-Group": "system:masters",
        "Impersonate-User": "bob",
        "X-Custom": "kept",
    }
    answer = await world.ask(FLUNDERS, "POST", headers, b'{"a": 1}', dryRun="All", fieldManager="a b")
    assert isinstance(answer, Response)
    assert (answer.status, json.loads(answer.body)["kind"]) == (200, "FlunderList")
    assert world.other.peers == ["front-proxy-client"]
    assert world.other.requests == [("POST", f"{FLUNDERS}?dryRun=All&fieldManager=a+b", b'{"a": 1}')]
    (sent,) = world.other.headers
    assert sent.getall("X-Remote-User") == ["alice"]
    assert sent.getall("X-Remote-Group") == ["dev", "system:authenticated"]
    assert sent.getall("X-Remote-Uid") == ["u-1"]
    assert sent.getall("X-Remote-Extra-Example.com%2fscopes") == ["a", "b"]
    assert (sent["X-Custom"], sent["Content-Type"]) == ("kept", "application/json")
    assert not {"Authorization", "Cookie", "Impersonate-User"} & set(sent)


async def test_a_server_that_is_not_available_gets_no_requests(world: World) -> None:
    world.other.healthy = False
    condition = await world.register()
    assert (condition["status"], condition["reason"]) == ("False", "FailedDiscoveryCheck")
    assert "bad status: 500" in condition["message"]
    answer = await world.ask(FLUNDERS)
    assert isinstance(answer, Response)
    status = json.loads(answer.body)
    assert (answer.status, status["reason"]) == (503, "ServiceUnavailable")
    assert "APIService v1.wardle.example.com is not available: failing" in status["message"]
    assert world.other.requests == []


async def test_resources_of_a_server_that_stopped_answering_are_shown_as_stale(world: World) -> None:
    await world.register()
    world.other.healthy = False
    await world.checked()
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    aggregated = await world.page("/apis", accept=accept)
    (found,) = [each for each in aggregated["items"] if each["metadata"]["name"] == "wardle.example.com"]
    (version,) = found["versions"]
    assert (version["freshness"], len(version["resources"])) == ("Stale", 1)
    assert "apis/wardle.example.com/v1" not in (await world.page("/openapi/v3"))["paths"]


async def test_a_group_that_is_taken_back_is_gone(world: World) -> None:
    await world.register()
    await world.api.client.delete(API_SERVICES, "v1.wardle.example.com")
    answer = await world.ask(FLUNDERS)
    assert isinstance(answer, Response)
    assert answer.status == 404
    assert all(each["name"] != "wardle.example.com" for each in (await world.page("/apis"))["groups"])


async def test_a_certificate_of_another_authority_is_not_trusted(world: World) -> None:
    condition = await world.register(caBundle=None)
    assert (condition["status"], condition["reason"]) == ("False", "FailedDiscoveryCheck")
    assert "certificate" in condition["message"].lower()


async def test_no_certificate_is_checked_where_the_api_service_says_so(world: World) -> None:
    condition = await world.register(caBundle=None, insecureSkipTLSVerify=True)
    assert condition["status"] == "True"


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        (None, "ServiceNotFound"),
        ([{"port": 8443}], "ServicePortError"),
        ([{"port": 443}], "MissingEndpoints"),
    ],
)
async def test_the_condition_says_what_is_missing_of_the_service(
    world: World, service: list[Obj] | None, reason: str
) -> None:
    if service is not None:
        await world.api.client.create(SERVICES, {"metadata": {"name": "far"}, "spec": {"ports": service}}, "default")
    condition = await world.register(service={"namespace": "default", "name": "far"})
    assert (condition["status"], condition["reason"]) == ("False", reason)


async def test_a_service_with_endpoints_of_its_own_is_reached_there(world: World) -> None:
    proxy = world.api.aggregation._proxy
    del proxy._endpoints.given["default/wardle"]
    client = world.api.client
    await client.create(SERVICES, {"metadata": {"name": "wardle"}, "spec": {"ports": [{"port": 443}]}}, "default")
    slice_ = {
        "metadata": {"name": "wardle-1", "labels": {"kubernetes.io/service-name": "wardle"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": world.other.port}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    }
    await client.create(ENDPOINT_SLICES, slice_, "default")
    assert (await world.register())["status"] == "True"


async def test_a_group_and_version_that_is_built_in_is_not_passed_on(world: World) -> None:
    service = {"service": {"namespace": "default", "name": "wardle"}, "insecureSkipTLSVerify": True}
    await world.api.client.patch(API_SERVICES, "v1.apps", {"spec": service})
    await world.register()
    stored = await world.api.client.get(API_SERVICES, "v1.apps")
    (condition,) = stored["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NotServed")
    answer = await world.ask("/apis/apps/v1/deployments")
    assert isinstance(answer, Response)
    assert json.loads(answer.body)["kind"] == "DeploymentList"


async def test_a_redirect_is_neither_followed_nor_handed_on(world: World) -> None:
    async def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "https://elsewhere.example.com/"})

    await world.register()
    world.other.respond = elsewhere
    answer = await world.ask(FLUNDERS)
    assert isinstance(answer, Response)
    assert answer.status == 502
    assert "Location" not in answer.headers
    assert "attempted to redirect this request" in json.loads(answer.body)["message"]
    assert len(world.other.requests) == 1


async def test_answers_keep_their_status_and_headers_but_set_no_cookies(world: World) -> None:
    async def teapot(request: web.BaseRequest) -> web.StreamResponse:
        headers = {"Warning": '299 - "old"', "Set-Cookie": "a=b", "X-Kubernetes-Pf": "x", "Content-Type": "text/plain"}
        return web.Response(status=418, body=b"short and stout", headers=headers)

    await world.register()
    world.other.respond = teapot
    answer = await world.ask(FLUNDERS)
    assert isinstance(answer, Response)
    assert (answer.status, answer.body, answer.content_type) == (418, b"short and stout", "text/plain")
    assert answer.headers["Warning"] == '299 - "old"'
    assert answer.headers["X-Kubernetes-Pf"] == "x"
    assert "Set-Cookie" not in answer.headers


async def test_a_server_that_is_gone_between_two_checks_is_a_503(world: World) -> None:
    await world.register()
    world.api.aggregation._proxy._endpoints.given["default/wardle"] = "127.0.0.1:1"
    answer = await world.ask(FLUNDERS)
    assert isinstance(answer, Response)
    assert answer.status == 503
    assert "error trying to reach service" in json.loads(answer.body)["message"]


@pytest.mark.parametrize("path", [f"{FLUNDERS}/../../../../v2/secrets", "/apis/wardle.example.com/v1/."])
async def test_a_path_that_leads_elsewhere_is_not_passed_on(world: World, path: str) -> None:
    await world.register()
    answer = await world.ask(path)
    assert isinstance(answer, Response)
    assert answer.status == 404
    assert world.other.requests == []


async def test_an_answer_that_never_ends_does_not_hold_a_request_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    await world.register()
    world.other.respond = never
    monkeypatch.setattr("muster.server.aggregation.service_proxy.ServiceProxy.send.__defaults__", (0.05,))
    answer = await world.ask(FLUNDERS)
    assert isinstance(answer, Response)
    assert answer.status == 503
    assert "deadline" in json.loads(answer.body)["message"]


# Over HTTPS, as a client sees it


@pytest.fixture
async def client(world: World) -> AsyncIterator[HTTPClient]:
    url = await world.api.serve()
    async with HTTPClient(world.api.credentials.client_config(url)) as made:
        yield made


async def test_a_watch_shows_events_as_they_come(world: World, client: HTTPClient) -> None:
    more, ended = asyncio.Event(), asyncio.Event()

    async def events(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            await response.write(
                b'{"type": "ADDED", "object": {"metadata": {"name": "one", "resourceVersion": "2"}}}\n'
            )
            await more.wait()
            await response.write(
                b'{"type": "ADDED", "object": {"metadata": {"name": "two", "resourceVersion": "3"}}}\n'
            )
            await asyncio.Event().wait()
        finally:
            ended.set()
        return response

    await world.register()
    world.other.respond = events
    seen: list[str] = []
    kind = Resource("wardle.example.com", "v1", "flunders", "Flunder", True)
    async for event in client.watch(kind, "default", resource_version="1"):
        assert event.object is not None
        seen.append(event.object["metadata"]["name"])
        more.set()
        if len(seen) == 2:
            break
    assert seen == ["one", "two"]
    # The other server's watch ends with the caller's.
    await client.close()
    async with asyncio.timeout(5):
        await ended.wait()


@pytest.mark.parametrize("encoded", [False, True])
async def test_a_large_answer_arrives_whole(world: World, client: HTTPClient, encoded: bool) -> None:
    items = [{"metadata": {"name": f"f-{index}", "annotations": {"a": "x" * 1000}}} for index in range(4000)]
    body = json.dumps({"kind": "FlunderList", "items": items}).encode()

    async def large(request: web.BaseRequest) -> web.StreamResponse:
        if encoded:
            headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
            return web.Response(body=gzip.compress(body, 0), headers=headers)
        return web.Response(body=body, headers={"Content-Type": "application/json"})

    await world.register()
    world.other.respond = large
    answer = await client.request("GET", FLUNDERS)
    assert len(answer["items"]) == 4000


async def test_rights_are_asked_before_anything_is_passed_on(world: World, client: HTTPClient) -> None:
    await world.register()
    limited = world.api.credentials.client_config(_url(world), "mallory", ())
    async with HTTPClient(limited) as other:
        with pytest.raises(ApiError) as refused:
            await other.request("GET", FLUNDERS)
    assert refused.value.code == 403
    assert world.other.requests == []


def _url(world: World) -> str:
    assert world.api._http is not None
    return f"https://127.0.0.1:{world.api._http.port}"


def test_the_authority_of_the_front_proxy_outlives_a_restart(tmp_path: Any) -> None:
    first = Credentials(tmp_path).front_proxy.pem
    assert Credentials(tmp_path).front_proxy.pem == first
    assert first != Credentials(tmp_path).authority.pem


async def test_conditions_follow_while_the_plane_runs(world: World) -> None:
    running = asyncio.create_task(world.availability.run())
    try:
        await world.api.client.create(API_SERVICES, an_api_service())
        async with asyncio.timeout(10):
            while True:
                stored = await world.api.client.get(API_SERVICES, "v1.wardle.example.com")
                if (stored.get("status") or {}).get("conditions"):
                    break
                await asyncio.sleep(0.01)
        (condition,) = stored["status"]["conditions"]
        assert condition["status"] == "True"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
