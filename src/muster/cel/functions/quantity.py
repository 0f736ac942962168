"""Quantities: amounts such as 500m and 1.5Gi, compared and added exactly."""

from __future__ import annotations

from muster.api import quantity
from muster.api.quantity import NANOS
from muster.cel.functions.function import Codec, Function
from muster.cel.types import BOOL, DOUBLE, INT, STRING, Opaque

QUANTITY = Opaque("kubernetes.Quantity")
# In nano-units, the finest step that Kubernetes keeps.
CODEC = Codec(QUANTITY, b"q", str, int)

_LARGEST = 2**63


def parse(text: str) -> int:
    return quantity.parse(text).nanos


def is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def is_integer(nanos: int) -> bool:
    whole, part = divmod(nanos, NANOS)
    return not part and -_LARGEST <= whole < _LARGEST


def as_integer(nanos: int) -> int:
    if not is_integer(nanos):
        raise ValueError("cannot convert value to integer")
    return nanos // NANOS


def sign(nanos: int) -> int:
    return (nanos > 0) - (nanos < 0)


def compare(one: int, other: int) -> int:
    return (one > other) - (one < other)


FUNCTIONS = (
    Function("quantity", (STRING,), QUANTITY, parse, member=False, walk=0.1),
    Function("isQuantity", (STRING,), BOOL, is_quantity, member=False, walk=0.1),
    Function("sign", (QUANTITY,), INT, sign, member=False),
    Function("isInteger", (QUANTITY,), BOOL, is_integer),
    Function("asInteger", (QUANTITY,), INT, as_integer),
    Function("asApproximateFloat", (QUANTITY,), DOUBLE, lambda nanos: nanos / NANOS),
    Function("isGreaterThan", (QUANTITY, QUANTITY), BOOL, lambda one, other: one > other),
    Function("isLessThan", (QUANTITY, QUANTITY), BOOL, lambda one, other: one < other),
    Function("compareTo", (QUANTITY, QUANTITY), INT, compare),
    Function("add", (QUANTITY, QUANTITY), QUANTITY, lambda one, other: one + other),
    Function("add", (QUANTITY, INT), QUANTITY, lambda one, other: one + other * NANOS),
    Function("sub", (QUANTITY, QUANTITY), QUANTITY, lambda one, other: one - other),
    Function("sub", (QUANTITY, INT), QUANTITY, lambda one, other: one - other * NANOS),
)
