"""Good and bad definitions and objects, for comparison with a real kube-apiserver."""

from __future__ import annotations

from typing import Any

from tests.server.custom_resources.custom_api import Obj, a_version

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
PRESERVE = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"


def of_spec(spec: Obj, **more: Any) -> list[Obj]:
    """One version whose spec has this schema."""
    version = a_version(**more)
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    return [version]


def of_field(schema: Obj, **more: Any) -> list[Obj]:
    """One version whose spec has one field `f`."""
    return of_spec({"type": "object", "properties": {"f": schema}}, **more)


def of_root(**schema: Any) -> list[Obj]:
    version = a_version()
    version["schema"]["openAPIV3Schema"].update(schema)
    return [version]


MAP_LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": STRING, "n": INTEGER}},
}

# Definitions: the versions, and other parts of the spec.
DEFINITIONS: dict[str, tuple[list[Obj], Obj]] = {
    "plain": ([a_version()], {}),
    "no type": (of_field({}), {}),
    "unknown type": (of_field({"type": "text"}), {}),
    "array without items": (of_field({"type": "array"}), {}),
    "items as a list": (of_field({"type": "array", "items": [STRING]}), {}),
    "unique items": (of_field({"type": "array", "items": STRING, "uniqueItems": True}), {}),
    "both kinds of properties": (
        of_field({"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING}),
        {},
    ),
    "additional properties at the root": (of_root(additionalProperties=STRING), {}),
    "type below anyOf": (of_field({"anyOf": [{"type": "string"}, {"minimum": 1}], "type": "integer"}), {}),
    "default below oneOf": (of_field({"type": "string", "oneOf": [{"default": "x"}]}), {}),
    "int or string": (
        of_field({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        {},
    ),
    "int or string that preserves": (of_field({"x-kubernetes-int-or-string": True, PRESERVE: True}), {}),
    "undeclared in allOf": (of_root(allOf=[{"properties": {"other": {"required": ["a"]}}}]), {}),
    "bad pattern": (of_field({"type": "string", "pattern": "("}), {}),
    "nullable root": (of_root(nullable=True), {}),
    "wrong default": (of_field({"type": "integer", "default": "x"}), {}),
    "default with an unknown field": (
        of_field({"type": "object", "properties": {"a": STRING}, "default": {"b": 1}}),
        {},
    ),
    "preserve is false": (of_field({"type": "object", PRESERVE: False}), {}),
    "embedded string": (of_field({"type": "string", "x-kubernetes-embedded-resource": True}), {}),
    "embedded without fields": (of_field({"type": "object", "x-kubernetes-embedded-resource": True}), {}),
    "list type of an object": (of_field({"type": "object", "x-kubernetes-list-type": "set"}), {}),
    "unknown list type": (of_field({"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"}), {}),
    "map list": (of_field(MAP_LIST), {}),
    "map list without keys": (of_field({**MAP_LIST, "x-kubernetes-list-map-keys": []}), {}),
    "map list with another key": (of_field({**MAP_LIST, "x-kubernetes-list-map-keys": ["other"]}), {}),
    "map list with an optional key": (
        of_field({**MAP_LIST, "items": {"type": "object", "properties": {"name": STRING}}}),
        {},
    ),
    "set of objects": (
        of_field({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", PRESERVE: True}}),
        {},
    ),
    "unknown map type": (of_field({"type": "object", "x-kubernetes-map-type": "loose"}), {}),
    "reference": (of_field({"$ref": "#/x", "type": "string"}), {}),
    "metadata with labels": (
        of_root(properties={"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}),
        {},
    ),
    "no schema": ([{"name": "v1", "served": True, "storage": True}], {}),
    "two storage versions": ([a_version("v1"), a_version("v2", {"a": STRING})], {}),
    "no storage version": ([a_version(storage=False)], {}),
    "the same version twice": ([a_version(), a_version(storage=False, spec={"a": STRING})], {}),
    "bad version": ([a_version("V_1")], {}),
    "bad scope": ([a_version()], {"scope": "Planet"}),
    "bad names": ([a_version()], {"names": {"plural": "widgets", "kind": "Wid get", "shortNames": ["W"]}}),
    "list kind is the kind": ([a_version()], {"names": {"plural": "widgets", "kind": "Widget", "listKind": "Widget"}}),
    "preserve unknown fields": ([a_version()], {"preserveUnknownFields": True}),
    "unknown strategy": ([a_version()], {"conversion": {"strategy": "Magic"}}),
    "webhook without one": ([a_version()], {"conversion": {"strategy": "Webhook"}}),
    "column without a dot": (
        [a_version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": "spec"}])],
        {},
    ),
    "scale outside of spec": (
        [a_version(subresources={"scale": {"specReplicasPath": ".a.b", "statusReplicasPath": "x"}})],
        {},
    ),
    "selectable object": ([a_version(selectableFields=[{"jsonPath": ".spec"}])], {}),
    "selectable nothing": ([a_version(selectableFields=[{"jsonPath": ".spec.none"}])], {}),
    "warning without deprecation": ([a_version(deprecationWarning="old")], {}),
    "rule": (of_field({**INTEGER, RULES: [{"rule": "self > 0"}]}), {}),
    "rule about nothing": (of_field({**INTEGER, RULES: [{"rule": ""}]}), {}),
    "rule with a bad reason": (of_field({**INTEGER, RULES: [{"rule": "self > 0", "reason": "Because"}]}), {}),
    "rule that costs too much": (
        of_field(
            {
                "type": "array",
                "items": STRING,
                RULES: [{"rule": "self.all(a, self.all(b, self.all(c, a == b || b == c)))"}],
            }
        ),
        {},
    ),
    "oldSelf in an atomic list": (
        of_field({"type": "array", "items": {**STRING, RULES: [{"rule": "self == oldSelf"}]}}),
        {},
    ),
}

# The schema of a field `f`, and values for it.
OBJECTS: dict[str, tuple[Obj, list[Any]]] = {
    "string": (
        {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a"},
        ["ab", "a", "abcde", "bc", 1, None],
    ),
    "integer": ({"type": "integer", "minimum": 1, "maximum": 5}, [1, 0, 6, 1.5, 2.0, "1", True]),
    "exclusive": (
        {"type": "number", "minimum": 1, "exclusiveMinimum": True, "maximum": 2, "exclusiveMaximum": True},
        [1.5, 1, 2],
    ),
    "small": ({"type": "integer", "format": "int32"}, [2**31, -(2**31) - 1, 2**40]),
    "multiple": ({"type": "number", "multipleOf": 0.5}, [1.5, 0.3]),
    "enum": ({"type": "string", "enum": ["a", "b"]}, ["a", "c"]),
    "numbers": ({"type": "integer", "enum": [1, 2]}, [1, 3]),
    "nullable": ({"type": "string", "nullable": True}, [None, "x", 1]),
    "boolean": ({"type": "boolean"}, [True, "true", 0]),
    "list": ({"type": "array", "minItems": 1, "maxItems": 2, "items": INTEGER}, [[1], [], [1, 2, 3], ["a"], {}]),
    "set": ({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, [["a"], ["a", "a", "a"]]),
    "map list": (MAP_LIST, [[{"name": "a"}], [{"name": "a"}, {"name": "a"}], [{"n": 1}]]),
    "object": (
        {"type": "object", "required": ["a"], "properties": {"a": STRING, "b": {"type": "object", "required": ["c"]}}},
        [{"a": "x"}, {}, {"b": {}}, {"a": "x", "z": 1}, "x"],
    ),
    "map": (
        {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": INTEGER},
        [{"a": 1}, {}, {"a": 1, "b": 2, "c": 3}, {"a": "x"}],
    ),
    "one of": (
        {
            "type": "object",
            "properties": {"a": STRING, "b": STRING},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        [{"a": "x"}, {}, {"a": "x", "b": "y"}],
    ),
    "any of": ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, [6, 0, 3]),
    "all of": ({"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 9}]}, [6, 0, 12]),
    "not": ({"type": "string", "not": {"enum": ["x"]}}, ["y", "x"]),
    "int or string": ({"x-kubernetes-int-or-string": True}, [1, "a", True, 1.5]),
    "default": ({"type": "object", "default": {}, "properties": {"a": {"type": "integer", "default": 7}}}, [{}, None]),
    "date": ({"type": "string", "format": "date-time"}, ["2026-01-01T00:00:00Z", "yesterday", "2026-13-01T00:00:00Z"]),
    "address": ({"type": "string", "format": "ipv4"}, ["1.2.3.4", "1.2.3"]),
    "id": ({"type": "string", "format": "uuid"}, ["8f14e45f-ceea-467f-a1f4-000000000000", "x"]),
    "unknown format": ({"type": "string", "format": "shoe-size"}, ["x"]),
    "bytes": ({"type": "string", "format": "byte"}, ["YQ==", "%"]),
    "embedded": (
        {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True},
        [{"apiVersion": "v1", "kind": "Pod", "spec": {"x": 1}}, {"kind": "Pod"}, {"apiVersion": "", "kind": "a b"}],
    ),
    "preserved": (
        {"type": "object", PRESERVE: True, "properties": {"a": {"type": "object", "properties": {"b": STRING}}}},
        [{"x": {"y": 1}, "a": {"b": "c", "d": "e"}}],
    ),
    "rule": ({"type": "integer", RULES: [{"rule": "self > 3", "message": "too little"}]}, [4, 2]),
    "rule without words": ({"type": "integer", RULES: [{"rule": "self > 3"}]}, [2]),
    "rule with words": (
        {
            "type": "object",
            "properties": {"a": INTEGER},
            RULES: [
                {
                    "rule": "self.a > 3",
                    "messageExpression": "self.a > 0 ? 'a is small' : 'a is nothing'",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".a",
                }
            ],
        },
        [{"a": 4}, {"a": 1}, {}],
    ),
    "rule behind a wrong type": ({"type": "integer", RULES: [{"rule": "self > 3"}]}, ["x"]),
}
