"""The columns that `kubectl get` shows of a custom kind, and the fields that can be selected by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from muster.server.custom_resources import json_path
from muster.server.resources.columns import AGE, NAME, duration, epoch
from muster.server.resources.kind import Column, Obj, RelatedCounts

_DESCRIPTION = "Custom resource definition column (in JSONPath format):"


def columns(version: Obj) -> tuple[Column, ...]:
    """The columns of one version of a definition; name and age where it lists none."""
    given: list[Obj] = version.get("additionalPrinterColumns") or []
    if not given:
        return (NAME, AGE)
    return (NAME, *[_column(each) for each in given])


def _column(given: Obj) -> Column:
    return Column(
        given["name"],
        _cell(given["jsonPath"], given["type"]),
        type=given["type"],
        format=given.get("format", ""),
        wide=given.get("priority", 0) > 0,
        description=given.get("description") or f"{_DESCRIPTION} {given['jsonPath']}",
    )


def _cell(path: str, kind: str) -> Callable[[Obj, RelatedCounts], Any]:
    understood = not json_path.complaint(path)

    def cell(obj: Obj, counts: RelatedCounts) -> Any:
        found = json_path.find(obj, path) if understood else []
        if not found:
            return None
        return _text(found[0]) if kind == "string" else _typed(found[0], kind, counts)

    return cell


def _typed(value: Any, kind: str, counts: RelatedCounts) -> Any:
    """A value of a column that is no string; null where it is of another type."""
    if kind == "integer":
        return int(value) if type(value) in (int, float) else None
    if kind == "number":
        return value if type(value) in (int, float) else None
    if kind == "boolean":
        return value if type(value) is bool else None
    if kind == "date" and type(value) is str:
        moment = epoch(value)
        return "<invalid>" if moment is None else duration(counts.now - moment)
    return None


def _text(value: Any) -> str:
    """A value as a cell of text."""
    if type(value) is str:
        return value
    return msgspec.json.encode(value).decode()


def selectable(version: Obj) -> Mapping[str, Callable[[Obj], str]]:
    """How to read each selectable field of one version."""
    given: list[Obj] = version.get("selectableFields") or []
    return {each["jsonPath"].removeprefix("."): _reader(each["jsonPath"]) for each in given}


def _reader(path: str) -> Callable[[Obj], str]:
    def read(obj: Obj) -> str:
        found = json_path.find(obj, path)
        if not found:
            return ""
        return found[0] if type(found[0]) is str else _text(found[0])

    return read
