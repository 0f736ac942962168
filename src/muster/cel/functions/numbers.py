"""Numbers of different types can be compared, as in Kubernetes; the evaluator computes it, the check must allow it."""

from __future__ import annotations

from itertools import permutations

from muster.cel.functions.function import Function
from muster.cel.types import BOOL, DOUBLE, INT, UINT

FUNCTIONS = tuple(
    Function(operator, pair, BOOL, None, member=False)
    for operator in ("_<_", "_<=_", "_>_", "_>=_")
    for pair in permutations((INT, UINT, DOUBLE), 2)
)
