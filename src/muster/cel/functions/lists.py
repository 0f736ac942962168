"""Lists: order, sum, extremes and places of elements."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from muster.cel.functions.function import A, Function
from muster.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, ListOf, Type

_COMPARABLE: tuple[Type, ...] = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_SUMMABLE = (INT, UINT, DOUBLE, DURATION)


def is_sorted(values: list[Any]) -> bool:
    return all(one <= other for one, other in pairwise(values))


def total(values: list[Any]) -> Any:
    return sum(values, timedelta() if values and isinstance(values[0], timedelta) else 0)


def smallest(values: list[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return min(values)


def largest(values: list[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return max(values)


def index_of(values: list[Any], wanted: Any) -> int:
    return next((at for at, value in enumerate(values) if _same(value, wanted)), -1)


def last_index_of(values: list[Any], wanted: Any) -> int:
    return next((at for at in range(len(values) - 1, -1, -1) if _same(values[at], wanted)), -1)


def _same(one: Any, other: Any) -> bool:
    """Equality of the language, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


FUNCTIONS = (
    *(Function("isSorted", (ListOf(each),), BOOL, is_sorted, walk=1) for each in _COMPARABLE),
    *(Function("sum", (ListOf(each),), each, total, walk=1) for each in _SUMMABLE),
    *(Function("min", (ListOf(each),), each, smallest, walk=1) for each in _COMPARABLE),
    *(Function("max", (ListOf(each),), each, largest, walk=1) for each in _COMPARABLE),
    Function("indexOf", (ListOf(A), A), INT, index_of, walk=1),
    Function("lastIndexOf", (ListOf(A), A), INT, last_index_of, walk=1),
)
