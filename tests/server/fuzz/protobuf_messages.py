"""Protobuf bodies grown from the schema tables: right field numbers, mostly right wire types, then damaged."""

from __future__ import annotations

import random
import struct
from typing import Any

from muster.server.schema import Field, Message

MAGIC = b"k8s\x00"
TEXTS = (b"", b"a", b"victim", b"default", b"1", b"100m", b"Always", b"\xff\xfe", b"x" * 300, b"{}", b"[1,2", b"null")


def varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def part(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(message: Message, api_version: str, rng: random.Random) -> bytes:
    """A whole request body, damaged now and then."""
    types = part(1, api_version.encode()) + part(2, message.kind.encode())
    data = MAGIC + part(1, types) + part(2, part(1, part(1, b"new")) + _message(message, rng, 6))
    for _ in range(rng.choice((0, 0, 0, 0, 1, 3))):
        at = rng.randrange(len(data) + 1)
        data = rng.choice((data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :], data[:at], data + data[at:]))
    return data


def _message(message: Message, rng: random.Random, depth: int) -> bytes:
    out = b""
    entries = list(message.wire.items())
    many = min(1.0, 4 / max(len(entries), 1))
    for number, entry in entries:
        if number and rng.random() < many:
            for _ in range(rng.choice((1, 1, 2))):
                out += _entry(number, entry, rng, depth)
    return out


def _entry(number: int, entry: Field | Message, rng: random.Random, depth: int) -> bytes:
    if rng.random() < 0.002:
        wire = rng.randrange(8)
        return varint(number << 3 | wire) + rng.randbytes(rng.randrange(9))
    if isinstance(entry, Message):
        return part(number, _message(entry, rng, depth - 1) if depth else b"")
    if entry.shape == "map":
        key = part(1, rng.choice(TEXTS))
        return part(number, key + _one(2, entry, rng, depth))
    return _one(number, entry, rng, depth)


def _one(number: int, field: Field, rng: random.Random, depth: int) -> bytes:
    if field.message is not None:
        return part(number, _message(field.message, rng, depth - 1) if depth else b"")
    match field.type:
        case "int32" | "int64" | "bool":
            return varint(number << 3) + varint(rng.choice((0, 1, 1, 2, 3, 80, -1, 2**31, 2**64 - 1)))
        case "double":
            return varint(number << 3 | 1) + struct.pack(
                "<d", rng.choice((0.0, 1.5, float("nan"), float("inf"), -1e308))
            )
        case "time" | "microtime":
            inner: Any = varint(1 << 3) + varint(
                rng.choice((0, 1_800_000_000, 1_700_000_000, 2**40, -1, 2**62)[: rng.choice((3, 3, 6))])
            )
            return part(number, inner + varint(2 << 3) + varint(rng.choice((0, 0, 999, 999, -1))))
        case "intorstring":
            chosen = rng.choice((0, 1, 7))
            return part(number, varint(1 << 3) + varint(chosen) + varint(2 << 3) + varint(5) + part(3, b"50%"))
        case "quantity":
            return part(number, part(1, rng.choice((b"1", b"100m", b"2Gi", b"0", b"1", b"x"))))
        case "raw":
            return part(number, part(1, rng.choice((b"{}", b'{"a":1}', b"null", b"[1,2"))))
        case "strings":
            return part(number, part(1, rng.choice(TEXTS)))
        case _:
            return part(number, rng.choice(TEXTS))
