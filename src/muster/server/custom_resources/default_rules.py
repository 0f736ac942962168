"""The defaults in a schema must be values that the schema itself accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.api.errors import INVALID, FieldError
from muster.server import codec
from muster.server.custom_resources.pruning import prune
from muster.server.custom_resources.structural import Schema, Structural
from muster.server.custom_resources.validation import validate


def validate_defaults(schema: Schema, path: str) -> Iterator[FieldError]:
    """The errors of all defaults below a node."""
    value: Any = schema.get("default")
    if value is not None:
        yield from _default(value, schema, f"{path}.default")
    for name, each in (schema.get("properties") or {}).items():
        yield from validate_defaults(each, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from validate_defaults(schema[name], f"{path}.{name}")


def _default(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    # The value as a field of an object, so that one that is an object itself is pruned like any other field.
    holder = {"default": codec.copy(value)}
    if prune(holder, Structural({"type": "object", "properties": {"default": schema}})):
        yield FieldError(INVALID, path, value, "must not have unknown fields")
        return
    for error in validate(value, schema):
        below = "" if error.field == "<nil>" else f".{error.field}"
        yield error._replace(field=f"{path}{below}")
