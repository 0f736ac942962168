"""What is refused in a definition, and what is wrong with values, in the words that clients know from Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.core.core_api import Api
from tests.server.custom_resources.cases import MAP_LIST, PRESERVE, RULES, of_field, of_root
from tests.server.custom_resources.custom_api import (
    DEFINITIONS,
    Obj,
    a_definition,
    a_version,
    a_widget,
    defined,
    errors,
    widgets,
)

FIELD = "spec.validation.openAPIV3Schema.properties[spec].properties[f]"


@pytest.mark.parametrize(
    ("versions", "field", "words"),
    [
        (of_field({}), f"{FIELD}.type", "Required value: must not be empty for specified object fields"),
        (of_field({"type": "array"}), f"{FIELD}.items", "Required value: must be specified"),
        (
            of_field({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
            f"{FIELD}.uniqueItems",
            "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            of_field({"type": "integer", "anyOf": [{"type": "string"}]}),
            f"{FIELD}.anyOf[0].type",
            "Forbidden: must be empty to be structural",
        ),
        (
            of_root(allOf=[{"properties": {"other": {"required": ["a"]}}}]),
            "spec.validation.openAPIV3Schema.properties[other]",
            "Required value: because it is defined in spec.validation.openAPIV3Schema.allOf[0].properties[other]",
        ),
        (
            of_field({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            f"{FIELD}.default",
            'Invalid value: {"b":1}: must not have unknown fields',
        ),
        (
            of_field({**MAP_LIST, "x-kubernetes-list-map-keys": []}),
            f"{FIELD}.x-kubernetes-list-map-keys",
            "Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            of_field({"type": "integer", RULES: [{"rule": "self.foo > 1"}]}),
            f"{FIELD}.x-kubernetes-validations[0].rule",
            "compilation failed: ERROR: <input>:1:5:",
        ),
        (
            of_field({"type": "integer", RULES: [{"rule": "self + 1"}]}),
            f"{FIELD}.x-kubernetes-validations[0].rule",
            "cel expression must evaluate to a bool",
        ),
        ([a_version("V1")], "spec.versions[0].name", "a DNS-1035 label must consist of"),
        ([a_version(storage=False)], "spec.versions", "must have exactly one version marked as storage version"),
    ],
)
async def test_a_bad_definition_is_refused_with_the_field(versions: list[Obj], field: str, words: str) -> None:
    answer = await (await Api().start()).post(DEFINITIONS, a_definition(*versions))

    assert words in errors(answer)[field]


async def test_the_name_of_a_definition_follows_from_its_spec() -> None:
    definition = a_definition()
    definition["metadata"]["name"] = "gadgets.example.com"

    answer = await (await Api().start()).post(DEFINITIONS, definition)

    assert 'must be spec.names.plural+"."+spec.group' in errors(answer)["metadata.name"]


async def test_what_is_established_keeps_its_scope_and_kind() -> None:
    api = await defined()
    definition = (await api.get(f"{DEFINITIONS}/widgets.example.com")).body
    definition["spec"]["scope"] = "Cluster"
    definition["spec"]["names"]["kind"] = "Gadget"

    answer = await api.put(f"{DEFINITIONS}/widgets.example.com", definition)

    assert errors(answer).keys() == {"spec.scope", "spec.names.kind"}


async def test_a_version_that_objects_were_stored_in_cannot_be_removed() -> None:
    api = await defined(a_version("v1"))
    definition = (await api.get(f"{DEFINITIONS}/widgets.example.com")).body
    definition["spec"]["versions"] = [a_version("v2", {"a": {"type": "string"}})]

    answer = await api.put(f"{DEFINITIONS}/widgets.example.com", definition)

    assert "v1 was previously a storage version" in errors(answer)["status.storedVersions[0]"]


async def test_a_group_of_kubernetes_needs_its_approval() -> None:
    definition = a_definition()
    definition["spec"]["group"] = "widgets.k8s.io"
    definition["metadata"]["name"] = "widgets.widgets.k8s.io"

    answer = await (await Api().start()).post(DEFINITIONS, definition)

    assert "metadata.annotations[api-approved.kubernetes.io]" in errors(answer)


@pytest.mark.parametrize("schema", [{"type": "array", "items": 5}, {"type": "object", "additionalProperties": "x"}])
async def test_a_schema_that_is_none_is_a_bad_request(schema: Any) -> None:
    answer = await (await Api().start()).post(DEFINITIONS, a_definition(*of_field(schema)))

    assert answer.code == 400


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": "string", "maxLength": 2}, "abc", "Too long: may not be more than 2 bytes"),
        ({"type": "string", "pattern": "^(?i)a+$"}, "b", "spec.f in body should match '^(?i)a+$'"),
        ({"type": "integer", "maximum": 3}, 4, "spec.f in body should be less than or equal to 3"),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'Unsupported value: "c": supported values: "a", "b"'),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, ["a", "b"], "Too many: 2: must have at most 1"),
        ({"type": "string", "format": "date-time"}, "x", 'spec.f in body must be of type date-time: "x"'),
        ({"x-kubernetes-int-or-string": True}, True, 'must be of type integer,string: "boolean"'),
        ({"type": "integer", "multipleOf": 5}, 7, "spec.f in body should be a multiple of 5"),
        (
            {"type": "integer", RULES: [{"rule": "self > 3", "message": "too little"}]},
            1,
            "Invalid value: 1: too little",
        ),
        ({"type": "integer", RULES: [{"rule": "10 / self > 0"}]}, 0, "division by zero evaluating rule: 10 / self > 0"),
    ],
)
async def test_a_bad_value_is_refused_with_the_field(schema: Obj, value: Any, words: str) -> None:
    api = await defined(*of_field(schema))

    assert words in errors(await api.post(widgets(), a_widget(spec={"f": value})))["spec.f"]


async def test_a_hostile_pattern_takes_no_time() -> None:
    api = await defined(*of_field({"type": "string", "pattern": "^(a+)+$"}))

    answer = await api.post(widgets(), a_widget(spec={"f": "a" * 50_000 + "!"}))

    assert answer.code == 422


async def test_elements_that_come_twice_are_refused() -> None:
    api = await defined(*of_field(MAP_LIST))

    answer = await api.post(widgets(), a_widget(spec={"f": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}))

    assert errors(answer) == {"spec.f[2]": 'Duplicate value: {"name":"a"}'}


async def test_what_was_stored_before_a_schema_became_stricter_can_stay() -> None:
    version = of_field({"type": "string"})[0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["g"] = {"type": "string"}
    api = await defined(version)
    await api.post(widgets(), a_widget(spec={"f": "long", "g": "x"}))
    definition = (await api.get(f"{DEFINITIONS}/widgets.example.com")).body
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    schema["f"] = {"type": "string", "maxLength": 2, RULES: [{"rule": "self != 'long'"}]}
    assert (await api.put(f"{DEFINITIONS}/widgets.example.com", definition)).code == 200

    assert (await api.merge(f"{widgets()}/w", {"spec": {"g": "y"}})).code == 200
    assert (await api.merge(f"{widgets()}/w", {"spec": {"f": "other"}})).code == 422


async def test_a_rule_about_a_change_knows_elements_by_their_keys() -> None:
    parts = {**MAP_LIST, "maxItems": 5}
    parts["items"] = {
        **MAP_LIST["items"],
        RULES: [{"rule": "self.n >= oldSelf.n", "message": "may only grow"}],
    }
    parts["items"]["properties"] = {"name": {"type": "string", "maxLength": 9}, "n": {"type": "integer", "default": 0}}
    api = await defined(*of_field(parts))
    await api.post(widgets(), a_widget(spec={"f": [{"name": "a", "n": 1}, {"name": "b", "n": 5}]}))

    moved = await api.merge(f"{widgets()}/w", {"spec": {"f": [{"name": "b", "n": 5}, {"name": "a", "n": 2}]}})
    less = await api.merge(f"{widgets()}/w", {"spec": {"f": [{"name": "b", "n": 4}, {"name": "a", "n": 2}]}})

    assert moved.code == 200, moved.text
    assert errors(less) == {"spec.f[0]": "Invalid value: may only grow"}


async def test_an_optional_old_value_lets_a_rule_judge_creations() -> None:
    rule = {"rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": True, "message": "starts at 0"}
    api = await defined(*of_field({"type": "integer", RULES: [rule]}))

    assert errors(await api.post(widgets(), a_widget(spec={"f": 3}))) == {"spec.f": "Invalid value: 3: starts at 0"}
    assert (await api.post(widgets(), a_widget(spec={"f": 0}))).code == 201
    assert (await api.merge(f"{widgets()}/w", {"spec": {"f": 3}})).code == 200


async def test_fields_of_objects_that_preserve_them_stay_and_others_go() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}}
    api = await defined(*of_field({"type": "object", PRESERVE: True, "properties": {"a": inner}}))

    made = await api.post(widgets(), a_widget(spec={"f": {"x": {"y": [1]}, "a": {"b": "c", "d": "e"}}}))

    assert made.body["spec"]["f"] == {"x": {"y": [1]}, "a": {"b": "c"}}


async def test_an_embedded_resource_keeps_its_head() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    api = await defined(*of_field(embedded))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "other": 1}

    made = await api.post(widgets(), a_widget(spec={"f": pod}))
    headless = await api.post(widgets(), a_widget("x", spec={"f": {"spec": {}}}))

    assert made.body["spec"]["f"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert errors(headless).keys() == {"spec.f.apiVersion", "spec.f.kind"}
