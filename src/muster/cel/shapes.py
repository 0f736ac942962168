"""How large the values of an expression can be: by declared limits, by actual values, or by one bound for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from muster.cel.types import LARGEST_REQUEST, ListOf, MapOf, ObjectOf, OptionalOf, Type


class Shape(Protocol):
    """The size of a value, and the shapes of its parts."""

    @property
    def size(self) -> int:
        """At most so many characters, elements or entries."""
        ...

    def element(self) -> Shape:
        """Any element of a list, any value of a map."""
        ...

    def key(self) -> Shape:
        """Any key of a map."""
        ...

    def field(self, name: str) -> Shape: ...

    def lookup(self) -> int:
        """How many parts are looked at to find one: all of a list, one of a map."""
        ...

    def total(self) -> int:
        """The size of everything in it, which a comparison may walk through."""
        ...


class Bounded:
    """Nothing in it is larger than a number."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def element(self) -> Shape:
        return self

    def key(self) -> Shape:
        return self

    def field(self, name: str) -> Shape:
        return self

    def lookup(self) -> int:
        return self.size

    def total(self) -> int:
        return self.size


SCALAR = Bounded(1)
UNLIMITED = Bounded(LARGEST_REQUEST)


class Sized:
    """A value of known size with parts of one shape: what functions and literals give."""

    __slots__ = ("_part", "size")

    def __init__(self, size: int, part: Shape) -> None:
        self.size = size
        self._part = part

    def element(self) -> Shape:
        return self._part

    def key(self) -> Shape:
        return self._part

    def field(self, name: str) -> Shape:
        return self._part

    def lookup(self) -> int:
        return self.size

    def total(self) -> int:
        return self.size if self._part is SCALAR else self.size * (1 + self._part.total())


class OneOf:
    """One of several shapes: the branches of a condition, the elements of a literal."""

    __slots__ = ("_shapes",)

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._shapes = shapes

    @property
    def size(self) -> int:
        return max((each.size for each in self._shapes), default=1)

    def element(self) -> Shape:
        return OneOf([each.element() for each in self._shapes])

    def key(self) -> Shape:
        return OneOf([each.key() for each in self._shapes])

    def field(self, name: str) -> Shape:
        return OneOf([each.field(name) for each in self._shapes])

    def lookup(self) -> int:
        return max((each.lookup() for each in self._shapes), default=1)

    def total(self) -> int:
        return max((each.total() for each in self._shapes), default=1)


class Declared:
    """A value of a declared type."""

    __slots__ = ("_type",)

    def __init__(self, declared: Type) -> None:
        self._type = declared

    @property
    def size(self) -> int:
        return self._type.max_size

    def element(self) -> Shape:
        match self._type:
            case ListOf(element=inner) | MapOf(value=inner) | OptionalOf(element=inner):
                return Declared(inner)
            case _:
                return UNLIMITED

    def key(self) -> Shape:
        match self._type:
            case MapOf(key=inner):
                return Declared(inner)
            case ListOf():
                return SCALAR
            case _:
                return UNLIMITED

    def lookup(self) -> int:
        return 1 if isinstance(self._type, MapOf) else self.size

    def total(self) -> int:
        return self.size

    def field(self, name: str) -> Shape:
        match self._type:
            case ObjectOf(fields=fields) if fields is not None and name in fields:
                return Declared(fields[name])
            case MapOf(value=inner):
                return Declared(inner)
            case OptionalOf(element=inner):
                return Declared(inner).field(name)
            case _:
                return UNLIMITED


class Actual:
    """Whichever of these values it is."""

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    @property
    def size(self) -> int:
        return max((len(each) for each in self._values if isinstance(each, str | bytes | list | Mapping)), default=1)

    def element(self) -> Shape:
        found: list[Any] = []
        for each in self._values:
            if isinstance(each, list):
                found += each
            elif isinstance(each, Mapping):
                found += each.values()
        return Actual(found)

    def key(self) -> Shape:
        return Actual([key for each in self._values if isinstance(each, Mapping) for key in each])

    def field(self, name: str) -> Shape:
        return Actual([each[name] for each in self._values if isinstance(each, Mapping) and name in each])

    def lookup(self) -> int:
        return max((len(each) for each in self._values if isinstance(each, list)), default=1)

    def total(self) -> int:
        return max((measure(each).size for each in self._values), default=1)


MOST_PARTS = 125_000
"""A value with more parts than this is not given to the evaluator."""


class Measure(NamedTuple):
    """How large a value is: its parts, and its parts and characters together."""

    parts: int
    size: int


def measure(value: Any, most: int = MOST_PARTS) -> Measure:
    """The size of everything in a value; no list, map or text in it is larger. Stops where there are too many parts."""
    parts = size = 0
    waiting = [value]
    while waiting and parts <= most:
        each = waiting.pop()
        parts += 1
        kind = type(each)
        if kind is str or kind is bytes:
            size += len(each)
        elif kind is dict:
            parts += len(each)
            waiting += each.values()
        elif kind is list:
            if len(each) > most:
                return Measure(parts + len(each), size + len(each))
            waiting += each
    return Measure(parts, size + parts)
