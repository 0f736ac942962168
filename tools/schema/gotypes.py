"""Reads the struct declarations of a gofmt'd Kubernetes `types.go`: JSON tags, patch tags and `+marker` comments.

Only what gofmt guarantees is relied on: one field a line, tags in back quotes, declarations at column 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_STRUCT = re.compile(r"^type (\w+) struct \{$")
_EMPTY = re.compile(r"^type (\w+) struct\{\}$")
_SLICE = re.compile(r"^type (\w+) \[\]string$")
_TAGGED = re.compile(r"^\t(?:(\w+) )?\s*([\w.*\[\]]+)\s+`(.*)`")
_TAG = re.compile(r'(\w+):"([^"]*)"')
_MARKER = re.compile(r"^\s*//\s*\+(\w+)(?:=(.*?))?\s*$")


@dataclass
class GoField:
    """One tagged field of a struct."""

    name: str
    type: str
    json_name: str
    options: frozenset[str]  # of the JSON tag: inline, omitempty, omitzero
    number: int  # 0 where the field has no protobuf tag
    tags: dict[str, str]
    markers: dict[str, list[str]]

    @property
    def pointer(self) -> bool:
        return self.type.startswith("*")


@dataclass
class GoStruct:
    name: str
    markers: dict[str, list[str]]
    fields: list[GoField] = field(default_factory=list)


@dataclass
class GoPackage:
    structs: dict[str, GoStruct] = field(default_factory=dict)
    string_slices: set[str] = field(default_factory=set)


def read(files: Iterable[Path]) -> GoPackage:
    """Every struct that the files declare."""
    package = GoPackage()
    for path in sorted(files):
        _read_file(path.read_text(), package)
    return package


def _read_file(text: str, package: GoPackage) -> None:
    markers: dict[str, list[str]] = {}
    current: GoStruct | None = None
    for line in text.splitlines():
        if found := _MARKER.match(line):
            markers.setdefault(found[1], []).append(found[2] or "")
            continue
        if line.strip().startswith("//"):
            continue
        if current is None:
            if found := _STRUCT.match(line):
                current = GoStruct(found[1], markers)
                package.structs[current.name] = current
            elif found := _EMPTY.match(line):
                package.structs[found[1]] = GoStruct(found[1], markers)
            elif found := _SLICE.match(line):
                package.string_slices.add(found[1])
            # A blank line keeps the markers: generators also read the comment block above a type's own comment.
            if line:
                markers = {}
        elif line == "}":
            current, markers = None, {}
        elif found := _TAGGED.match(line):
            current.fields.append(_field(found[1] or "", found[2], found[3], markers))
            markers = {}
        elif line.strip():
            markers = {}


def _field(name: str, go_type: str, tag: str, markers: dict[str, list[str]]) -> GoField:
    tags = dict(_TAG.findall(tag))
    json_name, _, options = tags.get("json", "").partition(",")
    number = tags.get("protobuf", "").split(",")
    return GoField(
        name=name or go_type.rpartition(".")[2],
        type=go_type,
        json_name=json_name,
        options=frozenset(options.split(",")) | ({"inline"} if not json_name else frozenset()),
        number=int(number[1]) if len(number) > 1 else 0,
        tags=tags,
        markers=markers,
    )


def literal_default(markers: dict[str, list[str]]) -> Any:
    """The `+default` of a field when it is written as JSON (and not an empty object); None otherwise."""
    for text in markers.get("default", []):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, str | int | float | bool) or value:
            return value
    return None
