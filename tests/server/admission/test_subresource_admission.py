"""What webhooks and policies see of requests to subresources (bindings, evictions, scales, tokens), and of reviews."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from test_webhooks import MUTATING, VALIDATING, World
from webhook_server import WebhookServer, a_configuration, a_hook, patching

from muster.api.resources import DEPLOYMENTS, NODES, PODS, SERVICE_ACCOUNTS, Resource
from muster.plane.api import Api
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.request import JSON, Request, Response, User

Obj = dict[str, Any]
PODS_PATH = "/api/v1/namespaces/default/pods"
GROUP = "admissionregistration.k8s.io"
POLICIES = Resource(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Resource(GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with WebhookServer("localhost") as webhook:
        made = World(webhook, {})
        for resource, obj in bootstrap_objects():
            await made.client.create(resource, obj)
        container = {"name": "c", "image": "i"}
        await made.client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, "default")
        yield made
        await made.admission.close()


async def bind(world: World, node: str = "n1") -> int:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    return (await world.ask("POST", f"{PODS_PATH}/p/binding", body)).status


async def evict(world: World) -> int:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    return (await world.ask("POST", f"{PODS_PATH}/p/eviction", body)).status


async def test_a_webhook_sees_a_binding_and_can_refuse_it(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="pods/binding"))
    world.webhook.respond = lambda request: {"allowed": False, "status": {"message": "not there"}}
    assert await bind(world) == 400
    (asked,) = world.webhook.asked
    assert asked["operation"] == "CREATE"
    assert asked["kind"] == asked["requestKind"] == {"group": "", "version": "v1", "kind": "Binding"}
    assert asked["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert (asked["subResource"], asked["name"], asked["namespace"]) == ("binding", "p", "default")
    assert asked["object"]["target"] == {"kind": "Node", "name": "n1"}
    assert "nodeName" not in (await world.client.get(PODS, "p", "default"))["spec"]


async def test_a_webhook_can_bind_a_pod_elsewhere(world: World) -> None:
    await world.client.create(NODES, {"metadata": {"name": "n2"}})
    await world.configure(MUTATING, a_hook(world.webhook.client_config, resources="pods/binding"))
    world.webhook.respond = patching({"op": "replace", "path": "/target/name", "value": "n2"})
    assert await bind(world) == 201
    assert (await world.client.get(PODS, "p", "default"))["spec"]["nodeName"] == "n2"


async def test_rules_about_pods_are_not_about_their_bindings(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="pods"))
    assert await bind(world) == 201
    assert world.webhook.asked == []


async def test_an_eviction_is_shown_once_and_its_deletion_is_not(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="pods/*"))
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="pods"), name="other")
    assert await evict(world) == 201
    (asked,) = world.webhook.asked
    assert (asked["operation"], asked["subResource"]) == ("CREATE", "eviction")
    assert asked["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


async def test_a_refused_eviction_leaves_the_pod_as_it_was(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="pods/eviction"))
    world.webhook.respond = lambda request: {"allowed": False}
    before = await world.client.get(PODS, "p", "default")
    assert await evict(world) == 400
    assert await world.client.get(PODS, "p", "default") == before


async def test_a_token_request_is_shown(world: World) -> None:
    await world.client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "a"}}, "default")
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="serviceaccounts/token"))
    world.webhook.respond = lambda request: {"allowed": False}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["x"]}}
    answer = await world.ask("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", body)
    assert answer.status == 400
    assert world.webhook.asked[0]["object"]["spec"]["audiences"] == ["x"]


async def test_a_stream_is_shown_as_connect_with_its_options(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="pods/exec"))
    world.webhook.respond = lambda request: {"allowed": False, "status": {"message": "no shells"}}
    answer = await world.ask("POST", f"{PODS_PATH}/p/exec", command="sh", stdin="true")
    assert "no shells" in json.loads(answer.body)["message"]
    (asked,) = world.webhook.asked
    assert (asked["operation"], asked["options"]) == ("CONNECT", None)
    assert asked["object"] == {"kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "command": ["sh"]}


async def test_a_review_is_shown_to_webhooks_and_not_to_policies(world: World) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    spec = {"policyName": "never", "validationActions": ["Deny"]}
    hook = a_hook(world.webhook.client_config, resources="selfsubjectreviews")
    world.webhook.respond = lambda request: {"allowed": False, "status": {"message": "nobody"}}
    path, user = "/apis/authentication.k8s.io/v1/selfsubjectreviews", User("alice")
    body = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
    api = await Api.open()
    try:
        await api.client.create(POLICIES, {"metadata": {"name": "never"}, "spec": policy})
        await api.client.create(BINDINGS, {"metadata": {"name": "never"}, "spec": spec})
        answer = await api.core.handle(Request("POST", path, {}, {"content-type": JSON}, body, user))
        assert isinstance(answer, Response)
        assert json.loads(answer.body)["status"]["userInfo"]["username"] == "alice"
        await api.client.create(VALIDATING, a_configuration("Validating", hook))
        answer = await api.core.handle(Request("POST", path, {}, {"content-type": JSON}, body, user))
        assert isinstance(answer, Response)
        assert "nobody" in json.loads(answer.body)["message"]
    finally:
        await api.close()
    (asked,) = world.webhook.asked
    assert asked["resource"]["resource"] == "selfsubjectreviews"


async def test_a_policy_can_refuse_a_binding(world: World) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.target.name != 'n1'", "message": "n1 is taken"}],
    }
    await world.client.create(POLICIES, {"metadata": {"name": "nodes"}, "spec": policy})
    spec = {"policyName": "nodes", "validationActions": ["Deny"]}
    await world.client.create(BINDINGS, {"metadata": {"name": "nodes"}, "spec": spec})
    assert await bind(world, "n1") == 422
    assert await bind(world, "n2") == 201


@pytest.fixture
async def deployment(world: World) -> Obj:
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return await world.client.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec}, "default")


async def scale(world: World, replicas: int) -> Obj:
    path = "/apis/apps/v1/namespaces/default/deployments/d/scale"
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}}
    return json.loads((await world.ask("PUT", path, body)).body)


async def test_a_scale_is_shown_as_a_scale(world: World, deployment: Obj) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="deployments/scale"))
    assert (await scale(world, 3))["spec"]["replicas"] == 3
    (asked,) = world.webhook.asked
    assert asked["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (asked["oldObject"]["spec"]["replicas"], asked["object"]["spec"]["replicas"]) == (1, 3)


async def test_a_webhook_can_change_a_scale(world: World, deployment: Obj) -> None:
    await world.configure(MUTATING, a_hook(world.webhook.client_config, resources="deployments/scale"))
    world.webhook.respond = patching({"op": "replace", "path": "/spec/replicas", "value": 2})
    assert (await scale(world, 9))["spec"]["replicas"] == 2
    assert (await world.client.get(DEPLOYMENTS, "d", "default"))["spec"]["replicas"] == 2
