"""Whether a JSON object has the shape of its kind: every field of a wrong type, and every unknown field.

The shapes come from the msgspec structs themselves. msgspec stops at the first mistake, a person wants
all of them, so this walks the object beside its type. The walk keeps its own stack and looks only so deep,
so that an object nested without end costs no more than others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import inspect

from muster.api import groups, types
from muster.api.errors import TYPE_INVALID, FieldError

Obj = dict[str, Any]

MOST_PROBLEMS = 100
"""After so many problems the rest is not listed: the author has the idea."""

DEEPEST = 200
"""How deep an object is looked into; no good object comes near."""

_SHAPES: dict[str, type[msgspec.Struct]] = {
    "Workload": groups.Workload,
    "PodGroup": groups.PodGroup,
    "CompositePodGroup": groups.CompositePodGroup,
    "Pod": types.Pod,
    "Node": types.Node,
    "PriorityClass": types.PriorityClass,
    "PodDisruptionBudget": types.PodDisruptionBudget,
    "PodSpec": types.PodSpec,
}
"""Kinds with a known shape. Those that are not group kinds are projections: their other fields are not unknown."""

# Fields of metadata that no projection needs.
_OTHER_METADATA = frozenset(("annotations", "generateName", "selfLink", "deletionGracePeriodSeconds", "managedFields"))
_JSON_NAMES: dict[type[Any], str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}


class Problem(NamedTuple):
    """A field of a wrong type, or (with nothing wanted) a field that does not exist."""

    path: str
    value: Any
    wanted: str


def decode_errors(obj: Any, kind: str) -> list[FieldError]:
    """Every field whose JSON type is wrong for the kind; empty for kinds that this project has no shape for."""
    return [
        FieldError(TYPE_INVALID, problem.path, _brief(problem.value), f"must be {problem.wanted}")
        for problem in _walk(obj, kind)
        if problem.wanted
    ]


def unknown_fields(obj: Any, kind: str) -> list[str]:
    """The paths of fields that a group kind does not have."""
    if kind not in ("Workload", "PodGroup", "CompositePodGroup"):
        return []
    return [problem.path for problem in _walk(obj, kind) if not problem.wanted]


@cache
def _shape(kind: str) -> inspect.Type | None:
    struct = _SHAPES.get(kind)
    return inspect.type_info(struct) if struct is not None else None


def _walk(obj: Any, kind: str) -> list[Problem]:
    shape = _shape(kind)
    if shape is None:
        return []
    found: list[Problem] = []
    pending: list[tuple[str, Any, inspect.Type, int]] = [("", obj, shape, 0)]
    while pending and len(found) < MOST_PROBLEMS:
        path, value, wanted, depth = pending.pop()
        if value is None:
            continue
        wanted = _without_none(wanted)
        complaint = _mismatch(value, wanted) if depth < DEEPEST else f"nested less than {DEEPEST} levels deep"
        if complaint is not None:
            found.append(Problem(path, value, complaint))
            continue
        parts = [(*part, depth + 1) for part in _parts(path, value, wanted, found)]
        pending.extend(reversed(parts))
    return found


def _without_none(wanted: inspect.Type) -> inspect.Type:
    if isinstance(wanted, inspect.UnionType):
        rest = [each for each in wanted.types if not isinstance(each, inspect.NoneType)]
        if len(rest) == 1:
            return rest[0]
    return wanted


def _mismatch(value: Any, wanted: inspect.Type) -> str | None:
    """What the type asks for, in words, where the value is something else."""
    match wanted:
        case inspect.StructType() | inspect.DictType():
            return None if isinstance(value, dict) else "an object"
        case inspect.VarTupleType() | inspect.ListType():
            return None if isinstance(value, list) else "a list"
        case inspect.StrType():
            return None if isinstance(value, str) else "a string"
        case inspect.BoolType():
            return None if isinstance(value, bool) else "true or false"
        case inspect.IntType(ge=low, le=high):
            if isinstance(value, bool) or not isinstance(value, int):
                return "a whole number"
            least, most = low if low is not None else -(2**63), high if high is not None else 2**63 - 1
            return None if least <= value <= most else f"a whole number between {least} and {most}"
        case inspect.UnionType():
            fits = isinstance(value, str | int | float) and not isinstance(value, bool)
            return None if fits else "a string or a number"
        case _:
            return None


def _parts(
    path: str, value: Any, wanted: inspect.Type, found: list[Problem]
) -> Iterator[tuple[str, Any, inspect.Type]]:
    match wanted:
        case inspect.StructType(fields=known, cls=cls):
            names = {field.encode_name: field.type for field in known}
            for name, member in cast("Obj", value).items():
                where = f"{path}.{name}" if path else str(name)
                if name in names:
                    yield where, member, names[name]
                elif cls is not types.PodAnnotations and not (
                    issubclass(cls, types.ObjectMeta) and name in _OTHER_METADATA
                ):
                    found.append(Problem(where, member, ""))
        case inspect.DictType(value_type=inner):
            for name, member in cast("Obj", value).items():
                yield f"{path}[{name}]", member, inner
        case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner):
            for index, member in enumerate(cast("list[Any]", value)):
                yield f"{path}[{index}]", member, inner
        case _:
            return


def _json_name(value: object) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _brief(value: Any) -> Any:
    """The value as it goes into a message: whole when it is small."""
    if isinstance(value, dict | list):
        return f"{_json_name(cast('Obj', value))} of {len(cast('Obj', value))}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return f"a number of {value.bit_length()} bits"
    return value if not isinstance(value, str) or len(value) <= 100 else value[:100] + "…"
