"""In a cluster: who signs in with a token sees what that user may list; the rest is counted, never named."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from muster.api.resources import NAMESPACES, NODES, POD_GROUPS, PODS, Resource
from muster.cli.scheduler import serving_tls
from muster.client.protocol import Client
from muster.dashboard import sessions
from muster.dashboard.live_cluster import LiveCluster
from muster.dashboard.server import DashboardServer, Listen
from muster.plane.options import Options
from muster.plane.plane import Plane
from tests.dashboard.pages import get

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", False)
BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding", True)
EVERYWHERE = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False)
TOKENS = 'ann-token,ann,1\nbob-token,bob,2\nroot-token,root,3,"system:masters"\n'


async def make(client: Client, resource: Resource, name: str, namespace: str | None = None, **fields: Any) -> None:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}
    await client.create(resource, body, namespace)


async def rights(client: Client) -> None:
    """Ann reads everything in `open`, and nodes; Bob reads nothing but nodes."""
    readable = [{"apiGroups": ["*"], "resources": ["pods", "podgroups", "compositepodgroups"], "verbs": ["list"]}]
    await make(client, ROLES, "pages", rules=readable)
    await make(client, ROLES, "nodes", rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    for user in ("ann", "bob"):
        who = [{"kind": "User", "name": user, "apiGroup": RBAC}]
        role = {"kind": "ClusterRole", "name": "nodes", "apiGroup": RBAC}
        await make(client, EVERYWHERE, f"{user}-nodes", subjects=who, roleRef=role)
    who = [{"kind": "User", "name": "ann", "apiGroup": RBAC}]
    role = {"kind": "ClusterRole", "name": "pages", "apiGroup": RBAC}
    await make(client, BINDINGS, "ann", "open", subjects=who, roleRef=role)


async def a_gang(client: Client, namespace: str, name: str, cpu: str, node: str = "") -> None:
    await make(client, POD_GROUPS, name, namespace, spec={"schedulingPolicy": {"gang": {"minCount": 1}}})
    requests = {"requests": {"cpu": cpu}}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": requests}]}
    spec["schedulingGroup"] = {"podGroupName": name}
    if node:
        spec["nodeName"] = node
    await make(client, PODS, f"{name}-0", namespace, spec=spec)


@asynccontextmanager
async def dashboard(tmp_path: Path) -> AsyncGenerator[DashboardServer]:
    """One node full of a gang in `secret`; a gang in `open` waits for room."""
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKENS)
    options = Options(https=False, token_file=tokens, scheduler=False, controllers=False, freeze=False)
    async with Plane(options) as plane:
        client = plane.client
        for name in ("open", "secret"):
            await make(client, NAMESPACES, name)
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        await make(client, NODES, "n0", status={"allocatable": room, "capacity": room})
        await rights(client)
        await a_gang(client, "secret", "hidden-gang", "4", "n0")
        await a_gang(client, "open", "wanted", "4")
        async with DashboardServer(LiveCluster(client, "test"), Listen(tls=serving_tls())) as server:
            yield server


@asynccontextmanager
async def signed_in(server: DashboardServer, token: str, status: int = 200) -> AsyncGenerator[aiohttp.ClientSession]:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    jar = aiohttp.CookieJar(unsafe=True)
    connector = aiohttp.TCPConnector(ssl=trusting)
    async with aiohttp.ClientSession(server.address, cookie_jar=jar, connector=connector) as browser:
        async with browser.post("/api/session", json={"token": token}) as answer:
            assert answer.status == status, await answer.text()
            if status == 200:
                assert "Secure" in answer.headers["Set-Cookie"]
        yield browser


async def everything(browser: aiohttp.ClientSession) -> str:
    """All that a viewer can get of the gang that waits, as one text."""
    paths = ["/api/board", "/api/explain/PodGroup/open/wanted", "/api/group/PodGroup/open/wanted", "/api/node/n0"]
    texts: list[str] = []
    for path in [*paths, "/api/health", "/api/seats?cpu=1"]:
        async with browser.get(path) as answer:
            texts.append(await answer.text())
    return "\n".join(texts)


async def test_two_users_see_two_clusters(tmp_path: Path):
    async with dashboard(tmp_path) as server:
        async with signed_in(server, "root-token") as root:
            seen = await everything(root)
            assert "hidden-gang" in seen
        async with signed_in(server, "ann-token") as ann:
            board = await get(ann, "/api/board")
            seen = await everything(ann)
            assert [gang[3] for gang in board["gangs"]] == ["wanted"]
            assert board["nodes"][0][5] == [[0, 1, 4000, 0, 0]]  # one pod of somebody
            found = await get(ann, "/api/explain/PodGroup/open/wanted")
            assert [holder["kind"] for holder in found["holders"]] == ["Hidden"]
            assert (await get(ann, "/api/node/n0"))["hidden"] == 1
            assert "hidden-gang" not in seen
            assert "secret" not in seen
            await get(ann, "/api/group/PodGroup/secret/hidden-gang", 403)
            await get(ann, "/api/explain/PodGroup/secret/hidden-gang", 403)
        async with signed_in(server, "bob-token") as bob:
            board = await get(bob, "/api/board")
            assert (board["gangs"], board["queue"], len(board["nodes"])) == ([], [], 1)
            await get(bob, "/api/group/PodGroup/open/wanted", 403)
            assert "wanted" not in await everything(bob)


async def test_victims_in_namespaces_that_may_not_be_read_are_counted(tmp_path: Path):
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: open}
spec:
  priority: 1000
  priorityClassName: urgent
  containers: [{name: c, image: i, resources: {requests: {cpu: "4"}}}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
"""
    async with dashboard(tmp_path) as server, signed_in(server, "ann-token") as ann:
        async with ann.post("/api/what-if?namespace=open", data=manifest.encode()) as answer:
            text = await answer.text()
            found = await answer.json()
        assert found["answer"]["fits"]
        assert [victim["pod"] for victim in found["answer"]["victims"]] == ["1 pod in namespaces that you may not read"]
        assert "hidden-gang" not in text


async def test_a_token_that_nobody_knows_opens_nothing(tmp_path: Path):
    async with dashboard(tmp_path) as server, signed_in(server, "no-token", 401) as nobody:
        await get(nobody, "/api/board", 401)


async def test_a_session_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "REVIEW_SECONDS", 0.0)
    async with dashboard(tmp_path) as server, signed_in(server, "ann-token") as ann:
        await get(ann, "/api/board")

        async def unknown(client: Client, token: str) -> None:
            return None

        monkeypatch.setattr(sessions, "review_token", unknown)
        await get(ann, "/api/board", 401)
