"""Pruning: fields that a structural schema does not have are dropped, and nulls that may not be there.

An embedded resource keeps its `apiVersion`, `kind` and `metadata`, whatever its schema says.
"""

from __future__ import annotations

from typing import Any

from muster.server.custom_resources.structural import META_FIELDS, Structural

Obj = dict[str, Any]


def prune(obj: Obj, schema: Structural) -> list[str]:
    """Drop what the schema does not have, in place; the paths of what was dropped, sorted."""
    unknown: list[str] = []
    _prune_object(obj, schema, "", unknown, root=True)
    return sorted(unknown)


def _prune(value: Any, schema: Structural | None, path: str, unknown: list[str], keep: bool = False) -> None:
    """`keep`: the value is an element of a list that preserves unknown fields."""
    keep = keep or (schema is not None and schema.preserve)
    if type(value) is dict:
        _prune_object(value, schema, path, unknown, keep=keep)
    elif type(value) is list:
        items = schema.items if schema is not None else None
        if items is None and keep:
            return
        for index, each in enumerate(value):
            if type(each) is dict or type(each) is list:
                _prune(each, items, f"{path}[{index}]", unknown, keep)


def _prune_object(
    obj: Obj, schema: Structural | None, path: str, unknown: list[str], *, keep: bool = False, root: bool = False
) -> None:
    keep_meta = root or (schema is not None and schema.embedded)
    keep = keep or (schema is not None and schema.preserve)
    for name in list(obj):
        if keep_meta and name in META_FIELDS:
            continue
        field = schema.field(name) if schema is not None else None
        where = f"{path}.{name}" if path else name
        if field is not None:
            value = obj[name]
            if type(value) is dict or type(value) is list:
                _prune(value, field, where, unknown)
        elif not keep:
            unknown.append(where)
            del obj[name]


def prune_nulls(value: Any, schema: Structural | None) -> None:
    """Drop nulls of fields that may not be null and have no default, in place."""
    if type(value) is dict:
        for name in list(value):
            field = schema.field(name) if schema is not None else None
            if value[name] is None:
                if field is not None and not field.nullable and not field.has_default:
                    del value[name]
            else:
                prune_nulls(value[name], field)
    elif type(value) is list:
        items = schema.items if schema is not None else None
        for each in value:
            prune_nulls(each, items)
