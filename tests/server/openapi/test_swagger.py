"""OpenAPI v2, as JSON and as protobuf: one document whose references all lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from muster.server.openapi import PROTOBUF_V2, OpenApi, swagger, swagger_protobuf
from muster.server.request import Request, Response
from muster.server.served_kinds import build_registry

PRESERVE, GVK = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-group-version-kind"


async def asked(accept: str = "", etag: str = "") -> Response:
    headers = {"accept": accept, **({"if-none-match": etag} if etag else {})}
    answer = await OpenApi(build_registry()).swagger(Request("GET", "/openapi/v2", {}, headers))
    assert answer is not None
    return answer


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


async def test_every_reference_leads_to_a_definition():
    document = msgspec.json.decode((await asked()).body)
    named = {f"#/definitions/{name}" for name in document["definitions"]}
    assert document["swagger"] == "2.0"
    assert set(references(document)) <= named
    operation = document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"]
    (body,) = [each for each in operation["parameters"] if each["in"] == "body"]
    assert body["schema"] == {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}
    assert all("schema" not in each for each in operation["parameters"] if each["in"] != "body")


async def test_what_has_not_changed_is_not_sent_again():
    etag = (await asked()).headers["ETag"]
    assert (await asked(etag=etag)).status == 304


def test_alternatives_are_said_as_kubernetes_says_them():
    number = {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}
    whole = {"allOf": [{"$ref": "#/components/schemas/X"}], "description": "d"}
    schemas = {"X": {"properties": {"a": number, "b": whole}}}
    made = swagger.swagger([{"components": {"schemas": schemas}, "paths": {}}], "t", "v")
    assert made["definitions"]["X"]["properties"] == {
        "a": {"type": "string", "format": "int-or-string"},
        "b": {"$ref": "#/definitions/X", "description": "d"},
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "object", PRESERVE: True, GVK: [1], "description": "d", "properties": {"a": {}}},
            {"type": "object", GVK: [1]},
        ),
        ({"type": "object", PRESERVE: True, "properties": {"a": {}}}, {PRESERVE: True}),
        ({"type": "array", "items": {"type": "string"}, "nullable": True}, {}),
        ({"type": "array"}, {}),
        ({"type": "string", "allOf": [{"minLength": 1}], "not": {}}, {"type": "string"}),
        ({"x-kubernetes-int-or-string": True, "oneOf": [{}]}, {"x-kubernetes-int-or-string": True}),
        (
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"nullable": True}, "b": {"type": "string"}},
            },
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
        ),
    ],
)
def test_schemas_of_custom_kinds_say_only_what_clients_of_v2_understand(schema: Any, expected: Any):
    document = {"components": {"schemas": {"s": schema}}, "paths": {}}
    assert swagger.swagger([document], "t", "v")["definitions"]["s"] == expected


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message: number, and bytes or a number."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return value, at

    at = 0
    while at < len(data):
        tag, at = varint(at)
        if tag & 7 == 2:
            length, at = varint(at)
            yield tag >> 3, data[at : at + length]
            at += length
        elif tag & 7 == 1:
            yield tag >> 3, data[at : at + 8]
            at += 8
        else:
            value, at = varint(at)
            yield tag >> 3, value


def one(data: bytes, number: int) -> Any:
    (found,) = [value for each, value in fields(data) if each == number]
    return found


async def test_the_protobuf_form_holds_the_same_definitions():
    document = msgspec.json.decode((await asked()).body)
    answer = await asked(PROTOBUF_V2)
    assert answer.content_type == PROTOBUF_V2
    assert one(answer.body, 1) == b"2.0"
    definitions = {one(each, 1).decode(): one(each, 2) for _, each in fields(one(answer.body, 9))}
    assert definitions.keys() == document["definitions"].keys()
    properties = {
        one(each, 1).decode(): one(each, 2) for _, each in fields(one(definitions["io.k8s.api.core.v1.PodSpec"], 25))
    }
    assert properties.keys() == document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"].keys()
    extensions = {one(each, 1).decode() for number, each in fields(properties["containers"]) if number == 31}
    assert "x-kubernetes-patch-merge-key" in extensions
    assert len(list(fields(one(answer.body, 8)))) == len(document["paths"])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, b"\xb2\x01\x08\x0a\x06string"),
        ({"maxLength": 300}, b"\x58\xac\x02"),
        ({"minimum": 1.0}, b"\x49\x00\x00\x00\x00\x00\x00\xf0\x3f"),
        ({"additionalProperties": True}, b"\xaa\x01\x02\x10\x01"),
    ],
)
def test_schemas_are_written_byte_by_byte(schema: Any, expected: bytes):
    document = swagger_protobuf.encode({"definitions": {"X": schema}})
    assert one(one(one(document, 9), 1), 2) == expected
