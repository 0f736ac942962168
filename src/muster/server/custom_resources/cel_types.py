"""The types that the rules of a schema are checked against, with the size limits that the schema sets."""

from __future__ import annotations

from muster import cel
from muster.cel.types import escaped
from muster.server.custom_resources.structural import Structural

_BY_FORMAT = {"byte": cel.BYTES, "duration": cel.DURATION, "date": cel.TIMESTAMP, "date-time": cel.TIMESTAMP}
_SCALARS = {"boolean": cel.BOOL, "number": cel.DOUBLE, "integer": cel.INT}


def declared_type(schema: Structural, name: str, resource: bool = False) -> cel.Type | None:
    """What an expression knows of a value; None where it cannot see it at all. `resource`: it has a head."""
    if schema.int_or_string:
        return cel.DYN
    if schema.type == "array":
        element = declared_type(schema.items, f"{name}_item") if schema.items is not None else None
        return cel.ListOf(element=element, max_items=schema.source.get("maxItems")) if element is not None else None
    if schema.type == "object":
        return _object(schema, name, resource)
    if schema.type == "string":
        return _BY_FORMAT.get(schema.source.get("format") or "") or _text(schema)
    return _SCALARS.get(schema.type)


def _text(schema: Structural) -> cel.Type:
    longest: int | None = schema.source.get("maxLength")
    words = [each for each in schema.source.get("enum") or () if isinstance(each, str)]
    if longest is None and words:
        longest = max(map(len, words))
    return cel.Text(max_length=longest)


def _object(schema: Structural, name: str, resource: bool) -> cel.Type | None:
    if schema.additional is not None and not schema.properties:
        value = declared_type(schema.additional, f"{name}_value")
        if value is None:
            return None
        return cel.MapOf(value=value, max_properties=schema.source.get("maxProperties"))
    fields: dict[str, cel.Type] = {}
    least = 2  # bytes as JSON: the braces, and each required field with quotes, colon and comma
    for raw, each in schema.properties.items():
        word = escaped(raw)
        known = declared_type(each, f"{name}_{word}") if word else None
        if known is not None:
            fields[word] = known
            if raw in (schema.source.get("required") or ()) and not each.has_default:
                least += len(raw) + known.min_size + 4
    if resource or schema.embedded:
        head = {"name": cel.STRING, "generateName": cel.STRING}
        fields |= {"kind": cel.STRING, "apiVersion": cel.STRING, "metadata": cel.ObjectOf(f"{name}_metadata", head)}
    return cel.ObjectOf(name, fields, min_size=least)
