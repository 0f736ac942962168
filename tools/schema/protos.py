"""Reads a Kubernetes `generated.proto`: which number and type each field of a message has.

These files are flat (no nested messages, enums or oneofs), which keeps the reader small.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_MESSAGE = re.compile(r"^message (\w+) \{$")
_FIELD = re.compile(r"^\s+(optional|repeated|required) ([\w.]+) (\w+) = (\d+);")
_MAP = re.compile(r"^\s+map<string, ?([\w.]+)> (\w+) = (\d+);")
_PACKAGE = re.compile(r"^package ([\w.]+);")


@dataclass(frozen=True)
class ProtoField:
    name: str
    number: int
    type: str  # a scalar's name, or a message's name with its package
    shape: str  # "", "[" for repeated, "{" for a map with string keys


def read(path: Path) -> dict[str, dict[int, ProtoField]]:
    """The messages of one file, each with its fields by number."""
    messages: dict[str, dict[int, ProtoField]] = {}
    package = ""
    current: dict[int, ProtoField] | None = None
    for line in path.read_text().splitlines():
        if line.strip().startswith("//"):
            continue
        if found := _PACKAGE.match(line):
            package = found[1]
        elif found := _MESSAGE.match(line):
            current = messages.setdefault(found[1], {})
        elif current is None:
            continue
        elif line == "}":
            current = None
        elif found := _MAP.match(line):
            current[int(found[3])] = ProtoField(found[2], int(found[3]), _absolute(found[1], package), "{")
        elif found := _FIELD.match(line):
            shape = "[" if found[1] == "repeated" else ""
            current[int(found[4])] = ProtoField(found[3], int(found[4]), _absolute(found[2], package), shape)
    return messages


def _absolute(name: str, package: str) -> str:
    if name.startswith("."):
        return name[1:]
    return name if name[0].islower() and "." not in name else f"{package}.{name}"
