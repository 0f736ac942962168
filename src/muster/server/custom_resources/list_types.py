"""Lists of type set and map have no element twice; embedded resources say what they are."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.errors import DUPLICATE, INVALID, REQUIRED, FieldError
from muster.api.validation import formats
from muster.server.custom_resources.structural import Structural

_encode = msgspec.json.Encoder(order="sorted").encode


def validate_lists(value: Any, schema: Structural | None, path: str = "") -> list[FieldError]:
    """The elements that come twice in lists of type set and map."""
    if schema is None:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        for name, each in value.items():
            errors += validate_lists(each, schema.field(name), _member(path, name, schema))
    elif type(value) is list:
        if schema.list_type == "set":
            errors += _repeated(value, value, path)
        elif schema.list_type == "map":
            errors += _repeated_keys(value, schema.list_keys, path)
        for index, each in enumerate(value):
            errors += validate_lists(each, schema.items, f"{path}[{index}]")
    return errors


def _member(path: str, name: str, schema: Structural) -> str:
    if name in schema.properties:
        return f"{path}.{name}" if path else name
    return f"{path}[{name}]"


def _repeated(names: list[Any], shown: list[Any], path: str) -> list[FieldError]:
    seen: dict[bytes, int] = {}
    errors: list[FieldError] = []
    for index, each in enumerate(names):
        key = _encode(each)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            errors.append(FieldError(DUPLICATE, f"{path}[{index}]", shown[index]))
    return errors


def _repeated_keys(items: list[Any], keys: tuple[str, ...], path: str) -> list[FieldError]:
    for index, each in enumerate(items):
        if each is not None and type(each) is not dict:
            why = "must be an object for an array of list-type map"
            return [FieldError(INVALID, f"{path}[{index}]", each, why)]
    names = [{key: each[key] for key in keys if key in each} if each else {} for each in items]
    return _repeated(names, names, path)


def validate_embedded(value: Any, schema: Structural | None, path: str = "") -> list[FieldError]:
    """Embedded resources must have `apiVersion` and `kind`."""
    if schema is None:
        return []
    errors: list[FieldError] = []
    if type(value) is dict:
        if schema.embedded and path:
            errors += _check_embedded(value, path)
        for name, each in value.items():
            errors += validate_embedded(each, schema.field(name), _member(path, name, schema))
    elif type(value) is list:
        for index, each in enumerate(value):
            errors += validate_embedded(each, schema.items, f"{path}[{index}]")
    return errors


def _check_embedded(value: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("apiVersion", "kind"):
        given: Any = value.get(name)
        where = f"{path}.{name}"
        if name not in value:
            errors.append(FieldError(REQUIRED, where))
        elif not isinstance(given, str):
            errors.append(FieldError(INVALID, where, given, "must be a string"))
        elif not given:
            errors.append(FieldError(INVALID, where, given, "must not be empty"))
        elif name == "apiVersion" and given.count("/") > 1:
            errors.append(FieldError(INVALID, where, given, f"unexpected GroupVersion string: {given}"))
        elif name == "kind" and (wrong := formats.rfc_1035_label(given.lower())):
            why = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            errors.append(FieldError(INVALID, where, given, why))
    return errors
