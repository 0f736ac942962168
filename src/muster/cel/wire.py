"""The wire format of protobuf, as far as parsed expressions need it: numbered fields of varints and byte strings."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes


def fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """(number, wire type, value) of every field of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, form = tag >> 3, tag & 7
        if form == VARINT:
            value, at = _varint(data, at)
            yield number, form, value
        elif form == BYTES:
            length, at = _varint(data, at)
            yield number, form, data[at : at + length]
            at += length
        else:
            length = 8 if form == FIXED64 else 4
            yield number, form, data[at : at + length]
            at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def varint(value: int) -> bytes:
    """A number in as few bytes as it needs."""
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3 | VARINT) + varint(value)


def block(field: int, data: bytes) -> bytes:
    """A field of bytes, a string or a message."""
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def raw(field: int, form: int, value: Value) -> bytes:
    """A field as `fields` gave it."""
    if isinstance(value, int):
        return number(field, value)
    return block(field, value) if form == BYTES else varint(field << 3 | form) + value


def signed(value: int) -> int:
    """A varint as the 64-bit number with a sign that it stands for."""
    return value - (1 << 64) if value >= 1 << 63 else value
