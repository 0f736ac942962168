"""Types that expressions are checked against, with the sizes that bound what an evaluation can cost.

A type without a size limit is as large as a request body allows, as in Kubernetes: a list of numbers can have 1.5
million elements, because each takes at least two bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

LARGEST_REQUEST = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Type:
    """A type without parts."""

    name: str  # the evaluator's word for it
    min_size: int = field(default=1, kw_only=True)  # the fewest bytes that a value takes as JSON

    @property
    def max_size(self) -> int:
        """The largest size: characters, elements or entries."""
        return LARGEST_REQUEST if self.name in ("dyn", "bytes", "string") else 1


@dataclass(frozen=True, slots=True)
class Text(Type):
    """A string, perhaps of limited length (in characters)."""

    name: str = field(default="string", kw_only=True)
    min_size: int = field(default=2, kw_only=True)
    max_length: int | None = None

    @property
    def max_size(self) -> int:
        return LARGEST_REQUEST - 2 if self.max_length is None else self.max_length


BOOL = Type("bool", min_size=4)
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Text()
BYTES = Type("bytes", min_size=2)
TIMESTAMP = Type("timestamp", min_size=22)
DURATION = Type("duration", min_size=4)
NULL = Type("null", min_size=4)
DYN = Type("dyn")


@dataclass(frozen=True, slots=True)
class Opaque(Type):
    """A type of Kubernetes whose values only its own functions look into: a quantity, an address."""


@dataclass(frozen=True, slots=True)
class TypeParameter(Type):
    """Any type, the same wherever the name occurs in one signature."""


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    """A list of elements of one type."""

    name: str = field(default="list", kw_only=True)
    min_size: int = field(default=2, kw_only=True)
    element: Type = DYN
    max_items: int | None = None

    @property
    def max_size(self) -> int:
        return LARGEST_REQUEST // (self.element.min_size + 1) if self.max_items is None else self.max_items


@dataclass(frozen=True, slots=True)
class MapOf(Type):
    """A map with keys of one type and values of one type."""

    name: str = field(default="map", kw_only=True)
    min_size: int = field(default=2, kw_only=True)
    value: Type = DYN
    max_properties: int | None = None
    key: Type = field(default=STRING, kw_only=True)

    @property
    def max_size(self) -> int:
        # An entry takes at least two quotes, a colon, a comma and the value.
        return LARGEST_REQUEST // (self.value.min_size + 6) if self.max_properties is None else self.max_properties


@dataclass(frozen=True, slots=True, eq=False)
class ObjectOf(Type):
    """An object with named fields. Fields are found by the names that expressions use (see `escaped`)."""

    name: str = ""
    fields: Mapping[str, Type] | None = None
    min_size: int = field(default=2, kw_only=True)

    @property
    def max_size(self) -> int:
        return len(self.fields or ())


@dataclass(frozen=True, slots=True)
class OptionalOf(Type):
    """A value that may be absent. Values are given as a list of none or one."""

    name: str = field(default="optional_type", kw_only=True)
    element: Type = DYN


# Words of the language that cannot be names of fields: expressions write `__namespace__` for the field `namespace`.
RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@lru_cache(maxsize=4096)
def escaped(name: str) -> str:
    """The name by which an expression reaches a property; empty where it cannot."""
    if name in RESERVED:
        return f"__{name}__"
    for raw, written in _ESCAPES:
        name = name.replace(raw, written)
    valid = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    return name if valid else ""


def evaluator_type(declared: Type, cel: Any) -> Any:
    """The evaluator's form of a declared type, where it has one."""
    match declared:
        case ListOf(element=element):
            return cel.Type.List(evaluator_type(element, cel))
        case MapOf(key=key, value=value):
            return cel.Type.Map(evaluator_type(key, cel), evaluator_type(value, cel))
        case ObjectOf(name=name):
            return cel.Type(name)
        case TypeParameter(name=name):
            return cel.Type(f"~{name}")
        case _:
            return cel.Type(declared.name)


def configured_type(declared: Type) -> dict[str, Any]:
    """The form of a declared type in the evaluator's configuration."""
    match declared:
        case ListOf(element=element) | OptionalOf(element=element):
            return {"type_name": declared.name, "params": [configured_type(element)]}
        case MapOf(key=key, value=value):
            return {"type_name": "map", "params": [configured_type(key), configured_type(value)]}
        case TypeParameter(name=name):
            return {"type_name": name, "is_type_param": True}
        case _:
            return {"type_name": declared.name}


def needs_configuration(declared: Type) -> bool:
    """Whether the evaluator knows the type only through its configuration: opaque and optional ones."""
    match declared:
        case Opaque() | OptionalOf():
            return True
        case ListOf(element=inner) | MapOf(value=inner):
            return needs_configuration(inner)
        case _:
            return False
