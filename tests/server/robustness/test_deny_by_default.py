"""Whoever was given nothing may do nothing: every verb on every resource and subresource, through HTTPS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest
from yarl import URL

from load import client_tls
from muster.plane.plane import Plane
from muster.server.auth.bootstrap import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from muster.server.resources.kind import Kind
from muster.testing import api_server

METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
NAMED = ("get", "update", "patch", "delete")
OPEN_TO_ALL = {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
PATCHES = ("application/merge-patch+json", "application/apply-patch+yaml", "Application/Apply-Patch+YAML; x=y")


class Asked(NamedTuple):
    """One cell of the matrix."""

    method: str
    path: str
    content: str = "application/json"


def matrix(plane: Plane) -> Iterator[Asked]:
    for kind in plane.api.core.registry.kinds:
        if kind.plural in OPEN_TO_ALL:
            continue
        for version in kind.versions:
            yield from cells(kind, version)


def cells(kind: Kind, version: str) -> Iterator[Asked]:
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    place = f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    for verb in kind.verbs:
        path = f"{place}/x" if verb in NAMED else place
        contents = PATCHES if verb == "patch" else ("application/json",)
        for content in contents:
            yield Asked(METHODS.get(verb, "GET"), path + ("?watch=true" if verb == "watch" else ""), content)
    if kind.namespaced and "list" in kind.verbs:
        yield Asked("GET", f"{root}/{kind.plural}")
        yield Asked("GET", f"{root}/watch/{kind.plural}")
    for subresource in kind.subresources:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            yield Asked(method, f"{place}/x/{subresource}", "application/merge-patch+json")


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with api_server(https=True) as plane:
        yield plane


class Caller:
    """Somebody at the door, with a certificate or without."""

    def __init__(self, plane: Plane, user: str = "") -> None:
        authority = plane.api.credentials.authority
        pair = authority.for_client(user, ()) if user else None
        tls = client_tls(authority.pem, pair.cert + pair.key if pair else b"")
        self._url = plane.url
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls))

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ask(self, asked: Asked, **headers: str) -> tuple[int, Any]:
        body = b"" if asked.method == "GET" else b'{"metadata":{"name":"x"}}'
        url, sent = URL(self._url + asked.path, encoded=True), {"Content-Type": asked.content, **headers}
        async with self._session.request(asked.method, url, data=body, headers=sent) as answer:
            text = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, msgspec.json.decode(text) if is_json else text


async def test_a_user_without_rights_is_refused_everywhere_in_the_words_of_kubernetes(plane: Plane) -> None:
    before = plane.api.store.revision
    count = 0
    async with Caller(plane, "mallory") as mallory:
        for asked in matrix(plane):
            status, body = await mallory.ask(asked)
            assert status == 403, (asked, status, body)
            assert body["reason"] == "Forbidden", asked
            assert 'User "mallory" cannot ' in body["message"], body
            count += 1

    assert count > 500
    assert plane.api.store.revision == before


async def test_somebody_unknown_is_refused_everywhere(plane: Plane) -> None:
    before = plane.api.store.revision
    async with Caller(plane) as stranger:
        for asked in matrix(plane):
            status, body = await stranger.ask(asked)
            assert status in (401, 403), (asked, status, body)
            assert body["kind"] == "Status", asked
        for path in ("/livez", "/readyz", "/version"):
            assert (await stranger.ask(Asked("GET", path)))[0] == 200
        for path in ("/metrics", "/api", "/apis", "/openapi/v3", "/", "/livez/etcd/..", "/version/x"):
            assert (await stranger.ask(Asked("GET", path)))[0] in (401, 403), path

    assert plane.api.store.revision == before


async def test_a_token_that_is_none_is_no_anonymous_visit(plane: Plane) -> None:
    async with Caller(plane) as stranger:
        for token in ("Bearer x", "Bearer ", "bearer a.b.c", "Basic eDp5", "x"):
            status, _ = await stranger.ask(Asked("GET", "/api/v1/nodes"), Authorization=token)
            assert status == 401, token


@pytest.mark.parametrize(
    "headers",
    [
        {"Impersonate-User": "kubernetes-admin"},
        {"Impersonate-User": "mallory", "Impersonate-Group": "system:masters"},
        {"Impersonate-Group": "system:masters"},
        {"Impersonate-Uid": "x"},
        {"impersonate-user": "system:serviceaccount:kube-system:default"},
        {"Impersonate-Extra-Scopes": "x"},
    ],
)
async def test_nobody_becomes_somebody_else_without_the_right(plane: Plane, headers: dict[str, str]) -> None:
    async with Caller(plane, "mallory") as mallory:
        status, _ = await mallory.ask(Asked("GET", "/api/v1/nodes"), **headers)

    assert status in (400, 403)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nodes/", "//api/v1/nodes", "/api//v1/nodes", "/api/v1/%6eodes", "/api/v1/./nodes",
        "/version/../api/v1/nodes", "/livez/..%2f..%2fapi/v1/nodes", "/api/v1/nodes%3fx", "/api/v1/nodes;x",
        "/apis//v1/nodes", "/API/v1/nodes",
    ],
)  # fmt: skip
async def test_no_spelling_of_a_path_gets_around_the_door(plane: Plane, path: str) -> None:
    async with Caller(plane, "mallory") as mallory:
        status, body = await mallory.ask(Asked("GET", path))

    assert status in (400, 403, 404), body
    assert body["kind"] == "Status"


@pytest.mark.parametrize("content", PATCHES)
async def test_the_right_to_patch_is_no_right_to_create(plane: Plane, content: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "get"]}]
    await plane.client.create(CLUSTER_ROLES, {"metadata": {"name": "patcher"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "patcher"}
    binding = {"metadata": {"name": "b"}, "roleRef": role, "subjects": [{"kind": "User", "name": "mallory"}]}
    await plane.client.create(CLUSTER_ROLE_BINDINGS, binding)
    before = plane.api.store.revision

    async with Caller(plane, "mallory") as mallory:
        path = "/api/v1/namespaces/default/configmaps/x?fieldManager=m"
        status, body = await mallory.ask(Asked("PATCH", path, content))

    assert status == (403 if "pply" in content else 404), body
    assert plane.api.store.revision == before
