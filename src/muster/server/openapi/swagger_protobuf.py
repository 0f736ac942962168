"""OpenAPI v2 documents as protobuf, in the messages of gnostic's OpenAPIv2, which client-go reads.

Each message is a table from the JSON key to the field's number and how its value is written.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

Item = dict[str, Any]
Write = Callable[[Any], list[bytes]]  # a value -> the bodies of the field, one for each time it is written
Table = Mapping[str, tuple[int, Write, int]]  # JSON key -> number, writer, wire type

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encode(document: Item) -> bytes:
    """A v2 document."""
    return _message(_DOCUMENT, document)


def _message(table: Table, value: Item, extension: int = 0) -> bytes:
    found: list[bytes] = []
    for key, each in value.items():
        known = table.get(key)
        if known is not None:
            number, write, wire = known
            found += [_field(number, body, wire) for body in write(each)]
        elif extension and key.startswith("x-"):
            found.append(_field(extension, _named(key, _any(each))))
    return b"".join(found)


def _field(number: int, body: bytes, wire: int = _BYTES) -> bytes:
    tag = _varint(number << 3 | wire)
    return tag + body if wire != _BYTES else tag + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _named(name: str, body: bytes) -> bytes:
    return _field(1, name.encode()) + _field(2, body)


def _any(value: Any) -> bytes:
    """A value of any kind, as the YAML (here JSON) of it."""
    return _field(2, (json.dumps(value) + "\n").encode())


# --- how values are written ------------------------------------------------------------------------


def _text(value: Any) -> list[bytes]:
    return [str(value).encode()]


def _texts(value: Any) -> list[bytes]:
    return [str(each).encode() for each in value]


def _number(value: Any) -> list[bytes]:
    return [struct.pack("<d", float(value))]


def _integer(value: Any) -> list[bytes]:
    return [_varint(int(value))]


def _value(value: Any) -> list[bytes]:
    return [_any(value)]


def _values(value: Any) -> list[bytes]:
    return [_any(each) for each in value]


def _schema(value: Any) -> list[bytes]:
    return [_message(_SCHEMA, value, 31)]


def _schemas(value: Any) -> list[bytes]:
    return [_message(_SCHEMA, each, 31) for each in value]


def _named_schemas(value: Any) -> list[bytes]:
    named = (_field(1, _named(name, _message(_SCHEMA, each, 31))) for name, each in value.items())
    return [b"".join(named)]


def _types(value: Any) -> list[bytes]:
    names = value if isinstance(value, list) else [value]
    return [b"".join(_field(1, str(each).encode()) for each in names)]


def _items(value: Any) -> list[bytes]:
    return [_field(1, _message(_SCHEMA, value, 31))]


def _additional(value: Any) -> list[bytes]:
    return [_field(2, _varint(int(value)), _VARINT)] if isinstance(value, bool) else _items(value)


def _info(value: Any) -> list[bytes]:
    return [_message({"title": (1, _text, _BYTES), "version": (2, _text, _BYTES)}, value)]


def _paths(value: Any) -> list[bytes]:
    return [b"".join(_field(2, _named(path, _message(_PATH_ITEM, item, 10))) for path, item in value.items())]


def _operation(value: Any) -> list[bytes]:
    return [_message(_OPERATION, value, 13)]


def _parameters(value: Any) -> list[bytes]:
    return [_field(1, _parameter(each)) for each in value]


def _parameter(parameter: Item) -> bytes:
    if parameter.get("in") == "body":
        return _field(1, _message(_BODY_PARAMETER, parameter, 6))
    number, table = (4, _PATH_PARAMETER) if parameter.get("in") == "path" else (3, _QUERY_PARAMETER)
    return _field(2, _field(number, _message(table, parameter)))


def _responses(value: Any) -> list[bytes]:
    found: list[bytes] = []
    for code, response in value.items():
        body = _field(1, str(response.get("description") or "").encode())
        if response.get("schema") is not None:
            body += _field(2, _field(1, _message(_SCHEMA, response["schema"], 31)))
        found.append(_field(1, _named(code, _field(1, body))))
    return [b"".join(found)]


def _security(value: Any) -> list[bytes]:
    return [b"".join(_field(1, _named(name, b"")) for name in each) for each in value]


def _security_definitions(value: Any) -> list[bytes]:
    keys = {"type": 1, "name": 2, "in": 3, "description": 4}
    found: list[bytes] = []
    for name, each in value.items():
        key = b"".join(_field(number, str(each[field]).encode()) for field, number in keys.items() if field in each)
        found.append(_field(1, _named(name, _field(2, key))))
    return [b"".join(found)]


_SCHEMA: Table = {
    "$ref": (1, _text, _BYTES),
    "format": (2, _text, _BYTES),
    "title": (3, _text, _BYTES),
    "description": (4, _text, _BYTES),
    "default": (5, _value, _BYTES),
    "multipleOf": (6, _number, _FIXED64),
    "maximum": (7, _number, _FIXED64),
    "exclusiveMaximum": (8, _integer, _VARINT),
    "minimum": (9, _number, _FIXED64),
    "exclusiveMinimum": (10, _integer, _VARINT),
    "maxLength": (11, _integer, _VARINT),
    "minLength": (12, _integer, _VARINT),
    "pattern": (13, _text, _BYTES),
    "maxItems": (14, _integer, _VARINT),
    "minItems": (15, _integer, _VARINT),
    "uniqueItems": (16, _integer, _VARINT),
    "maxProperties": (17, _integer, _VARINT),
    "minProperties": (18, _integer, _VARINT),
    "required": (19, _texts, _BYTES),
    "enum": (20, _values, _BYTES),
    "additionalProperties": (21, _additional, _BYTES),
    "type": (22, _types, _BYTES),
    "items": (23, _items, _BYTES),
    "allOf": (24, _schemas, _BYTES),
    "properties": (25, _named_schemas, _BYTES),
    "example": (30, _value, _BYTES),
}
_BODY_PARAMETER: Table = {
    "description": (1, _text, _BYTES),
    "name": (2, _text, _BYTES),
    "in": (3, _text, _BYTES),
    "required": (4, _integer, _VARINT),
    "schema": (5, _schema, _BYTES),
}
_QUERY_PARAMETER: Table = {
    "required": (1, _integer, _VARINT),
    "in": (2, _text, _BYTES),
    "description": (3, _text, _BYTES),
    "name": (4, _text, _BYTES),
    "type": (6, _text, _BYTES),
    "uniqueItems": (20, _integer, _VARINT),
}
_PATH_PARAMETER: Table = {
    "required": (1, _integer, _VARINT),
    "in": (2, _text, _BYTES),
    "description": (3, _text, _BYTES),
    "name": (4, _text, _BYTES),
    "type": (5, _text, _BYTES),
    "uniqueItems": (19, _integer, _VARINT),
}
_OPERATION: Table = {
    "tags": (1, _texts, _BYTES),
    "description": (3, _text, _BYTES),
    "operationId": (5, _text, _BYTES),
    "produces": (6, _texts, _BYTES),
    "consumes": (7, _texts, _BYTES),
    "parameters": (8, _parameters, _BYTES),
    "responses": (9, _responses, _BYTES),
}
_PATH_ITEM: Table = {
    "get": (2, _operation, _BYTES),
    "put": (3, _operation, _BYTES),
    "post": (4, _operation, _BYTES),
    "delete": (5, _operation, _BYTES),
    "options": (6, _operation, _BYTES),
    "head": (7, _operation, _BYTES),
    "patch": (8, _operation, _BYTES),
    "parameters": (9, _parameters, _BYTES),
}
_DOCUMENT: Table = {
    "swagger": (1, _text, _BYTES),
    "info": (2, _info, _BYTES),
    "paths": (8, _paths, _BYTES),
    "definitions": (9, _named_schemas, _BYTES),
    "security": (12, _security, _BYTES),
    "securityDefinitions": (13, _security_definitions, _BYTES),
}
