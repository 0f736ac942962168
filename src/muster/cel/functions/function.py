"""What a function is: its signature for the check, what computes it, what it costs.

The evaluator passes only its own kinds of values to Python. A value of an opaque type is therefore encoded as bytes: a
mark, the tag of its type, and a canonical text, so that equal values are equal bytes. (No zero byte: the evaluator
passes bytes only up to the first one.) A function that may have no
result gives a list of none or one; the expression is rewritten to take the first of it (`muster.cel.rewriting`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from muster.cel.types import ListOf, MapOf, Opaque, OptionalOf, Type, TypeParameter

A = TypeParameter("A")
TIMES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_MARK = b"\x01\x02"
_ANY_KIND = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "list", "map")


class Codec:
    """How the values of one opaque type become bytes and come back."""

    def __init__(
        self, declared: Opaque, tag: bytes, to_text: Callable[[Any], str], of_text: Callable[[str], Any]
    ) -> None:
        self.declared = declared
        self._prefix = _MARK + tag
        self._to_text = to_text
        self._of_text = of_text

    def encode(self, value: Any) -> bytes:
        return self._prefix + self._to_text(value).encode()

    def owns(self, data: Any) -> bool:
        return isinstance(data, bytes | bytearray) and data[: len(self._prefix)] == self._prefix

    def decode(self, data: bytes | bytearray) -> Any:
        return self._of_text(bytes(data[len(self._prefix) :]).decode())


@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a function."""

    name: str
    parameters: tuple[Type, ...]
    returns: Type
    compute: Callable[..., Any] | None  # None: the evaluator computes it, only the check must learn of it
    member: bool = True
    declared: bool = True  # False: the check knows it already, only the evaluation lacks it
    # Units per character or element of the first parameter, times those of the second where both are walked through.
    walk: float = 0.0
    walk_second: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.name}({', '.join(_words(each) for each in self.parameters)})"


def runtime_name(name: str, returns: str) -> str:
    """Under which name the evaluator calls it: it must be told of results that are times, and of those alone."""
    return f"@{name}.{returns}" if returns in TIMES else name


def _words(declared: Type) -> str:
    match declared:
        case ListOf(element=element):
            return f"list({_words(element)})"
        case _:
            return declared.name


def kinds(function: Function) -> list[tuple[str, ...]]:
    """The kinds of values that the evaluator passes for the parameters: one tuple for every combination."""
    return list(product(*(_kinds(each) for each in function.parameters)))


def _kinds(declared: Type) -> tuple[str, ...]:
    match declared:
        case TypeParameter():
            return _ANY_KIND
        case Opaque():
            return ("bytes",)
        case ListOf():
            return ("list",)
        case MapOf():
            return ("map",)
        case _:
            return (declared.name,) if declared.name != "dyn" else _ANY_KIND


def dispatcher(candidates: Sequence[Function], codecs: Sequence[Codec]) -> Callable[..., Any]:
    """What the evaluator calls for overloads that it cannot tell apart: values decoded, the right one called."""
    by_type = {codec.declared.name: codec for codec in codecs}

    def call(*given: Any) -> Any:
        for function in candidates:
            decoded = _decode(function, given, by_type)
            if decoded is not None:
                assert function.compute is not None
                return _encode(function.returns, function.compute(*decoded), by_type)
        raise ValueError("no such overload")

    return call


def _decode(function: Function, given: Sequence[Any], codecs: dict[str, Codec]) -> list[Any] | None:
    decoded: list[Any] = []
    for declared, value in zip(function.parameters, given, strict=True):
        if isinstance(declared, Opaque):
            codec = codecs[declared.name]
            if not codec.owns(value):
                return None
            value = codec.decode(value)
        decoded.append(value)
    return decoded


def _encode(declared: Type, value: Any, codecs: dict[str, Codec]) -> Any:
    if isinstance(declared, Opaque):
        return codecs[declared.name].encode(value)
    if isinstance(declared, OptionalOf):
        return [] if value is None else [_encode(declared.element, value, codecs)]
    return value
