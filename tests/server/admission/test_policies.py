"""Admission policies and their bindings, in a server with its real rights."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, NAMESPACES, PODS, Resource
from muster.plane.api import Api
from muster.server.request import JSON, Request, Response, User

Obj = dict[str, Any]
_GROUP = "admissionregistration.k8s.io"


def _resource(plural: str, kind: str) -> Resource:
    return Resource(_GROUP, "v1", plural, kind, False)


VALIDATING = _resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
VALIDATING_BINDING = _resource("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding")
MUTATING = _resource("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
MUTATING_BINDING = _resource("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")


def a_match(resource: str = "configmaps", *operations: str) -> Obj:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": list(operations or "*"), "resources": [resource]}
    return {"resourceRules": [rule]}


class World:
    """A server, and short ways to configure it and to write to it."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.client = api.client

    async def validating(
        self, *validations: Obj | str, name: str = "p", binding: Obj | None = None, **spec: Any
    ) -> None:
        given = [{"expression": each} if isinstance(each, str) else each for each in validations]
        spec = {"matchConstraints": a_match(), "validations": given, **spec}
        await self.client.create(VALIDATING, {"metadata": {"name": name}, "spec": spec})
        bound = {"policyName": name, "validationActions": ["Deny"], **(binding or {})}
        await self.client.create(VALIDATING_BINDING, {"metadata": {"name": "b"}, "spec": bound})

    async def mutating(self, *mutations: Obj, name: str = "p", **spec: Any) -> None:
        spec = {"matchConstraints": a_match(), "mutations": list(mutations), "reinvocationPolicy": "Never", **spec}
        await self.client.create(MUTATING, {"metadata": {"name": name}, "spec": spec})
        await self.client.create(MUTATING_BINDING, {"metadata": {"name": name}, "spec": {"policyName": name}})

    async def create(self, name: str = "probe", **fields: Any) -> Obj:
        body = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
        return await self.client.create(CONFIG_MAPS, body, "default")

    async def refusal(self, name: str = "probe", **fields: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.create(name, **fields)
        return caught.value

    async def post(self, user: User, **fields: Any) -> Response:
        body = json.dumps({"metadata": {"name": "probe"}, **fields}).encode()
        path = "/api/v1/namespaces/default/configmaps"
        answer = await self.api.core.handle(Request("POST", path, {}, {"content-type": JSON}, body, user))
        assert isinstance(answer, Response)
        return answer


@pytest.fixture
async def world() -> AsyncIterator[World]:
    api = await Api.open()
    yield World(api)
    await api.close()


def applying(text: str) -> Obj:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}


def patching(text: str) -> Obj:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}


# Validating


async def test_what_a_validation_refuses_is_refused_with_its_words(world: World) -> None:
    await world.validating("object.data.size() < 2")
    await world.create("small", data={"a": "1"})
    refused = await world.refusal(data={"a": "1", "b": "2"})
    cause = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.data.size() < 2"
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == f'configmaps "probe" is forbidden: {cause}'
    assert refused.details == {"name": "probe", "kind": "configmaps", "causes": [{"message": cause}]}


@pytest.mark.parametrize(
    ("validation", "code", "words"),
    [
        ({"expression": "false", "message": "no way", "reason": "Forbidden"}, 403, "no way"),
        ({"expression": "false", "messageExpression": "'not ' + object.metadata.name"}, 422, "not probe"),
        ({"expression": "false", "message": "plain", "messageExpression": "string(1 / 0)"}, 422, "plain"),
        (
            {"expression": "object.foo == 1"},
            422,
            "expression 'object.foo == 1' resulted in error: no such key: foo",
        ),
    ],
)
async def test_what_a_refusal_says(world: World, validation: Obj, code: int, words: str) -> None:
    await world.validating(validation)
    refused = await world.refusal()
    assert refused.code == code
    assert refused.message.endswith(f"denied request: {words}")


async def test_an_expression_without_a_value_is_passed_over_where_failures_are_ignored(world: World) -> None:
    await world.validating("object.foo == 1", failurePolicy="Ignore")
    await world.create()


async def test_a_policy_without_a_binding_is_not_in_force(world: World) -> None:
    spec = {"matchConstraints": a_match(), "validations": [{"expression": "false"}]}
    await world.client.create(VALIDATING, {"metadata": {"name": "p"}, "spec": spec})
    await world.create()


async def test_a_binding_may_warn_instead(world: World) -> None:
    await world.validating("false", binding={"validationActions": ["Warn", "Audit"]})
    answer = await world.post(User("alice"))
    assert answer.status == 201
    words = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false"
    assert answer.warnings == [words]


async def test_the_old_object_the_request_and_the_namespace_are_known(world: World) -> None:
    await world.validating(
        "request.operation != 'UPDATE' || object.data.a == oldObject.data.a",
        "request.userInfo.username != 'mallory'",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
    )
    made = await world.create(data={"a": "1"})
    with pytest.raises(ApiError, match=r"oldObject\.data\.a"):
        await world.client.update(CONFIG_MAPS, {**made, "data": {"a": "2"}})
    assert (await world.post(User("mallory"))).status == 422


async def test_deletions_are_judged_by_the_old_object(world: World) -> None:
    await world.create(data={"keep": "yes"})
    await world.validating("oldObject.data.keep != 'yes'", matchConstraints=a_match("configmaps", "DELETE"))
    with pytest.raises(ApiError, match="denied request"):
        await world.client.delete(CONFIG_MAPS, "probe", "default")


async def test_variables_are_evaluated_when_they_are_used(world: World) -> None:
    variables = [
        {"name": "count", "expression": "object.data.size()"},
        {"name": "double", "expression": "variables.count * 2"},
        {"name": "broken", "expression": "object.nope"},
    ]
    await world.validating("variables.double < 3 || variables.broken == 1", variables=variables)
    await world.create("small", data={"a": "1"})
    refused = await world.refusal(data={"a": "1", "b": "2"})
    assert refused.message.endswith('composited variable "broken" fails to evaluate: no such key: nope')


async def test_conditions_decide_whether_a_policy_is_asked(world: World) -> None:
    await world.validating("false", matchConditions=[{"name": "only", "expression": "object.metadata.name == 'probe'"}])
    await world.create("other")
    await world.refusal()


async def test_a_binding_restricts_where_a_policy_is_in_force(world: World) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "strict"}}
    await world.validating("false", binding={"matchResources": {"namespaceSelector": selector}})
    await world.create()
    await world.client.create(NAMESPACES, {"metadata": {"name": "strict"}})
    with pytest.raises(ApiError, match="denied request"):
        await world.client.create(CONFIG_MAPS, {"metadata": {"name": "x"}}, "strict")


async def test_parameters_are_read_from_the_object_that_a_binding_names(world: World) -> None:
    await world.create("limits", data={"most": "2"})
    ref = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    await world.validating(
        "!has(object.data) || object.data.size() <= int(params.data.most)",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": ref},
        matchConstraints=a_match("configmaps", "CREATE"),
    )
    await world.create(data={"a": "1", "b": "2"})
    await world.refusal("other", data={"a": "1", "b": "2", "c": "3"})
    await world.client.delete(CONFIG_MAPS, "limits", "default")
    refused = await world.refusal("another")
    assert "no params found for policy binding with `Deny` parameterNotFoundAction" in refused.message


async def test_every_selected_parameter_counts(world: World) -> None:
    for at in (1, 3):
        await world.create(f"limits-{at}", metadata={"labels": {"limit": "yes"}}, data={"most": str(at)})
    ref = {"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Allow"}
    await world.validating(
        "!has(object.data) || object.data.size() <= int(params.data.most)",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": ref},
    )
    await world.create(data={"a": "1"})
    await world.refusal("other", data={"a": "1", "b": "2"})


async def test_a_kind_of_parameters_that_is_not_served_is_named(world: World) -> None:
    ref = {"name": "x", "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "x.io/v1", "kind": "Foo"}
    await world.validating("true", paramKind=kind, binding={"paramRef": ref})
    assert (await world.refusal()).message.endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced "
        "by paramKind: 'x.io/v1, Kind=Foo'"
    )


async def test_rights_of_the_writer_can_be_asked_for(world: World) -> None:
    await world.validating(
        "authorizer.group('').resource('secrets').namespace('default').check('list').allowed()",
        "authorizer.requestResource.check('create').allowed() || true",
    )
    assert (await world.post(User("nobody"))).status == 422
    assert (await world.post(User("admin", ("system:masters",)))).status == 201


async def test_policies_themselves_are_never_judged(world: World) -> None:
    await world.validating("false", matchConstraints=a_match("*/*"))
    await world.client.delete(VALIDATING_BINDING, "b")
    await world.client.delete(VALIDATING, "p")
    await world.create()


# Mutating


async def test_an_apply_configuration_is_merged_into_the_object(world: World) -> None:
    await world.mutating(
        applying("Object{metadata: Object.metadata{labels: {'by': object.metadata.name}}, data: {'added': 'yes'}}")
    )
    made = await world.create(metadata={"labels": {"own": "x"}}, data={"kept": "yes"})
    assert made["metadata"]["labels"] == {"own": "x", "by": "probe"}
    assert made["data"] == {"kept": "yes", "added": "yes"}


async def test_lists_are_merged_by_their_keys(world: World) -> None:
    text = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'c', imagePullPolicy: 'Never'}]}}"
    await world.mutating(applying(text), matchConstraints=a_match("pods", "CREATE"))
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]
    pod = await world.client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}}, "default")
    first, second = pod["spec"]["containers"]
    assert (first["image"], first["imagePullPolicy"]) == ("i", "Never")
    assert second["imagePullPolicy"] != "Never"


async def test_a_json_patch_is_applied(world: World) -> None:
    text = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, JSONPatch{op: 'add', path: '/metadata/labels/'"
    text += " + jsonpatch.escapeKey('a.b/c'), value: 'x'}]"
    await world.mutating(patching(text))
    assert (await world.create())["metadata"]["labels"] == {"a.b/c": "x"}


async def test_a_json_patch_whose_test_fails_changes_nothing(world: World) -> None:
    tested = "[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'remove', path: '/data/a'}]"
    await world.mutating(patching(tested))
    assert (await world.create(data={"a": "1"}))["data"] == {"a": "1"}
    assert "data" not in await world.create("other", data={"a": "x"})


async def test_a_json_patch_that_does_not_fit_is_refused(world: World) -> None:
    await world.mutating(patching("[JSONPatch{op: 'remove', path: '/data/a/b'}]"))
    assert "denied request: JSON Patch: " in (await world.refusal()).message


async def test_each_mutation_sees_what_those_before_it_left(world: World) -> None:
    await world.mutating(
        applying("Object{data: {'a': '1'}}"),
        applying("Object{data: {'b': variables.seen}}"),
        variables=[{"name": "seen", "expression": "object.data.?a.orValue('none')"}],
    )
    assert (await world.create())["data"] == {"a": "1", "b": "1"}


async def test_what_a_policy_adds_is_validated(world: World) -> None:
    await world.mutating(applying("Object{data: {'not a key': 'x'}}"))
    assert (await world.refusal()).code == 422


async def test_a_mutation_of_a_field_that_does_not_exist_is_refused(world: World) -> None:
    await world.mutating(applying("Object{nope: 'x'}"))
    refused = await world.refusal()
    assert "policy 'p' with binding 'p' denied request" in refused.message
    assert "nope" in refused.message


async def test_mutations_come_before_validations(world: World) -> None:
    await world.mutating(applying("Object{data: {'a': '1'}}"), name="m")
    await world.validating("object.data.a == '1'")
    await world.create()


async def test_a_policy_is_asked_again_where_a_later_one_changed_the_object(world: World) -> None:
    count = applying("Object{data: {'seen': string(has(object.data) ? object.data.size() : 0)}}")
    await world.mutating(count, name="a", reinvocationPolicy="IfNeeded")
    await world.mutating(applying("Object{data: {'later': 'x'}}"), name="b")
    assert (await world.create())["data"] == {"later": "x", "seen": "2"}
