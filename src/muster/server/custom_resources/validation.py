"""Validation of values against a schema: types, limits, patterns, and `allOf`, `anyOf`, `oneOf`, `not`.

The words and the places are those of Kubernetes, so that what clients show and match stays the same. On an update a
value that did not change is not judged again: a schema may have become stricter since it was stored.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from muster.api.errors import INVALID, NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID, FieldError
from muster.server.custom_resources import patterns, string_formats
from muster.server.custom_resources.structural import Schema

_MISSING = object()
_INT32, _INT64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
_GREATEST_FLOAT = 3.4028234663852886e38


class _Result:
    """The errors of one value, and how many checks went well: the alternative that came nearest is told."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.matches = 0

    def merge(self, other: _Result) -> None:
        self.errors += other.errors
        self.matches += other.matches


def validate(value: Any, schema: Schema, old: Any = _MISSING, path: str = "") -> list[FieldError]:
    """Everything that is wrong with a value; `old` is what it replaces."""
    return _checked(value, schema, path, old).errors


def _checked(value: Any, schema: Schema, path: str, old: Any = _MISSING) -> _Result:
    result = _Result()
    if old is not _MISSING and old == value and type(old) is type(value):
        return result
    _check_type(value, schema, path, result)
    if value is None:
        _check_enum(value, schema, path, result)
        return result
    _check_alternatives(value, schema, path, result)
    if type(value) is str:
        _check_string(value, schema, path, result)
    elif type(value) is int or type(value) is float:
        _check_number(value, schema, path, result)
    elif type(value) is list:
        _check_list(value, schema, path, result, old)
    _check_enum(value, schema, path, result)
    if type(value) is dict:
        _check_object(value, schema, path, result, old)
    result.matches += 1
    return result


def _wrong(path: str, value: Any, words: str, kind: str = INVALID) -> FieldError:
    where = path.lstrip(".")
    return FieldError(kind, where or "<nil>", value, f"{path} in body {words}")


# Types

_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _check_type(value: Any, schema: Schema, path: str, result: _Result) -> None:
    wanted = _types(schema)
    if not wanted:
        return
    if value is None:
        if not schema.get("nullable"):
            result.errors.append(_wrong(path, "null", f'must be of type {",".join(wanted)}: "null"', TYPE_INVALID))
        return
    name = _NAMES[type(value)]
    fits = name in wanted or (name == "integer" and "number" in wanted)
    if not fits and name == "number" and "integer" in wanted:
        fits = float(value).is_integer()
    if not fits:
        result.errors.append(_wrong(path, name, f'must be of type {",".join(wanted)}: "{name}"', TYPE_INVALID))
    else:
        result.matches += 1


# Alternatives


def _check_alternatives(value: Any, schema: Schema, path: str, result: _Result) -> None:
    if schema.get("anyOf"):
        _check_any(value, schema["anyOf"], path, result)
    if schema.get("oneOf"):
        _check_one(value, schema["oneOf"], path, result)
    if schema.get("allOf"):
        _check_all(value, schema["allOf"], path, result)
    if schema.get("not") is not None and not _checked(value, schema["not"], path).errors:
        result.errors.append(_composite(path, "must not validate the schema (not)"))


def _composite(path: str, words: str) -> FieldError:
    return FieldError(INVALID, "<nil>", "", f'"{path}" {words}')


def _nearest(results: list[_Result]) -> _Result:
    return max(results, key=lambda each: each.matches)


def _check_any(value: Any, schemas: list[Schema], path: str, result: _Result) -> None:
    failed: list[_Result] = []
    for each in schemas:
        found = _checked(value, each, path)
        if not found.errors:
            result.matches += found.matches
            return
        failed.append(found)
    result.errors.append(_composite(path, "must validate at least one schema (anyOf)"))
    result.merge(_nearest(failed))


def _check_one(value: Any, schemas: list[Schema], path: str, result: _Result) -> None:
    found = [_checked(value, each, path) for each in schemas]
    valid = [each for each in found if not each.errors]
    if len(valid) == 1:
        result.matches += valid[0].matches
        return
    what = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    result.errors.append(_composite(path, f"must validate one and only one schema (oneOf). {what}"))
    if not valid:
        result.merge(_nearest(found))


def _check_all(value: Any, schemas: list[Schema], path: str, result: _Result) -> None:
    found = [_checked(value, each, path) for each in schemas]
    for each in found:
        result.merge(each)
    failed = sum(1 for each in found if each.errors)
    if failed:
        none = ". None validated" if failed == len(found) else ""
        result.errors.append(_composite(path, f"must validate all the schemas (allOf){none}"))


# Scalars


def _check_string(value: str, schema: Schema, path: str, result: _Result) -> None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        result.errors.append(FieldError(TOO_LONG, path.lstrip("."), detail=f"may not be more than {longest} bytes"))
    elif shortest is not None and len(value) < shortest:
        result.errors.append(_wrong(path, value, f"should be at least {shortest} chars long"))
    elif pattern and not patterns.compiled(pattern)(value):
        result.errors.append(_wrong(path, value, f"should match '{pattern}'"))
    name = schema.get("format")
    if name and schema.get("type") in (None, "", "string") and not string_formats.fits(name, value):
        result.errors.append(_wrong(path, value, f'must be of type {name}: "{value}"', TYPE_INVALID))
    result.matches += 1


def _check_number(value: float, schema: Schema, path: str, result: _Result) -> None:
    _check_range(value, schema, path, result)
    step, low, high = schema.get("multipleOf"), schema.get("minimum"), schema.get("maximum")
    if step is not None and not _is_multiple(value, step):
        result.errors.append(_wrong(path, value, f"should be a multiple of {_number(step)}"))
    if low is not None:
        if schema.get("exclusiveMinimum"):
            if value <= low:
                result.errors.append(_wrong(path, value, f"should be greater than {_number(low)}"))
        elif value < low:
            result.errors.append(_wrong(path, value, f"should be greater than or equal to {_number(low)}"))
    if high is not None:
        if schema.get("exclusiveMaximum"):
            if value >= high:
                result.errors.append(_wrong(path, value, f"should be less than {_number(high)}"))
        elif value > high:
            result.errors.append(_wrong(path, value, f"should be less than or equal to {_number(high)}"))
    result.matches += 1


def _check_range(value: float, schema: Schema, path: str, result: _Result) -> None:
    kind, name = schema.get("type"), schema.get("format")
    if kind == "integer":
        low, high = _INT32 if name == "int32" else _INT64
        fits = low <= value <= high and float(value).is_integer()
        name = name if name in ("int32", "int64") else ""
    else:
        fits = kind != "number" or name != "float" or abs(value) <= _GREATEST_FLOAT
    if not fits:
        form = f"with format {name}" if name else "(default format)"
        why = f"Checked value must be of type {kind} {form} in {path}"
        result.errors.append(FieldError(INVALID, "<nil>", "", why))


def _is_multiple(value: float, step: float) -> bool:
    if step <= 0:
        return True  # refused when the definition was written
    if isinstance(value, int) and float(step).is_integer():
        return value % int(step) == 0
    ratio = value / step
    return math.isclose(ratio, round(ratio), rel_tol=0, abs_tol=1e-9)


def _number(value: float) -> str:
    """A limit as Go writes a float."""
    size = abs(value)
    if size and (size >= 1e21 or size < 1e-4):
        return f"{float(value)!r}"
    return str(int(value)) if float(value).is_integer() else repr(value)


def _check_enum(value: Any, schema: Schema, path: str, result: _Result) -> None:
    allowed: list[Any] = schema.get("enum") or []
    if not allowed or any(_same(value, each) for each in allowed):
        return
    words = [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in allowed]
    listed = ", ".join(f'"{each}"' for each in words)
    result.errors.append(FieldError(NOT_SUPPORTED, path.lstrip("."), value, f"supported values: {listed}"))


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


# Containers


def _check_list(value: list[Any], schema: Schema, path: str, result: _Result, old: Any) -> None:
    items = schema.get("items")
    if isinstance(items, dict):
        before = _elements(old, schema)
        for index, each in enumerate(value):
            result.merge(_checked(each, items, f"{path}[{index}]", before(index, each)))
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if fewest is not None and len(value) < fewest:
        result.errors.append(_wrong(path, len(value), f"should have at least {fewest} items"))
    if most is not None and len(value) > most:
        result.errors.append(
            FieldError(TOO_MANY, path.lstrip("."), len(value), f"must have at most {most} {_plural(most)}")
        )
    result.matches += 1


def _plural(count: int) -> str:
    return "item" if count == 1 else "items"


def _elements(old: Any, schema: Schema) -> Any:
    """Which old element an element is compared with: only the elements of a list of type map are known again."""
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    if type(old) is not list or schema.get("x-kubernetes-list-type") != "map" or not keys:
        return lambda index, each: _MISSING
    known = {_key(each, keys): each for each in old}
    return lambda index, each: known.get(_key(each, keys), _MISSING)


def _key(item: Any, keys: list[str]) -> tuple[Any, ...]:
    return tuple(repr(item.get(key)) for key in keys) if type(item) is dict else (repr(item),)


def _check_object(value: dict[str, Any], schema: Schema, path: str, result: _Result, old: Any) -> None:
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        result.errors.append(_wrong(path, len(value), f"should have at least {fewest} properties"))
    if most is not None and len(value) > most:
        result.errors.append(
            FieldError(TOO_MANY, path.lstrip("."), len(value), f"must have at most {most} {_plural(most)}")
        )
    properties: dict[str, Schema] = schema.get("properties") or {}
    additional: Any = schema.get("additionalProperties")
    before: dict[str, Any] = old if type(old) is dict else {}
    for name, each in value.items():
        inner = properties.get(name)
        where = f"{path}.{name}" if path else name
        if inner is not None:
            result.merge(_checked(each, inner, where, before.get(name, _MISSING)))
        elif isinstance(additional, dict):
            result.merge(_checked(each, additional, f"{path}.{name}", before.get(name, _MISSING)))
        elif additional is False:
            why = f"{path}.{name} in body is a forbidden property"
            result.errors.append(FieldError(INVALID, path.lstrip(".") or "<nil>", "", why))
    for name in schema.get("required") or ():
        if name not in value:
            result.errors.append(FieldError(REQUIRED, f"{path}.{name}".lstrip(".")))
    result.matches += 1
