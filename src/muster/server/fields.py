"""What Go's decode and encode do to a written object: prune, normalise, and say which fields are wrong.

`canonicalise` gives the object as Kubernetes would store it: unknown fields gone, quantities and times in canonical
form, nulls and empty optional fields dropped, structs that Go always writes present. The input is not changed and
the result shares no container with it, except inside values without a schema. `decode` adds `fieldValidation`.

One quick walk does the work and only counts problems; when there is one, a second walk finds the words for it. Of a
message in `_REPEATED`, what the walk made of a value is remembered: a gang's thousand pods have one spec.
Lists that Go would write as null are left out instead: no client can tell, and readers need no guard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from muster.api.errors import ApiError, bad_request
from muster.server.schema import Field, Message
from muster.server.schema.model import ALWAYS, OMIT_ZERO
from muster.server.schema.scalars import CONVERT, GO_TYPE, ZERO, WrongType

Obj = dict[str, Any]
Problems = list[str]
_Converter = Callable[[Any, Problems], Any]

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
_NEVER_OMITTED = frozenset({"time", "microtime", "quantity", "intorstring", "raw"})
_MOST_NAMED = 100
_REPEATED = frozenset(("core.v1.PodSpec",))
_MOST_REMEMBERED, _LARGEST_REMEMBERED = 256, 8 * 1024  # values, and bytes of one
_NOT_WRITTEN = (TypeError, ValueError, OverflowError, RecursionError)  # a value that JSON cannot say
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Plan(NamedTuple):
    """How to walk one message. A string field has no converter: it is checked in the loop, being the most common."""

    fields: dict[str, tuple[_Converter | None, bool]]
    always: tuple[tuple[str, Callable[[], Any]], ...]
    sparse: bool  # keep what is written and add nothing: an applied configuration owns exactly what it says
    remembered: dict[bytes, bytes] | None = None  # what became of a value, both as JSON


def canonicalise(obj: Obj, message: Message) -> Obj:
    """The object as Go would write it back. Raises ApiError 400 on a value of the wrong type."""
    return decode(obj, message, IGNORE)[0]


def configuration(obj: Obj, message: Message) -> Obj:
    """An applied configuration with its scalars in canonical form and nothing added, dropped or pruned.

    Raises ApiError 400 on a field that the schema does not declare and on a value of the wrong type.
    """
    problems: Problems = []
    result = _walked(_plan(message, sparse=True), obj, problems)
    if problems:
        unknown = unknown_fields(obj, message)
        if unknown:
            raise undeclared(unknown)
    return result


def decode(
    obj: Obj, message: Message, mode: str = WARN, duplicates: Iterable[str] = (), *, patched: bool = False
) -> tuple[Obj, list[str]]:
    """The canonical object and the warnings that go with it.

    `mode` is the request's fieldValidation (Strict, Warn or Ignore); `duplicates` are the repeated fields that
    `muster.server.json_bodies` found in the body. A patched object fails with 422, as the patch and not the body is
    at fault; anything else with 400.
    """
    problems: Problems = []
    result = _walked(_plan(message), obj, problems)
    repeated = list(duplicates)
    if not problems and not repeated:
        return result, []
    unknown: list[str] = []
    if problems:
        try:
            unknown = _Finder(message).find(obj)
        except ValueError as wrong:
            raise refused(message.kind, message.version, str(wrong), patched=patched) from None
    warnings = strictness(unknown, repeated, obj)
    if mode == STRICT and warnings:
        raise refused(message.kind, message.version, not_strict(warnings), patched=patched)
    return result, [] if mode == IGNORE else warnings


def unknown_fields(obj: Obj, message: Message) -> list[str]:
    """The paths of fields that a message does not have. Raises ApiError 400 on a value of the wrong type."""
    try:
        return _Finder(message).find(obj)
    except ValueError as wrong:
        raise refused(message.kind, message.version, str(wrong), patched=False) from None


def undeclared(unknown: list[str]) -> ApiError:
    """What an applied configuration has and its schema has not."""
    lines = [f".{path}: field not declared in schema" for path in unknown[:_MOST_NAMED]]
    words = lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines])
    return bad_request(f"failed to create typed patch object: {words}")


class BodyFault(str):
    """Words about repeated fields of a body, where they are not known by their paths."""


def strictness(unknown: list[str], repeated: Iterable[str], written: Obj | None = None) -> list[str]:
    """The words about unknown and repeated fields: in the order of the body if given, else repeated first."""
    repeated = list(repeated)
    faults = [each for each in repeated if isinstance(each, BodyFault)]
    # What is inside an unknown field is not looked at, so repetitions there are not either.
    inside = [re.compile(rf"{re.escape(each)}(?![^.\[])") for each in unknown]
    seen = [path for path in repeated if path not in faults and not any(each.match(path) for each in inside)]
    found = [(path, f'duplicate field "{path}"') for path in seen]
    found += [(path, f'unknown field "{path}"') for path in unknown]
    if written is not None and seen and unknown:
        positions = {path: position for position, path in enumerate(_paths(written, ""))}
        found.sort(key=lambda each: positions.get(each[0], 0))
    return [*faults, *(words for _, words in found)]


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            below = f"{path}.{key}" if path else key
            yield below
            yield from _paths(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, f"{path}[{index}]")


def not_strict(warnings: list[str]) -> str:
    return "strict decoding error: " + ", ".join(warnings[:_MOST_NAMED])


def refused(kind: str, version: str, words: str, *, patched: bool) -> ApiError:
    """A body that is not an object of its kind, or a patch that does not leave one."""
    if patched:
        cause = f'Invalid value: "{kind}": {words}'
        details = {"causes": [{"reason": "FieldValueInvalid", "message": cause, "field": "patch"}]}
        return ApiError(422, "Invalid", f' "" is invalid: patch: {cause}', details)
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {words}')


# --- the quick walk ------------------------------------------------------------------------------------


def _walked(plan: _Plan, obj: Any, problems: Problems) -> Obj:
    try:
        return _walk(plan, obj, problems)
    except RecursionError:
        raise bad_request("the object provided is unrecognized: exceeded max depth") from None


def _walk(plan: _Plan, obj: Any, problems: Problems) -> Obj:
    out: Obj = {}
    if type(obj) is not dict:
        problems.append("")
        return out
    known = plan.fields
    for key, value in obj.items():
        entry = known.get(key)
        if entry is None:
            problems.append(key)
            continue
        if value is None:
            if plan.sparse:
                out[key] = None
            continue
        convert, omit = entry
        if convert is not None:
            value = convert(value, problems)
        elif type(value) is not str:
            problems.append(key)
            continue
        if value or not omit:
            out[key] = value
    for name, make in plan.always:
        if name not in out:
            out[name] = make()
    return out


def _walk_once(plan: _Plan, value: Any, problems: Problems) -> Obj:
    """The walk over a value that is likely to come again; what had a problem is walked each time."""
    remembered = plan.remembered
    assert remembered is not None
    try:
        written = _encode(value)
    except _NOT_WRITTEN:
        return _walk(plan, value, problems)
    known = remembered.get(written)
    if known is not None:
        return _decode(known)
    before = len(problems)
    result = _walk(plan, value, problems)
    if len(problems) == before and len(written) <= _LARGEST_REMEMBERED:
        if len(remembered) >= _MOST_REMEMBERED:
            remembered.clear()
        try:
            remembered[written] = _encode(result)
        except _NOT_WRITTEN:
            return result
    return result


@cache
def _plan(message: Message, sparse: bool = False) -> _Plan:
    all_fields = message.fields.items()
    known = {name: (_converter(field, sparse), not sparse and _omitted(field)) for name, field in all_fields}
    always = tuple((name, _filler(field)) for name, field in all_fields if not sparse and _written_always(field))
    return _Plan(known, always, sparse, {} if not sparse and message.name in _REPEATED else None)


def _omitted(field: Field) -> bool:
    """Whether an empty value is left out."""
    if field.presence == ALWAYS or field.pointer:
        return False
    if field.shape:
        return True
    return field.type != "message" and field.type not in _NEVER_OMITTED


def _written_always(field: Field) -> bool:
    """Whether Go writes the field even when nobody set it."""
    if field.pointer or field.shape or field.presence == OMIT_ZERO:
        return False
    if field.type in ("message", "time", "microtime", "quantity", "intorstring"):
        return True
    return field.presence == ALWAYS and ZERO[field.type] is not None


def _filler(field: Field) -> Callable[[], Any]:
    message = field.message
    if message is None:
        zero = ZERO[field.type]
        return lambda: zero
    return lambda: _walk(_plan(message), {}, [])


def _converter(field: Field, sparse: bool) -> _Converter | None:
    one = _message_converter(field.message, sparse) if field.message else _scalar_converter(field)
    if field.shape == "list":
        return _list_of_strings if field.type == "string" else _list_converter(one, _filler(field))
    if field.shape == "map":
        return _map_converter(one, _filler(field))
    return None if field.type == "string" else one


def _message_converter(message: Message, sparse: bool) -> _Converter:
    plan: _Plan | None = None

    def convert(value: Any, problems: Problems) -> Any:
        nonlocal plan
        if plan is None:
            plan = _plan(message, sparse)
        return _walk(plan, value, problems) if plan.remembered is None else _walk_once(plan, value, problems)

    return convert


def _scalar_converter(field: Field) -> _Converter:
    read = CONVERT[field.type]

    def convert(value: Any, problems: Problems) -> Any:
        try:
            return read(value)
        except ValueError:
            problems.append(field.name)
            return None

    return convert


def _list_of_strings(value: Any, problems: Problems) -> Any:
    if type(value) is not list:
        problems.append("")
        return None
    strings: list[str] = []
    for item in value:
        if type(item) is str:
            strings.append(item)
        elif item is None:
            strings.append("")
        else:
            problems.append("")
    return strings


def _list_converter(one: _Converter, zero: Callable[[], Any]) -> _Converter:
    def convert(value: Any, problems: Problems) -> Any:
        if type(value) is not list:
            problems.append("")
            return None
        return [zero() if item is None else one(item, problems) for item in value]

    return convert


def _map_converter(one: _Converter, zero: Callable[[], Any]) -> _Converter:
    def convert(value: Any, problems: Problems) -> Any:
        if type(value) is not dict:
            problems.append("")
            return None
        return {key: zero() if item is None else one(item, problems) for key, item in value.items()}

    return convert


# --- the careful walk ----------------------------------------------------------------------------------


class _Finder:
    """Finds the unknown fields of an object in document order, and stops at the first value of a wrong type."""

    def __init__(self, message: Message) -> None:
        self.root = message
        self.unknown: list[str] = []

    def find(self, obj: Any) -> list[str]:
        self._message(obj, self.root, "", "")
        return self.unknown

    def _message(self, obj: Any, message: Message, path: str, stack: str) -> None:
        if type(obj) is not dict:
            raise ValueError(_mismatch(obj, "", stack, f"{message.version}.{message.kind}"))
        for key, value in obj.items():
            field = message.fields.get(key)
            here = f"{path}.{key}" if path else key
            if field is None:
                self.unknown.append(here)
            elif value is not None:
                self._field(value, field, message, here, ".".join([*filter(None, [stack]), *_go_path(message, key)]))

    def _field(self, value: Any, field: Field, owner: Message, path: str, stack: str) -> None:
        element = _go_element(field)
        if field.shape == "list":
            if type(value) is not list:
                raise ValueError(_mismatch(value, owner.kind, stack, f"[]{element}"))
            for index, item in enumerate(value):
                if item is not None:
                    self._one(item, field, owner, f"{path}[{index}]", stack, element)
        elif field.shape == "map":
            if type(value) is not dict:
                raise ValueError(_mismatch(value, owner.kind, stack, field.go_type or f"map[string]{element}"))
            for key, item in value.items():
                if item is not None:
                    self._one(item, field, owner, f"{path}.{key}", stack, element)
        else:
            self._one(value, field, owner, path, stack, element)

    def _one(self, value: Any, field: Field, owner: Message, path: str, stack: str, element: str) -> None:
        if field.message is not None:
            if type(value) is not dict:
                raise ValueError(_mismatch(value, owner.kind, stack, element))
            self._message(value, field.message, path, stack)
            return
        try:
            CONVERT[field.type](value)
        except WrongType:
            raise ValueError(_mismatch(value, owner.kind, stack, element)) from None


def _go_element(field: Field) -> str:
    if field.message is not None:
        return f"{field.message.version}.{field.message.kind}"
    plain = GO_TYPE.get(field.type, field.type)
    return plain if field.shape == "map" else field.go_type or plain


def _go_path(message: Message, key: str) -> list[str]:
    """The steps to a field as Go counts them: through the embedded struct that declares it."""
    for _, embedded in message.embedded():
        if key in embedded.fields:
            return [embedded.kind, *_go_path(embedded, key)]
    return [key]


def _mismatch(value: Any, struct: str, stack: str, go_type: str) -> str:
    place = f"Go struct field {struct}.{stack} of type" if struct else "Go value of type"
    return f"json: cannot unmarshal {_described(value)} into {place} {go_type}"


def _described(value: Any) -> str:
    if type(value) is bool:
        return "bool"
    if type(value) is int:
        return "number" if abs(value) < 2**31 else f"number {value}"
    if type(value) is float:
        return f"number {value}"
    return {str: "string", list: "array", dict: "object"}.get(type(value), "value")
