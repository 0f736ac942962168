"""A node acts on itself, on its pods, and on what those refer to; nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from policy_store import a_bootstrapped_store, a_user, put

from muster.api.resources import NODES, PODS, SERVICE_ACCOUNTS
from muster.client.local import LocalClient
from muster.server.auth.rules import Action
from muster.server.auth.security import Security
from muster.server.auth.tokens import TokenSigner
from muster.server.core import ApiServer
from muster.server.request import Request, Response
from muster.server.served_kinds import build_registry

NODE = a_user("system:node:n1", "system:nodes", "system:authenticated")
POD_SPEC: dict[str, Any] = {
    "nodeName": "n1",
    "serviceAccountName": "robot",
    "imagePullSecrets": [{"name": "pull"}],
    "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "key"}}}]}],
    "volumes": [
        {"name": "a", "configMap": {"name": "config"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "d", "projected": {"sources": [{"secret": {"name": "part"}}]}},
    ],
}


async def a_security() -> Security:
    store = await a_bootstrapped_store()
    await put(store, "Pod", "mine", "default", spec=POD_SPEC)
    await put(store, "Pod", "other", "default", spec={"nodeName": "n2", "volumes": [{"secret": {"secretName": "no"}}]})
    await put(store, "PersistentVolume", "vol", spec={"claimRef": {"namespace": "default", "name": "disk"}})
    return Security(store, TokenSigner.create())


def act(verb: str, resource: str, name: str = "", group: str = "", place: str = "default", **more: str) -> Action:
    resource, _, subresource = resource.partition("/")
    return Action(verb, group, resource, subresource, place, name, **more)


ALLOWED = [
    act("get", "nodes", "n1", place=""),
    act("patch", "nodes/status", "n1", place=""),
    act("create", "nodes", place=""),
    act("get", "pods", "mine"),
    act("patch", "pods/status", "mine"),
    act("delete", "pods", "mine"),
    act("create", "pods/eviction", "mine"),
    act("list", "pods", place="", field_selector="spec.nodeName=n1"),
    act("get", "secrets", "key"),
    act("get", "secrets", "pull"),
    act("get", "secrets", "part"),
    act("watch", "configmaps", "config"),
    act("get", "persistentvolumeclaims", "disk"),
    act("get", "persistentvolumes", "vol", place=""),
    act("create", "serviceaccounts/token", "robot"),
    act("update", "leases", "n1", "coordination.k8s.io", "kube-node-lease"),
    act("list", "services", place=""),
    act("get", "runtimeclasses", "r", "node.k8s.io", ""),
]
REFUSED = [
    act("patch", "nodes", "n2", place=""),
    act("list", "nodes", place=""),
    act("delete", "pods", "other"),
    act("patch", "pods/status", "other"),
    act("list", "pods", place=""),
    act("list", "pods", place="", field_selector="spec.nodeName=n2"),
    act("get", "secrets", "no"),
    act("list", "secrets"),
    act("get", "secrets", "key", place="kube-system"),
    act("update", "secrets", "key"),
    act("create", "serviceaccounts/token", "default"),
    act("update", "leases", "n2", "coordination.k8s.io", "kube-node-lease"),
    act("update", "leases", "n1", "coordination.k8s.io", "default"),
    act("create", "deployments", group="apps"),
]


@pytest.mark.parametrize("action", ALLOWED, ids=str)
async def test_what_a_node_may_do(action: Action) -> None:
    assert (await a_security()).authorizer.allows(NODE, action)


@pytest.mark.parametrize("action", REFUSED, ids=str)
async def test_what_a_node_may_not_do(action: Action) -> None:
    assert not (await a_security()).authorizer.allows(NODE, action)


async def test_the_name_alone_makes_no_node() -> None:
    security = await a_security()
    assert not security.authorizer.allows(a_user("system:node:n1"), act("get", "secrets", "key"))


async def ask(server: ApiServer, method: str, path: str, body: Any = None) -> tuple[int, str]:
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = msgspec.json.encode(body) if body is not None else b""
    answer = await server.handle(Request(method, path, {}, {"content-type": content}, data, NODE))
    assert isinstance(answer, Response)
    return answer.status, msgspec.json.decode(answer.body).get("message", "")


async def a_server() -> ApiServer:
    store = await a_bootstrapped_store()
    server = ApiServer(store, build_registry())
    await server.bootstrap()
    client = LocalClient(server)
    for name in ("n1", "n2"):
        await client.create(NODES, {"metadata": {"name": name}})
        body = {
            "metadata": {"name": f"on-{name}"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": name},
        }
        await client.create(PODS, body, "default")
    return server


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"example.com/a": "b"}}}, ""),
        ("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"node.kubernetes.io/x": "b"}}}, ""),
        (
            "PATCH",
            "/api/v1/nodes/n1",
            {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "b"}}},
            'node "n1" is not allowed to modify labels: node-restriction.kubernetes.io/x',
        ),
        (
            "PATCH",
            "/api/v1/nodes/n1",
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            'node "n1" is not allowed to modify taints',
        ),
        ("PATCH", "/api/v1/nodes/n2", {"metadata": {"labels": {"a": "b"}}}, 'not allowed to modify node "n2"'),
        (
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            {"metadata": {"name": "n2"}},
            "can only access lease with the same name as the requesting node",
        ),
        ("PATCH", "/api/v1/namespaces/default/pods/on-n1/status", {"status": {"phase": "Running"}}, ""),
        (
            "PATCH",
            "/api/v1/namespaces/default/pods/on-n2/status",
            {"status": {"phase": "Running"}},
            "can only update pod status for pods with spec.nodeName set to itself",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods/on-n2",
            None,
            'node "n1" can only delete pods with spec.nodeName set to itself',
        ),
        (
            "POST",
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1"}},
            "can only create mirror pods",
        ),
    ],
)
async def test_what_a_node_may_write(method: str, path: str, body: Any, message: str) -> None:
    code, said = await ask(await a_server(), method, path, body)
    assert (code < 300) == (not message), said
    assert message in said


async def test_a_token_is_bound_to_a_pod_of_the_node() -> None:
    server = await a_server()
    await LocalClient(server).create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "default")
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    code, said = await ask(server, "POST", path, {"spec": {"audiences": ["a"]}})
    assert (code, "not bound to a pod" in said) == (403, True)
    spec = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "on-n2"}, "audiences": ["a"]}
    code, said = await ask(server, "POST", path, {"spec": spec})
    assert (code, "different node" in said) == (403, True)
