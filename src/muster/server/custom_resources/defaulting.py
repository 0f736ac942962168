"""Defaulting: fields that were left out get the value that the structural schema gives them."""

from __future__ import annotations

from typing import Any

from muster.server import codec
from muster.server.custom_resources.structural import Structural


def set_defaults(value: Any, schema: Structural | None) -> None:
    """Fill in, in place, what is missing or null where null may not be."""
    if schema is None or not schema.has_defaults:
        return
    if type(value) is dict:
        for name, field in schema.properties.items():
            if field.has_default and (name not in value or (value[name] is None and not field.nullable)):
                value[name] = _copy(field.default)
        for name in value:
            field = schema.field(name)
            if field is not None:
                value[name] = _filled(value[name], field)
                set_defaults(value[name], field)
    elif type(value) is list and schema.items is not None:
        for index, each in enumerate(value):
            value[index] = _filled(each, schema.items)
            set_defaults(value[index], schema.items)


def _filled(value: Any, schema: Structural) -> Any:
    if value is None and not schema.nullable and schema.has_default:
        return _copy(schema.default)
    return value


def _copy(value: Any) -> Any:
    return codec.copy({"": value})[""] if isinstance(value, dict | list) else value
