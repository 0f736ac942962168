"""Webhooks, asked over real TLS by a server in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from webhook_server import CA_BUNDLE, WebhookServer, a_configuration, a_hook, patching

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, ENDPOINT_SLICES, NAMESPACES, PODS, SERVICES, Resource
from muster.client.local import LocalClient
from muster.server.admission.bootstrap import bootstrap_objects
from muster.server.admission.dynamic.chain import DynamicAdmission
from muster.server.admission.dynamic.webhook_client import WebhookClient
from muster.server.backend import ServerHooks
from muster.server.core import ApiServer
from muster.server.request import JSON, Request, Response, User
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore

Obj = dict[str, Any]
MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
)


class World:
    """A server with configured admission, and a webhook beside it."""

    def __init__(self, webhook: WebhookServer, endpoints: dict[str, str]) -> None:
        store = MemoryStore()
        self.webhook = webhook
        self.endpoints = endpoints
        self.admission = DynamicAdmission(store, WebhookClient(endpoints))
        self.server = ApiServer(store, build_registry(), hooks=ServerHooks(admission=self.admission))
        self.client = LocalClient(self.server)

    async def configure(self, kind: Resource, *hooks: Obj, name: str = "test") -> None:
        await self.client.create(
            kind, a_configuration(kind.kind.removesuffix("WebhookConfiguration"), *hooks, name=name)
        )

    async def create(self, name: str = "probe", **fields: Any) -> Obj:
        body = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
        return await self.client.create(CONFIG_MAPS, body, "default")

    async def refusal(self, name: str = "probe", **fields: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.create(name, **fields)
        return caught.value

    async def ask(
        self, method: str, path: str, body: Obj | None = None, user: User | None = None, **query: str
    ) -> Response:
        given = {name: (value,) for name, value in query.items()}
        content = {"content-type": JSON}
        request = Request(
            method, path, given, content, json.dumps(body or {}).encode(), user or User("alice", ("dev",))
        )
        answer = await self.server.handle(request)
        assert isinstance(answer, Response)
        return answer


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with WebhookServer("localhost", "hooks.default.svc") as webhook:
        made = World(webhook, {})
        for resource, obj in bootstrap_objects():
            await made.client.create(resource, obj)
        yield made
        await made.admission.close()


async def test_a_validating_webhook_sees_the_request_and_lets_it_pass(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    body = {"metadata": {"name": "probe"}, "data": {"a": "b"}}
    answer = await world.ask("POST", "/api/v1/namespaces/default/configmaps", body)
    assert answer.status == 201
    (asked,) = world.webhook.asked
    assert asked["operation"] == "CREATE"
    assert (asked["namespace"], asked["name"]) == ("default", "probe")
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert asked["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert asked["userInfo"] == {"username": "alice", "groups": ["dev"]}
    assert asked["object"]["data"] == {"a": "b"}
    assert asked["object"]["kind"] == "ConfigMap"
    assert asked["oldObject"] is None
    assert asked["dryRun"] is False


async def test_nothing_but_the_review_is_sent(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    await world.create()
    (headers,) = world.webhook.headers
    assert not {"authorization", "cookie", "proxy-authorization"} & {name.lower() for name in headers}
    assert world.webhook.paths == ["/hook?timeout=10s"]


async def test_a_refusal_is_told_with_the_name_of_the_webhook(world: World) -> None:
    world.webhook.respond = lambda request: {"allowed": False, "status": {"code": 403, "message": "not like this"}}
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    refused = await world.refusal()
    assert refused.code == 403
    assert refused.message == 'admission webhook "hook.example.com" denied the request: not like this'
    world.webhook.respond = lambda request: {"allowed": False}
    refused = await world.refusal()
    assert refused.code == 400
    assert refused.message == 'admission webhook "hook.example.com" denied the request without explanation'


async def test_a_mutating_webhook_changes_the_object_that_is_stored(world: World) -> None:
    world.webhook.respond = patching({"op": "add", "path": "/data", "value": {"added": "yes"}})
    await world.configure(MUTATING, a_hook(world.webhook.client_config))
    made = await world.create()
    assert made["data"] == {"added": "yes"}
    found = await world.client.get(CONFIG_MAPS, "probe", "default")
    assert found["data"] == {"added": "yes"}
    assert found["metadata"]["uid"] == made["metadata"]["uid"]


async def test_what_a_patch_adds_is_defaulted_and_validated(world: World) -> None:
    container = {"name": "side", "image": "i", "unknown": 1}
    world.webhook.respond = patching({"op": "add", "path": "/spec/containers/-", "value": container})
    await world.configure(MUTATING, a_hook(world.webhook.client_config, resources="pods"))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = await world.client.create(PODS, pod, "default")
    side = made["spec"]["containers"][1]
    assert side["terminationMessagePolicy"] == "File"
    assert "unknown" not in side
    world.webhook.respond = patching({"op": "add", "path": "/spec/containers/-", "value": {"name": "Bad Name"}})
    with pytest.raises(ApiError, match="Bad Name"):
        await world.client.create(PODS, {**pod, "metadata": {"name": "q"}}, "default")


async def test_no_patch_changes_what_the_server_decides(world: World) -> None:
    world.webhook.respond = patching(
        {"op": "replace", "path": "/metadata/uid", "value": "forged"},
        {"op": "replace", "path": "/metadata/name", "value": "other"},
    )
    await world.configure(MUTATING, a_hook(world.webhook.client_config))
    made = await world.create()
    assert made["metadata"]["name"] == "probe"
    assert made["metadata"]["uid"] != "forged"


async def test_a_webhook_that_does_not_answer_fails_the_write_or_is_passed_over(world: World) -> None:
    nowhere = {"url": "https://localhost:1/hook", "caBundle": CA_BUNDLE}
    await world.configure(VALIDATING, a_hook(nowhere))
    refused = await world.refusal()
    assert refused.code == 500
    words = 'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post '
    assert refused.message.startswith(words + '"https://localhost:1/hook?timeout=10s": ')
    await world.client.delete(VALIDATING, "test")
    await world.configure(VALIDATING, a_hook(nowhere, failurePolicy="Ignore"))
    await world.create()


async def test_a_webhook_that_takes_too_long_is_given_up(world: World) -> None:
    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async with WebhookServer("localhost") as sleepy:
        sleepy._runner._server.request_handler = slow  # type: ignore[attr-defined]
        await world.configure(VALIDATING, a_hook(sleepy.client_config, timeoutSeconds=1))
        refused = await world.refusal()
    assert "context deadline exceeded" in refused.message


async def test_redirects_are_not_followed(world: World) -> None:
    elsewhere = f"https://localhost:{world.webhook.port}/elsewhere"
    world.webhook.respond = lambda request: web.Response(status=307, headers={"Location": elsewhere})
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    refused = await world.refusal()
    assert refused.code == 500
    assert len(world.webhook.paths) == 1


async def test_a_certificate_of_another_authority_is_refused(world: World) -> None:
    config = {**world.webhook.client_config}
    del config["caBundle"]
    await world.configure(VALIDATING, a_hook(config))
    refused = await world.refusal()
    assert "certificate verify failed" in refused.message
    assert world.webhook.asked == []


async def test_an_answer_to_another_question_is_no_answer(world: World) -> None:
    world.webhook.respond = lambda request: {"uid": "another", "allowed": True}
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    assert 'got "another"' in (await world.refusal()).message


async def test_warnings_reach_the_client(world: World) -> None:
    world.webhook.respond = lambda request: {"allowed": True, "warnings": ["mind the gap"]}
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    answer = await world.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "probe"}})
    assert answer.warnings == ["mind the gap"]


async def test_a_dry_run_is_told(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    body = {"metadata": {"name": "probe"}}
    answer = await world.ask("POST", "/api/v1/namespaces/default/configmaps", body, dryRun="All")
    assert answer.status == 201
    assert world.webhook.asked[0]["dryRun"] is True


async def test_updates_and_deletions_are_asked_about_too(world: World) -> None:
    await world.create(data={"a": "1"})
    await world.configure(VALIDATING, a_hook(world.webhook.client_config))
    found = await world.client.get(CONFIG_MAPS, "probe", "default")
    found["data"] = {"a": "2"}
    await world.client.update(CONFIG_MAPS, found)
    await world.client.delete(CONFIG_MAPS, "probe", "default")
    update, deletion = world.webhook.asked
    assert (update["operation"], deletion["operation"]) == ("UPDATE", "DELETE")
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    assert (deletion["oldObject"]["data"], deletion["object"]) == ({"a": "2"}, None)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"]}]}, False),
        ({"rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*"]}]}, True),
        ({"rules": [{"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*"]}]}, False),
        ({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v2"], "resources": ["*"]}]}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"objectSelector": {"matchLabels": {"app": "db"}}}, False),
        ({"matchConditions": [{"name": "a", "expression": "object.data.a == 'b'"}]}, True),
        ({"matchConditions": [{"name": "a", "expression": "request.operation == 'UPDATE'"}]}, False),
        (
            {
                "matchConditions": [
                    {"name": "broken", "expression": "object.nope == 1"},
                    {"name": "false", "expression": "false"},
                ]
            },
            False,
        ),
    ],
)
async def test_only_what_matches_is_asked_about(world: World, fields: Obj, asked: bool) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, **fields))
    await world.create(metadata={"labels": {"app": "web"}}, data={"a": "b"})
    assert bool(world.webhook.asked) is asked


async def test_a_condition_without_a_value_follows_the_failure_policy(world: World) -> None:
    broken = [{"name": "broken", "expression": "object.nope == 1"}]
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, matchConditions=broken))
    refused = await world.refusal()
    assert refused.code == 403
    assert "no such key: nope" in refused.message
    await world.client.delete(VALIDATING, "test")
    hook = a_hook(world.webhook.client_config, matchConditions=broken, failurePolicy="Ignore")
    await world.configure(VALIDATING, hook)
    await world.create()
    assert world.webhook.asked == []


async def test_another_version_of_the_same_kind_matches_unless_it_must_be_exact(world: World) -> None:
    rule = {"operations": ["*"], "apiGroups": ["scheduling.k8s.io"], "apiVersions": ["v1alpha3"], "resources": ["*"]}
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, rules=[rule], matchPolicy="Exact"))
    assert (await world.ask("POST", path, group)).status == 201
    assert world.webhook.asked == []
    await world.client.delete(VALIDATING, "test")
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, rules=[rule]))
    assert (await world.ask("POST", path, {**group, "metadata": {"name": "h"}})).status == 201
    (asked,) = world.webhook.asked
    assert asked["resource"]["version"] == "v1alpha3"
    assert asked["requestResource"]["version"] == "v1beta1"
    assert asked["object"]["apiVersion"] == "scheduling.k8s.io/v1alpha3"


async def test_configurations_themselves_are_never_asked_about(world: World) -> None:
    world.webhook.respond = lambda request: {"allowed": False}
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, resources="*/*"))
    await world.configure(MUTATING, a_hook(world.webhook.client_config, resources="*/*"), name="other")
    await world.client.delete(VALIDATING, "test")
    await world.client.delete(MUTATING, "other")
    assert world.webhook.asked == []


async def test_a_mutating_webhook_is_asked_again_where_a_later_one_changed_the_object(world: World) -> None:
    def respond(request: Obj) -> Obj:
        step = str(len(world.webhook.asked))
        return patching({"op": "add", "path": "/data", "value": {**request["object"].get("data", {}), step: "x"}})(
            request
        )

    world.webhook.respond = respond  # type: ignore[assignment]
    first = a_hook(world.webhook.client_config, "a.example.com", reinvocationPolicy="IfNeeded")
    second = a_hook(world.webhook.client_config, "b.example.com")
    await world.configure(MUTATING, first, second)
    made = await world.create()
    assert len(world.webhook.asked) == 3
    assert set(made["data"]) == {"1", "2", "3"}


async def test_mutating_webhooks_come_before_validating_ones(world: World) -> None:
    world.webhook.respond = patching({"op": "add", "path": "/data", "value": {"a": "b"}})
    await world.configure(MUTATING, a_hook(world.webhook.client_config))
    async with WebhookServer("localhost") as validating:
        await world.configure(VALIDATING, a_hook(validating.client_config))
        await world.create()
        assert validating.asked[0]["object"]["data"] == {"a": "b"}


_SERVICE = {"service": {"namespace": "default", "name": "hooks", "path": "/check"}, "caBundle": CA_BUNDLE}


async def test_a_service_is_reached_where_the_operator_says(world: World) -> None:
    world.admission.client._endpoints.given["default/hooks"] = f"127.0.0.1:{world.webhook.port}"
    await world.configure(VALIDATING, a_hook(_SERVICE))
    await world.create()
    assert world.webhook.paths == ["/check?timeout=10s"]
    assert world.webhook.headers[0]["Host"] == "hooks.default.svc:443"


async def test_a_service_is_reached_through_its_endpoint_slices(world: World) -> None:
    await world.configure(VALIDATING, a_hook(_SERVICE))
    assert 'service "hooks" not found' in (await world.refusal()).message
    ports = [{"name": "https", "port": 443, "targetPort": 8443}]
    await world.client.create(SERVICES, {"metadata": {"name": "hooks"}, "spec": {"ports": ports}}, "default")
    assert 'no endpoints available for service "hooks"' in (await world.refusal()).message
    labels = {"kubernetes.io/service-name": "hooks"}
    slice_ = {
        "metadata": {"name": "hooks-1", "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": world.webhook.port}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
    }
    await world.client.create(ENDPOINT_SLICES, slice_, "default")
    await world.create()
    assert len(world.webhook.asked) == 1


async def test_without_a_configuration_nobody_is_asked(world: World) -> None:
    await world.create()
    await world.client.create(NAMESPACES, {"metadata": {"name": "n"}})
    assert world.webhook.asked == []


async def test_an_older_review_is_sent_where_only_that_is_understood(world: World) -> None:
    await world.configure(VALIDATING, a_hook(world.webhook.client_config, admissionReviewVersions=["v1beta1"]))
    await world.create()
    assert len(world.webhook.asked) == 1
