"""Values as an expression sees them: by the declared type where JSON is less exact than the type.

A whole number where the schema says `number` is a double, base64 is bytes, a property that is null counts as absent,
and properties have the names that expressions use for them. Times stay text: see `muster.cel.rewriting`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from muster.cel.shapes import Measure, measure
from muster.cel.types import ListOf, MapOf, ObjectOf, OptionalOf, Type, escaped

Convert = Callable[[Any], Any]


class Values:
    """The values of variables, converted and measured once for all programs that are evaluated on them."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._given = dict(variables)
        self._converted: dict[str, Any] = {}
        self._measured: dict[str, Measure] = {}

    def set(self, name: str, value: Any) -> None:
        """Add a variable, or replace it."""
        self._given[name] = value
        self._converted.pop(name, None)
        self._measured.pop(name, None)

    def forget(self, prefix: str) -> None:
        """Take away the variables whose names begin so."""
        for known in (self._given, self._converted, self._measured):
            for name in [each for each in known if each.startswith(prefix)]:
                del known[name]

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str, convert: Convert | None) -> Any:
        if name not in self._converted:
            value = self._given[name]
            self._converted[name] = value if convert is None else convert(value)
        return self._converted[name]

    def measure(self, name: str) -> Measure:
        """The size of a value that was taken by `get`."""
        found = self._measured.get(name)
        if found is None:
            found = self._measured[name] = measure(self._converted[name])
        return found


def converter(declared: Type) -> Convert | None:
    """What makes a value of this type of JSON; None where JSON is it already. Gives up on nothing: what does not fit
    the type is passed as it is, because validation by the schema has its own words for that."""
    match declared:
        case ListOf(element=inner):
            return _each(converter(inner))
        case MapOf(value=inner):
            return _values(converter(inner))
        case ObjectOf():
            return _fields(declared)
        case OptionalOf(element=inner):
            return _each(converter(inner))
        case _:
            return _SCALARS.get(declared.name)


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: [convert(each) for each in value] if isinstance(value, list) else value


def _values(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: {key: convert(each) for key, each in value.items()} if isinstance(value, dict) else value


def _fields(declared: ObjectOf) -> Convert:
    inner = {name: converter(each) for name, each in (declared.fields or {}).items()}

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        seen: dict[str, Any] = {}
        for raw, part in value.items():
            name = raw if raw in inner else escaped(raw)
            if part is None or name not in inner:
                continue
            change = inner[name]
            seen[name] = part if change is None else change(part)
        return seen

    return convert


def _double(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _timestamp(value: Any) -> Any:
    """A time stays text, which the expression parses where it uses it; a date begins at midnight."""
    return f"{value}T00:00:00Z" if isinstance(value, str) and len(value) == len("2006-01-02") else value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except ValueError:
        return value


_SCALARS: dict[str, Convert] = {
    "double": _double,
    "timestamp": _timestamp,
    "bytes": _bytes,
}
