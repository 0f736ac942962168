"""Decodes Kubernetes' protobuf bodies: the magic `k8s\\0`, a runtime.Unknown envelope, and the object inside.

Driven by the schema tables, so every built-in kind can be read and nothing is generated. The result is the canonical
JSON object, as if the client had sent JSON. The input is hostile until proven otherwise: every read is bounded by the
message that holds it, nesting and the number of messages are limited, and any fault is a 400.
"""

from __future__ import annotations

import binascii
from struct import unpack_from
from typing import Any

import msgspec

from muster.api.errors import bad_request
from muster.server.fields import canonicalise
from muster.server.schema import Field, Message, kind
from muster.server.schema.scalars import from_unix

Obj = dict[str, Any]

MAGIC = b"k8s\x00"
MAX_DEPTH = 64
MAX_MESSAGES = 250_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SCALAR_VARINTS = frozenset({"int32", "int64", "bool"})

# In the schemas of definitions some fields hold one of several things, each under a number of its own.
_SCHEMA_PROPS = "JSONSchemaProps"
_SCHEMA, _SCHEMAS, _FLAG, _NAMES = "schema", "schemas", "flag", "names"
_ALTERNATIVES: dict[str, dict[int, str]] = {
    "items": {1: _SCHEMA, 2: _SCHEMAS},
    "additionalItems": {1: _FLAG, 2: _SCHEMA},
    "additionalProperties": {1: _FLAG, 2: _SCHEMA},
    "dependencies": {1: _SCHEMA, 2: _NAMES},
}


class Malformed(ValueError):
    """The bytes do not follow the wire format."""


def decode(body: bytes, default: tuple[str, str, str] | None = None) -> Obj:
    """The object in a protobuf body. `default` (group, version, kind) stands in where the envelope names no kind."""
    if not body.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        return _object(body[len(MAGIC) :], default)
    except (Malformed, RecursionError) as wrong:
        raise bad_request(f"unable to decode the protobuf body: {wrong}") from None


def _object(envelope: bytes, default: tuple[str, str, str] | None) -> Obj:
    api_version, kind_name, raw, content_type = _envelope(envelope)
    if default is not None:
        api_version = api_version or "/".join(part for part in default[:2] if part)
        kind_name = kind_name or default[2]
    if content_type == "application/json":
        return _json(raw)
    group, _, version = api_version.rpartition("/")
    message = kind(group, version, kind_name)
    if message is None:
        raise bad_request(f'no kind "{kind_name}" is registered for version "{api_version}"')
    found = _Reader(raw).message(0, len(raw), message, 0)
    return {"kind": kind_name, "apiVersion": api_version} | canonicalise(found, message)


def _envelope(data: bytes) -> tuple[str, str, bytes, str]:
    parts: dict[int, bytes] = {}
    for number, wire, value in _Reader(data).entries(0, len(data)):
        if wire == _BYTES:
            parts[number] = data[value[0] : value[1]]
    meta: dict[int, bytes] = {}
    types = parts.get(1, b"")
    for number, wire, value in _Reader(types).entries(0, len(types)):
        if wire == _BYTES:
            meta[number] = types[value[0] : value[1]]
    if parts.get(3):
        raise Malformed(f"content encoding {_text(parts[3])!r} is not supported")
    return _text(meta.get(1, b"")), _text(meta.get(2, b"")), parts.get(2, b""), _text(parts.get(4, b""))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError) as wrong:
        raise Malformed(f"embedded JSON: {wrong}") from None


class _Reader:
    """Reads messages out of one buffer. Positions are absolute; a message never reads past its own end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.messages = 0

    def varint(self, at: int, end: int) -> tuple[int, int]:
        result = shift = 0
        data = self.data
        while at < end:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result & 0xFFFF_FFFF_FFFF_FFFF, at
            shift += 7
            if shift > 63:
                break
        raise Malformed("a varint is cut short or too long")

    def entries(self, at: int, end: int) -> list[tuple[int, int, Any]]:
        """The (number, wire type, value) entries of one message; a length-delimited value is its (start, end)."""
        found: list[tuple[int, int, Any]] = []
        data = self.data
        while at < end:
            key = data[at]
            if key < 0x80:
                at += 1
            else:
                key, at = self.varint(at, end)
            wire = key & 7
            number = key >> 3
            if not number:
                raise Malformed("field number 0")
            if wire == _BYTES:
                # Nearly every length is one byte.
                if at < end and data[at] < 0x80:
                    size = data[at]
                    at += 1
                else:
                    size, at = self.varint(at, end)
                if size > end - at:
                    raise Malformed("a field is longer than the message that holds it")
                found.append((number, wire, (at, at + size)))
                at += size
            elif wire == _VARINT:
                value, at = self.varint(at, end)
                found.append((number, wire, value))
            else:
                width = {_FIXED64: 8, _FIXED32: 4}.get(wire)
                if width is None or width > end - at:
                    raise Malformed(f"wire type {wire} cannot be read")
                value = unpack_from("<d" if width == 8 else "<f", data, at)[0]
                found.append((number, wire, value))
                at += width
        return found

    def message(self, at: int, end: int, message: Message, depth: int) -> Obj:
        self.messages += 1
        if depth > MAX_DEPTH or self.messages > MAX_MESSAGES:
            raise Malformed("the object is nested too deeply or has too many parts")
        out: Obj = {}
        wire_fields = message.wire
        for number, wire, value in self.entries(at, end):
            field = wire_fields.get(number)
            if field is None:
                continue
            if isinstance(field, Message):
                if wire == _BYTES:
                    out.update(self.message(value[0], value[1], field, depth + 1))
            elif field.shape == "list":
                out.setdefault(field.name, []).extend(self._elements(field, wire, value, depth))
            elif field.shape == "map":
                key, item = self._map_entry(field, wire, value, depth, message)
                out.setdefault(field.name, {})[key] = item
            else:
                out[field.name] = self._one(field, wire, value, depth, message)
        return out

    def _elements(self, field: Field, wire: int, value: Any, depth: int) -> list[Any]:
        if field.type in _SCALAR_VARINTS and wire == _BYTES:
            at, end = value
            packed: list[Any] = []
            while at < end:
                item, at = self.varint(at, end)
                packed.append(_number(field.type, item))
            return packed
        return [self._one(field, wire, value, depth)]

    def _map_entry(self, field: Field, wire: int, value: Any, depth: int, owner: Message) -> tuple[str, Any]:
        if wire != _BYTES:
            raise Malformed(f"field {field.name} has wire type {wire}")
        key, item = "", (_BYTES, (0, 0))
        for number, kind_of, part in self.entries(*value):
            if number == 1 and kind_of == _BYTES:
                key = _text(self.data[part[0] : part[1]])
            elif number == 2:
                item = (kind_of, part)
        return key, self._one(field, item[0], item[1], depth, owner)

    def _one(self, field: Field, wire: int, value: Any, depth: int, owner: Message | None = None) -> Any:
        name = field.type
        if name in _SCALAR_VARINTS:
            if wire != _VARINT:
                raise Malformed(f"field {field.name} has wire type {wire}")
            return _number(name, value)
        if name == "double":
            if wire != _FIXED64:
                raise Malformed(f"field {field.name} has wire type {wire}")
            return value
        if wire != _BYTES:
            raise Malformed(f"field {field.name} has wire type {wire}")
        at, end = value
        if name == "string":
            return _text(self.data[at:end])
        message = field.message
        if message is not None:
            return self.message(at, end, message, depth + 1)
        if owner is not None and owner.kind == _SCHEMA_PROPS and field.name in _ALTERNATIVES:
            return self._alternative(_ALTERNATIVES[field.name], value, depth, owner)
        return self._special(name, at, end)

    def _alternative(self, numbers: dict[int, str], span: tuple[int, int], depth: int, schema: Message) -> Any:
        """What is set: a list if it has elements, else the schema, else the flag."""
        found: dict[str, Any] = {_SCHEMAS: [], _NAMES: []}
        for number, wire, value in self.entries(*span):
            form = numbers.get(number)
            if form is None:
                continue
            if wire != (_VARINT if form == _FLAG else _BYTES):
                raise Malformed(f"field {number} has wire type {wire}")
            if form == _FLAG:
                found[_FLAG] = bool(value)
            elif form == _NAMES:
                found[_NAMES].append(_text(self.data[value[0] : value[1]]))
            else:
                inner = self.message(value[0], value[1], schema, depth + 1)
                if form == _SCHEMAS:
                    found[_SCHEMAS].append(inner)
                else:
                    found[_SCHEMA] = inner
        if found[_SCHEMAS] or found[_NAMES]:
            return found[_SCHEMAS] or found[_NAMES]
        if _SCHEMA in found:
            return found[_SCHEMA]
        return found.get(_FLAG, False) if _FLAG in numbers.values() else None

    def _special(self, name: str, at: int, end: int) -> Any:
        if name == "bytes":
            return binascii.b2a_base64(self.data[at:end], newline=False).decode()
        entries = self.entries(at, end)
        if name in ("time", "microtime"):
            return self._time(entries, micro=name == "microtime")
        if name == "strings":
            return [_text(self.data[v[0] : v[1]]) for n, w, v in entries if n == 1 and w == _BYTES]
        if name == "intorstring":
            parts = {number: value for number, wire, value in entries if wire in (_VARINT, _BYTES)}
            if parts.get(1, 0) == 1:
                return self._span(parts.get(3, (0, 0)))
            number = parts.get(2, 0)
            return _number("int32", number) if isinstance(number, int) else 0
        last = next((value for number, wire, value in reversed(entries) if number == 1 and wire == _BYTES), (0, 0))
        if name == "quantity":
            return self._span(last) or "0"
        raw = self.data[last[0] : last[1]]
        if not raw:
            return None
        return _json(raw)

    def _span(self, value: Any) -> str:
        if not isinstance(value, tuple):
            raise Malformed("a string has the wrong wire type")
        return _text(self.data[value[0] : value[1]])

    def _time(self, entries: list[tuple[int, int, Any]], *, micro: bool) -> str | None:
        if not entries:
            return None
        parts = {number: value for number, wire, value in entries if wire == _VARINT}
        try:
            return from_unix(_number("int64", parts.get(1, 0)), _number("int32", parts.get(2, 0)), micro=micro)
        except ValueError as wrong:
            raise Malformed(str(wrong)) from None


def _number(name: str, value: int) -> int | bool:
    if name == "bool":
        return bool(value)
    if name == "int32":
        value &= 0xFFFF_FFFF
        return value - (1 << 32) if value >> 31 else value
    return value - (1 << 64) if value >> 63 else value
